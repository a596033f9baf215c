"""Confluent's wire format over a registry in memory."""

from __future__ import annotations

import re
import sys
import uuid
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import msgspec
import pydantic
import pytest

from pykstreams.core.errors import ConfigError, SerdeError
from pykstreams.serdes import (
    SchemaRegistryAvroSerde,
    SchemaRegistryJsonSerde,
    SchemaRegistryProtobufSerde,
    bind_deserializer,
    bind_serializer,
)
from pykstreams.serdes.registry.schema_registry import registry_client

AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
WIDER_AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": ""}],
}
JSON = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


@dataclass
class Order:
    id: int


@dataclass
class Tagged:
    id: int
    tag: uuid.UUID


class StrictOrder(pydantic.BaseModel, strict=True):
    id: int
    at: datetime


class Shelf(msgspec.Struct):
    id: int
    books: dict[int, str]


@dataclass
class Raw:
    data: bytes


@dataclass
class Dated:
    at: date | str


@dataclass
class Hidden:
    _id: int


def test_avro_has_a_magic_byte_and_the_id_of_the_schema_in_front() -> None:
    serde: Any = SchemaRegistryAvroSerde("mock://avro", AVRO)

    data = serde.serialize("orders", {"id": 5})

    assert data == b"\x00\x00\x00\x00\x01\x0a"
    assert serde.deserialize("orders", data) == {"id": 5}


def test_schemas_are_registered_under_the_topic_and_the_side() -> None:
    client = registry_client("mock://subjects")
    SchemaRegistryAvroSerde("mock://subjects", AVRO).serialize("orders", {"id": 5})
    SchemaRegistryAvroSerde("mock://subjects", AVRO, is_key=True).serialize("orders", {"id": 5})

    assert sorted(client.get_subjects()) == ["orders-key", "orders-value"]


def test_configure_tells_that_keys_are_written() -> None:
    client = registry_client("mock://configure")
    avro: Any = SchemaRegistryAvroSerde(client, AVRO)
    json: Any = SchemaRegistryJsonSerde(client, JSON)
    for serde in (avro, json):
        serde.configure({}, True)
    avro.serialize("orders", {"id": 5})
    json.serialize("bills", {"id": 5})

    assert sorted(client.get_subjects()) == ["bills-key", "orders-key"]


def test_two_serdes_share_the_registry_of_one_name() -> None:
    writer: Any = SchemaRegistryAvroSerde("mock://shared", AVRO)
    reader: Any = SchemaRegistryAvroSerde({"url": "mock://shared"})

    assert reader.deserialize("orders", writer.serialize("orders", {"id": 5})) == {"id": 5}


def test_avro_values_can_have_a_type() -> None:
    serde = SchemaRegistryAvroSerde("mock://typed", AVRO, type_=Order)

    assert serde.deserialize("orders", serde.serialize("orders", Order(5))) == Order(5)


def test_a_reader_uses_the_schema_of_the_writer() -> None:
    registry = registry_client("mock://evolution")
    old: Any = SchemaRegistryAvroSerde(registry, AVRO)
    new: Any = SchemaRegistryAvroSerde(registry, WIDER_AVRO)

    assert new.deserialize("orders", old.serialize("orders", {"id": 5})) == {"id": 5}
    assert old.deserialize("orders", new.serialize("orders", {"id": 5, "note": "x"})) == {"id": 5, "note": "x"}


def test_a_schema_that_is_not_registered_is_an_error_when_it_may_not_be() -> None:
    serde: Any = SchemaRegistryAvroSerde("mock://strict", AVRO, serializer_config={"auto.register.schemas": False})

    with pytest.raises(SerdeError, match=r"SchemaRegistryAvroSerde cannot write {'id': 5} .* SchemaRegistryError"):
        serde.serialize("orders", {"id": 5})


def test_json_is_checked_against_its_schema() -> None:
    serde: Any = SchemaRegistryJsonSerde("mock://json", JSON)

    data = serde.serialize("orders", {"id": 5})

    assert data[:5] == b"\x00\x00\x00\x00\x01"
    assert serde.deserialize("orders", data) == {"id": 5}
    with pytest.raises(SerdeError, match=r"SchemaRegistryJsonSerde cannot write {} .* 'id' is a required property"):
        serde.serialize("orders", {})


def test_json_values_can_have_a_type() -> None:
    serde = SchemaRegistryJsonSerde("mock://json-typed", JSON, type_=Tagged)
    value = Tagged(5, uuid.UUID(int=1))

    assert serde.deserialize("orders", serde.serialize("orders", value)) == value


