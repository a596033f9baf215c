"""Combined keys as JSON, Avro and Protobuf: their bytes, their partial keys, and what they refuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pykstreams.errors import ConfigError, SerdeError
from pykstreams.serdes import (
    AvroCombinedKeySerde,
    CombinedKey,
    CombinedKeySerde,
    ComposedKeySerde,
    JsonCombinedKeySerde,
    JsonSerde,
    LongSerde,
    ProtobufCombinedKeySerde,
    StringSerde,
)
from pykstreams.serdes.composed_keys import FakedPrefixes, PrefixChecked
from pykstreams.testing import assert_prefix_serde

descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")


@dataclass(frozen=True)
class Customer:
    key: str


@dataclass(frozen=True)
class Order:
    id: int


def avro(prefix: Any = "string", suffix: Any = "string", **types: Any) -> AvroCombinedKeySerde[Any, Any]:
    fields = [{"name": "a", "type": prefix}, {"name": "b", "type": suffix}]
    return AvroCombinedKeySerde({"type": "record", "name": "Key", "fields": fields}, **types)


def message(*fields: tuple[str, int, str, str]) -> Any:
    """A message class with fields (name, number, type, label); a type ``Part`` is a message with an ``id``."""
    from google.protobuf import descriptor_pool, message_factory

    kinds, labels = descriptor_pb2.FieldDescriptorProto, {"plain": 1, "optional": 1, "repeated": 3}
    file = descriptor_pb2.FileDescriptorProto(name="key.proto", package="shop", syntax="proto3")
    part = file.message_type.add(name="Part")
    part.field.add(name="id", number=1, type=kinds.TYPE_INT64, label=1)
    key = file.message_type.add(name="Key")
    for name, number, kind, label in fields:
        if kind == "Part":
            key.field.add(name=name, number=number, type=kinds.TYPE_MESSAGE, type_name=".shop.Part", label=1)
            continue
        field = key.field.add(name=name, number=number, type=getattr(kinds, f"TYPE_{kind}"), label=labels[label])
        if label == "optional":
            field.proto3_optional = True
            field.oneof_index = len(key.oneof_decl)
            key.oneof_decl.add(name=f"_{name}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Key"))


def protobuf(prefix: str = "INT64", suffix: str = "INT64") -> ProtobufCombinedKeySerde[Any, Any]:
    return ProtobufCombinedKeySerde(message(("prefix", 1, prefix, "optional"), ("suffix", 2, suffix, "plain")))


# JSON


def test_partial_json_key_ends_behind_the_delimiter() -> None:
    serde = JsonCombinedKeySerde[int, int](names=("a", "b"))

    assert serde.serialize("t", CombinedKey(1, 5)) == b'{"a":1,"b":5}'
    assert serde.partial_key_serializer().serialize("t", 1) == b'{"a":1,"b":'


def test_json_parts_have_types_of_their_own() -> None:
    serde = JsonCombinedKeySerde(JsonSerde(Customer), JsonSerde(Order), names=("customer", "order"))
    key = CombinedKey(Customer('x,"order":'), Order(2))

    written = serde.serialize("t", key)
    assert written == b'{"customer":{"key":"x,\\"order\\":"},"order":{"id":2}}'
    assert serde.deserialize("t", written) == key


def test_json_key_of_nothing_is_nothing() -> None:
    serde = JsonCombinedKeySerde[Any, Any]()

    assert serde.serialize("t", None) is None
    assert serde.deserialize("t", None) is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[]", 'it does not start with {"a":'),
        (b'{"a":', "Expecting value"),
        (b'{"a":1}', 'behind the first value comes no ,"b":'),
        (b'{"a":1,"b":2', 'behind the first value comes no ,"b":'),
        (b'{"a":1, "b":2}', 'behind the first value comes no ,"b":'),
        (b'{"a":"\xff","b":2}', "can't decode byte"),
        (b'{"a":1,"b":}', "JsonSerde"),
    ],
)
def test_json_that_is_no_key_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(SerdeError, match=message):
        JsonCombinedKeySerde[Any, Any](names=("a", "b")).deserialize("t", data)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("abc", "expected a CombinedKey"),
        (5, "expected a CombinedKey"),
        (CombinedKey(None, 1), "its prefix must not be None"),
        (CombinedKey(1, None), "its suffix has no bytes"),
    ],
)
def test_json_writes_combined_keys_with_both_parts_only(key: Any, message: str) -> None:
    with pytest.raises(SerdeError, match=message):
        JsonCombinedKeySerde[Any, Any]().serialize("t", key)


def test_json_prefix_of_nothing_is_refused() -> None:
    with pytest.raises(SerdeError, match="the prefix has no bytes"):
        JsonCombinedKeySerde[Any, Any]().partial_key_serializer().serialize("t", None)


def test_json_fields_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="both fields of a JSON key are named 'a'"):
        JsonCombinedKeySerde(names=("a", "a"))


# Avro


def test_partial_avro_key_is_the_first_field_without_the_index_of_an_unset_union() -> None:
    serde = avro("string", ["null", "string"])

    assert serde.serialize("t", CombinedKey("x", "y")) == b"\x02x\x02\x02y"
    assert serde.partial_key_serializer().serialize("t", "x") == b"\x02x"


def test_avro_parts_have_types_of_their_own() -> None:
    customer = {"type": "record", "name": "Customer", "fields": [{"name": "key", "type": "string"}]}
    order = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
    serde = avro(customer, order, prefix_type=Customer, suffix_type=Order)
    key = CombinedKey(Customer("x"), Order(2))

    assert serde.deserialize("t", serde.serialize("t", key)) == key
    assert serde.partial_key_serializer().serialize("t", Customer("x")) == b"\x02x"


def test_avro_second_field_may_use_a_type_that_the_first_one_names() -> None:
    part = {"type": "record", "name": "Part", "fields": [{"name": "id", "type": "long"}]}
    serde = avro(part, "Part")
    key = CombinedKey({"id": 1}, {"id": 2})

    assert serde.deserialize("t", serde.serialize("t", key)) == key


def test_avro_schema_may_be_text() -> None:
    text = '{"type":"record","name":"K","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}'

    assert repr(AvroCombinedKeySerde(text)) == "AvroCombinedKeySerde(AvroSerde(K))"
    assert AvroCombinedKeySerde[Any, Any](text).serialize("t", CombinedKey(1, 2)) == b"\x02\x04"


@pytest.mark.parametrize(
    "schema",
    ["string", {"type": "string"}, {"type": "record", "name": "K", "fields": [{"name": "a", "type": "int"}]}],
)
def test_avro_schema_without_two_fields_is_refused(schema: Any) -> None:
    with pytest.raises(ConfigError, match="expected an Avro record with two fields"):
        AvroCombinedKeySerde(schema)


def test_avro_key_of_nothing_is_nothing() -> None:
    assert avro().serialize("t", None) is None
    assert avro().deserialize("t", None) is None


# Protobuf


def test_partial_protobuf_key_has_the_first_field_alone() -> None:
    serde = protobuf("STRING", "STRING")

    assert serde.serialize("t", CombinedKey("x", "y")) == b"\n\x01x\x12\x01y"
    assert serde.partial_key_serializer().serialize("t", "x") == b"\n\x01x"
    assert serde.deserialize("t", b"\n\x01x\x12\x01y") == CombinedKey("x", "y")
    assert repr(serde) == "ProtobufCombinedKeySerde(shop.Key)"


def test_protobuf_parts_may_be_messages_that_are_empty() -> None:
    key = message(("prefix", 1, "Part", ""), ("suffix", 2, "Part", ""))
    part = type(key().prefix)
    serde = ProtobufCombinedKeySerde[Any, Any](key)

    assert serde.serialize("t", CombinedKey(part(), part(id=3))) == b"\n\x00\x12\x02\x08\x03"
    assert serde.partial_key_serializer().serialize("t", part()) == b"\n\x00"
    assert serde.deserialize("t", b"\n\x00\x12\x02\x08\x03") == CombinedKey(part(), part(id=3))


def test_protobuf_key_of_nothing_is_nothing() -> None:
    assert protobuf().serialize("t", None) is None
    assert protobuf().deserialize("t", None) is None


def test_protobuf_refuses_values_of_other_types_and_bytes_that_are_no_message() -> None:
    with pytest.raises(SerdeError, match=r"ProtobufCombinedKeySerde\(shop.Key\) cannot write"):
        protobuf().serialize("t", CombinedKey("text", 1))
    with pytest.raises(SerdeError, match=r"ProtobufCombinedKeySerde\(shop.Key\) cannot read"):
        protobuf().deserialize("t", b"\xff")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ([("prefix", 1, "INT64", "optional")], "message shop.Key has no field 'suffix'; name its fields in names="),
        (
            [("prefix", 2, "INT64", "optional"), ("suffix", 1, "INT64", "optional")],
            "field 'prefix' of shop.Key has number 2, 'suffix' has 1; .* give the prefix the smaller one",
        ),
        ([("prefix", 1, "INT64", "plain"), ("suffix", 2, "INT64", "plain")], "declare it optional"),
        ([("prefix", 1, "INT64", "repeated"), ("suffix", 2, "INT64", "plain")], "or is repeated, so it is no prefix"),
    ],
)
def test_protobuf_messages_without_a_true_prefix_are_refused(fields: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        ProtobufCombinedKeySerde(message(*fields))


# The check


GOOD: list[Any] = [
    CombinedKeySerde(StringSerde(), LongSerde()),
    JsonCombinedKeySerde(),
    JsonCombinedKeySerde(names=("a", "b")),
    avro("long", ["null", "string"]),
    avro("string", "bytes"),
    protobuf(),
    protobuf("STRING", "STRING"),
]


@pytest.mark.parametrize("serde", GOOD, ids=str)
def test_ready_made_serdes_have_true_prefixes(serde: ComposedKeySerde[Any, Any]) -> None:
    assert isinstance(serde, ComposedKeySerde)
    assert_prefix_serde(serde)


class Text(CombinedKeySerde[Any, Any]):
    """Keys as text ``prefix<between>suffix``, with any partial key."""

    def __init__(self, partial: Any, between: str = "/", reads: Any = None) -> None:
        super().__init__(StringSerde(), StringSerde())
        for name, value in (("partial", partial), ("between", between), ("reads", reads)):
            object.__setattr__(self, name, value)

    def encoder(self, topic: str) -> Any:
        return lambda data, headers: self.between.join(data).encode()  # type: ignore[attr-defined]

    def decoder(self, topic: str) -> Any:
        return lambda data, headers: self.reads or CombinedKey(*data.decode().split(self.between))  # type: ignore[attr-defined]

    def partial_key_serializer(self) -> Any:
        return self.partial  # type: ignore[attr-defined]


KEYS = [CombinedKey("1", "x"), CombinedKey("12", "x")]


@pytest.mark.parametrize(
    ("serde", "message"),
    [
        (Text(str.encode), r"'12', suffix='x'\) is written as b'12/x', which starts with the partial key of '1', b'1'"),
        (Text(lambda key: f"{key}!".encode()), "which does not start with its partial key b'1!'"),
        (Text(lambda key: b""), "the partial key '1' is written as nothing, which all keys start with"),
        (Text(str.encode, reads="z"), "is written as b'1/x', which is read as 'z'"),
    ],
)
def test_check_tells_what_is_wrong_with_a_serde(serde: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_prefix_serde(serde, KEYS)


def test_check_without_anything_to_check_is_refused() -> None:
    boolean = avro("boolean", "boolean")

    with pytest.raises(ValueError, match="reads back none of the sample keys; give keys of its own"):
        assert_prefix_serde(boolean)
    assert_prefix_serde(boolean, [CombinedKey(True, False), CombinedKey(False, False)])


def test_key_that_does_not_start_with_its_partial_key_is_not_written() -> None:
    inner: Any = Text(lambda key: f"{key}!".encode())
    checked = PrefixChecked(inner, inner.partial_key_serializer(), lambda key: key[0])

    message = (
        r"for topic 't' as b'1/x', and its partial key as b'1!', which is no prefix of it; rows would not be found"
    )
    with pytest.raises(SerdeError, match=message):
        checked.serialize("t", KEYS[0])


def test_faked_prefix_is_the_bytes_of_the_faked_key() -> None:
    assert FakedPrefixes(StringSerde(), lambda key: f"{key}/").serialize("t", "a") == b"a/"
