"""Tables of a shop, of files in folders, and of posts with tags."""

from dataclasses import dataclass

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from pykstreams import KTable, StreamsBuilder
from pykstreams.serdes import AvroCombinedKeySerde, CombinedKey, JsonCombinedKeySerde, ProtobufCombinedKeySerde, Serde

__all__ = ["AvroCombinedKeySerde", "CombinedKey", "JsonCombinedKeySerde", "ProtobufCombinedKeySerde", "Serde"]


@dataclass(frozen=True)
class Customer:
    name: str


@dataclass(frozen=True)
class Order:
    customer_id: int
    amount: int


@dataclass(frozen=True)
class Sale:
    name: str
    amount: int


@dataclass(frozen=True)
class OrderOfCustomer:
    customer: int
    order: int


@dataclass(frozen=True)
class Path:
    folder: str
    name: str


@dataclass(frozen=True)
class File:
    folder: str


@dataclass(frozen=True)
class Post:
    tags: list[str]


def joiner(one: object, many: object) -> str:
    return f"{one} {many}"


def with_tag(post: Post, tag: str | None) -> str:
    return f"{post} {tag}"


def _key_message() -> type:
    file = descriptor_pb2.FileDescriptorProto(name="granted_keys.proto", syntax="proto3")
    message = file.message_type.add(name="GrantedKey")
    for number, name in enumerate(("customer", "order"), start=1):
        field = message.field.add(name=name, number=number, type=descriptor_pb2.FieldDescriptorProto.TYPE_INT64)
        field.label = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
        field.proto3_optional = True
        field.oneof_index = number - 1
        message.oneof_decl.add(name=f"_{name}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    made: type = message_factory.GetMessageClass(pool.FindMessageTypeByName("GrantedKey"))
    return made


KeyMessage = _key_message()
schema_of_a_record_with_two_fields = {
    "type": "record",
    "name": "Key",
    "fields": [{"name": "customer", "type": "long"}, {"name": "order", "type": "long"}],
}
builder = StreamsBuilder()
customers = builder.table("customers", int, Customer)
orders = builder.table("orders", int, Order)
folders = builder.table("folders", str, str)
files: KTable[Path, File] = builder.table("files", Path, File)
posts = builder.table("posts", int, Post)
tags = builder.table("tags", str, str)