@pytest.mark.parametrize("value", [StrictOrder(id=5, at=datetime(2026, 5, 1)), Shelf(5, {7: "Emma"})])
def test_models_and_structs_come_back_from_registered_json(value: Any) -> None:
    serde: Any = SchemaRegistryJsonSerde("mock://json-models", JSON, type_=type(value))

    assert serde.deserialize("orders", serde.serialize("orders", value)) == value


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (Raw, "field Raw.data: JSON has no bytes; take str"),
        (Dated, "field Dated.at: date and str cannot be told apart in JSON"),
        (Hidden, "field Hidden._id is not written to JSON because of its underscore"),
    ],
)
def test_types_that_json_would_lose_are_refused_with_a_registry_too(type_: Any, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        SchemaRegistryJsonSerde("mock://json-lost", JSON, type_=type_)


def _message_type() -> Any:
    """What protoc would make of a message Order with one int64 field."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="shop/order.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    kind = descriptor_pb2.FieldDescriptorProto
    message.field.add(name="id", number=1, type=kind.TYPE_INT64, label=kind.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_protobuf_messages_come_back() -> None:
    pytest.importorskip("google.type", reason="needs confluent-kafka[protobuf]", exc_type=ImportError)
    order: Any = _message_type()
    serde: Any = SchemaRegistryProtobufSerde("mock://protobuf", order)
    serde.configure({}, False)

    data = serde.serialize("orders", order(id=5))

    assert data == b"\x00\x00\x00\x00\x01\x00\x08\x05"
    assert serde.deserialize("orders", data).id == 5
    assert repr(serde) == "SchemaRegistryProtobufSerde(Order)"
    with pytest.raises(SerdeError, match=r"SchemaRegistryProtobufSerde\(Order\) cannot write 'x'"):
        serde.serialize("orders", "x")


@pytest.mark.parametrize(
    ("module", "make", "needed"),
    [
        ("avro", lambda: SchemaRegistryAvroSerde("mock://a", AVRO), "confluent-kafka[schemaregistry]"),
        ("json_schema", lambda: SchemaRegistryJsonSerde("mock://a", JSON), "confluent-kafka[json]"),
        ("protobuf", lambda: SchemaRegistryProtobufSerde("mock://a", Order), "pykstreams[protobuf]"),
    ],
)
def test_a_missing_package_is_named_with_what_to_install(
    module: str, make: Any, needed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"confluent_kafka.schema_registry.{module}", None)

    with pytest.raises(ConfigError) as caught:
        make()

    assert str(caught.value).startswith("SchemaRegistry")
    assert str(caught.value).endswith(f"run pip install '{needed}'")


def test_none_has_no_bytes() -> None:
    serde: Any = SchemaRegistryAvroSerde("mock://none", AVRO)

    assert bind_serializer(serde, "orders")(None, ()) is None
    assert bind_deserializer(serde, "orders")(None, ()) is None


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x00\x00\x00\x63\x0a", b"\x05\x00\x00\x00\x01\x0a"])
def test_bytes_without_a_known_schema_are_an_error(data: bytes) -> None:
    serde: Any = SchemaRegistryAvroSerde("mock://bad", AVRO)

    with pytest.raises(SerdeError, match=r"SchemaRegistryAvroSerde cannot read .* of topic 'orders'"):
        bind_deserializer(serde, "orders")(data, (("h", b"1"),))


def test_the_id_of_the_schema_may_be_in_the_headers() -> None:
    client = registry_client("mock://headers")
    serde: Any = SchemaRegistryAvroSerde(client, WIDER_AVRO)
    data = serde.serialize("orders", {"id": 5, "note": "a longer note"})
    guid = client.get_latest_version("orders-value").guid
    headers = (("__value_schema_id", b"\x01" + uuid.UUID(guid).bytes),)

    assert serde.deserialize("orders", data[5:], headers) == {"id": 5, "note": "a longer note"}


@pytest.mark.parametrize("registry", [{}, {"url": 5}])
def test_a_registry_needs_a_url(registry: Any) -> None:
    with pytest.raises(ConfigError, match="expected a URL, settings with a 'url', or a client"):
        SchemaRegistryAvroSerde(registry, AVRO)


def test_wrong_settings_of_the_registry_are_reported() -> None:
    with pytest.raises(ConfigError, match=r"schema registry is {'url': 'http://localhost:1', 'no.such': 1}: "):
        SchemaRegistryAvroSerde({"url": "http://localhost:1", "no.such": 1}, AVRO)


def test_wrong_settings_of_a_serializer_are_reported_when_it_is_bound() -> None:
    serde: Any = SchemaRegistryAvroSerde("mock://settings", AVRO, serializer_config={"no.such": 1})

    with pytest.raises(ConfigError, match="SchemaRegistryAvroSerde cannot be made: ValueError: Unrecognized"):
        bind_serializer(serde, "orders")


def test_a_broken_schema_is_reported_when_it_is_bound() -> None:
    serde: Any = SchemaRegistryAvroSerde("mock://broken", {"type": "no such type"})

    with pytest.raises(ConfigError, match="SchemaRegistryAvroSerde cannot be made: "):
        bind_serializer(serde, "orders")


def test_names_in_messages() -> None:
    assert repr(SchemaRegistryAvroSerde("mock://names", AVRO)) == "SchemaRegistryAvroSerde"
    assert repr(SchemaRegistryJsonSerde("mock://names", JSON)) == "SchemaRegistryJsonSerde"
