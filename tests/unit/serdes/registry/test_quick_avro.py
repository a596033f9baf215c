"""Avro with a registered schema: which records the client library sees, and that those of the others are the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import RuleSet, Schema, SchemaReference
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from pykstreams.core.errors import SerdeError
from pykstreams.core.types import Headers
from pykstreams.serdes import SchemaRegistryAvroSerde, bind_deserializer, bind_serializer
from pykstreams.serdes.registry.quick_avro import Context, quick_reader, quick_writer

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
CONTEXT = SerializationContext("orders", MessageField.VALUE)
WITH_ALL = {"validate.strict": False}
"""The default, said by a user: the library gets every record."""

FIELDS: list[tuple[object, list[object]]] = [
    ("long", [0, -1, 1 << 62]),
    ("double", [0.5, float("inf")]),
    ("string", ["", "ä"]),
    (["null", "string"], [None, "x"]),
    ("bytes", [b"", b"\x00"]),
    ({"type": "enum", "name": "Size", "symbols": ["S", "L"]}, ["S", "L"]),
    ({"type": "array", "items": "int"}, [[], [1, 2]]),
    ({"type": "map", "values": "boolean"}, [{}, {"a": True}]),
    ({"type": "record", "name": "Part", "fields": [{"name": "n", "type": "int"}]}, [{"n": 3}]),
    ({"type": "long", "logicalType": "timestamp-millis"}, [datetime(2026, 1, 2, tzinfo=UTC)]),
    ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, [Decimal("1.25")]),
    ({"type": "string", "logicalType": "uuid"}, [UUID(int=7)]),
]


def record_of(kind: object) -> dict[str, object]:
    return {"type": "record", "name": "Row", "fields": [{"name": "it", "type": kind}]}


@pytest.mark.parametrize(("kind", "values"), FIELDS)
def test_bytes_and_values_are_those_of_the_library(kind: object, values: list[object]) -> None:
    schema = record_of(kind)
    quick: SchemaRegistryAvroSerde[Any] = SchemaRegistryAvroSerde("mock://same", schema)
    library: SchemaRegistryAvroSerde[Any] = SchemaRegistryAvroSerde(
        "mock://same", schema, serializer_config=WITH_ALL, deserializer_config={"use.latest.version": False}
    )
    write, read = bind_serializer(quick, "rows"), bind_deserializer(quick, "rows")
    slow_write, slow_read = bind_serializer(library, "rows"), bind_deserializer(library, "rows")

    for value in [{"it": each} for each in values] * 2:
        data = slow_write(value, ())
        assert write(value, ()) == data
        assert read(data, ()) == slow_read(data, ()) == value


@pytest.mark.parametrize("schema", ['"bytes"', '{"type": "bytes"}', '"string"', '"long"', '["null", "string"]'])
def test_schemas_that_are_no_records_are_written_and_read_as_by_the_library(schema: str) -> None:
    value = b"x" if "bytes" in schema else 5 if "long" in schema else "x"
    quick: SchemaRegistryAvroSerde[Any] = SchemaRegistryAvroSerde("mock://simple", schema)
    library: SchemaRegistryAvroSerde[Any] = SchemaRegistryAvroSerde("mock://simple", schema, serializer_config=WITH_ALL)

    for _ in range(3):
        data = library.serialize("rows", value)
        assert quick.serialize("rows", value) == data
        assert quick.deserialize("rows", data) == value


@dataclass
class Order:
    id: int


def test_values_of_a_type_are_made_and_taken_apart_for_each_record() -> None:
    serde = SchemaRegistryAvroSerde("mock://quick-types", ORDER, type_=Order)
    write, read = bind_serializer(serde, "orders"), bind_deserializer(serde, "orders")

    assert [read(write(Order(each), ()), ()) for each in range(3)] == [Order(0), Order(1), Order(2)]


@pytest.mark.parametrize("records_before", [0, 1])
def test_errors_are_those_of_the_library(records_before: int) -> None:
    quick: SchemaRegistryAvroSerde[Any] = SchemaRegistryAvroSerde("mock://errors", ORDER)
    library: SchemaRegistryAvroSerde[Any] = SchemaRegistryAvroSerde("mock://errors", ORDER, serializer_config=WITH_ALL)
    write, read = bind_serializer(quick, "orders"), bind_deserializer(quick, "orders")
    for _ in range(records_before):
        read(write({"id": 5}, ()), ())

    for value in ({"id": "five"}, {}):
        assert refusal(write, value) == refusal(bind_serializer(library, "orders"), value)
    head = b"\x00\x00\x00\x00\x01"
    for data in (head, b"\x07" + head[1:] + b"\x02", head + b"\x80", b""):
        assert refusal(read, data) == refusal(bind_deserializer(library, "orders"), data)


def refusal(call: Callable[[Any, Headers], object], given: object) -> str:
    with pytest.raises(SerdeError) as raised:
        call(given, ())
    return str(raised.value)


@dataclass
class Library:
    """Serializer, deserializer and client of a schema, which note their calls."""

    schema: Schema = field(default_factory=lambda: Schema(ORDER, "AVRO"))
    down: bool = False
    written: list[object] = field(default_factory=list)
    read: list[bytes] = field(default_factory=list)
    asked: list[tuple[int, str | None]] = field(default_factory=list)

    def write(self, value: object, context: Context) -> bytes | None:
        self.written.append(value)
        assert isinstance(value, dict)
        return b"\x00\x00\x00\x00\x07" + bytes([2 * value["id"]])

    def deserialize(self, data: bytes, context: Context) -> object:
        self.read.append(data)
        return "the library's"

    def get_schema(self, schema_id: int, subject_name: str | None = None) -> Schema:
        self.asked.append((schema_id, subject_name))
        if self.down:
            raise ConnectionError("no registry")
        return self.schema


def test_the_first_record_of_each_topic_goes_through_the_library() -> None:
    library = Library()
    write = quick_writer(library.write, ORDER, {"auto.register.schemas": False}, None)

    for topic in ("a", "b", "a", "b"):
        assert write({"id": 1}, SerializationContext(topic, MessageField.VALUE)) == b"\x00\x00\x00\x00\x07\x02"
    assert len(library.written) == 2


def test_every_record_goes_through_a_library_that_writes_other_bytes() -> None:
    library = Library()
    write = quick_writer(lambda value, context: b"\x01" + (library.write(value, context) or b""), ORDER, {}, None)

    assert {write({"id": 1}, CONTEXT) for _ in range(3)} == {b"\x01\x00\x00\x00\x00\x07\x02"}
    assert len(library.written) == 3


@pytest.mark.parametrize("settings", [{"use.latest.version": True}, {"validate.strict": True}])
def test_every_record_goes_through_the_library_where_a_setting_of_the_serializer_asks_for_more(
    settings: Mapping[str, object],
) -> None:
    library = Library()
    write = quick_writer(library.write, ORDER, settings, None)

    for _ in range(3):
        write({"id": 1}, CONTEXT)
    assert len(library.written) == 3


def test_every_record_goes_through_the_library_where_its_schema_is_not_known_as_text() -> None:
    library = Library()
    write = quick_writer(library.write, Schema(ORDER, "AVRO"), {}, None)

    for _ in range(3):
        write({"id": 1}, CONTEXT)
    assert len(library.written) == 3


def test_the_first_record_of_each_topic_and_schema_is_read_by_the_library() -> None:
    library = Library()
    read = quick_reader(library.deserialize, library, {}, None)
    bills = SerializationContext("bills", MessageField.VALUE)

    for head, context in ((b"\x07", CONTEXT), (b"\x08", CONTEXT), (b"\x07", bills)):
        assert read(b"\x00\x00\x00\x00" + head + b"\x02", context) == "the library's"
        assert read(b"\x00\x00\x00\x00" + head + b"\x06", context) == {"id": 3}
    assert library.asked == [(7, "orders-value"), (8, "orders-value"), (7, "bills-value")]


@pytest.mark.parametrize(
    "schema",
    [
        Schema(ORDER, "AVRO", rule_set=RuleSet([], [])),
        Schema(ORDER, "AVRO", references=[SchemaReference("Part", "part", 1)]),
        Schema('{"type": "bytes"}', "AVRO"),
        Schema('"bytes"', "AVRO"),
    ],
)
def test_every_record_of_a_schema_with_rules_or_references_is_read_by_the_library(schema: Schema) -> None:
    library = Library(schema)
    read = quick_reader(library.deserialize, library, {}, None)

    assert {read(b"\x00\x00\x00\x00\x07\x02", CONTEXT) for _ in range(3)} == {"the library's"}
    assert len(library.asked) == 1


def test_a_record_that_has_the_id_of_its_schema_in_a_header_is_read_by_the_library() -> None:
    library = Library()
    read = quick_reader(library.deserialize, library, {}, None)
    read(b"\x00\x00\x00\x00\x07\x02", CONTEXT)

    traced = SerializationContext("orders", MessageField.VALUE, [("trace", b"1")])
    named = SerializationContext("orders", MessageField.VALUE, [("trace", b"1"), ("__value_schema_id", b"\x01")])

    assert read(b"\x00\x00\x00\x00\x07\x02", traced) == {"id": 1}
    assert read(b"\x00\x00\x00\x00\x07\x02", named) == "the library's"


def test_a_record_that_names_its_schema_by_a_uuid_is_read_by_the_library() -> None:
    library = Library()
    read = quick_reader(library.deserialize, library, {}, None)

    assert {read(b"\x01" + UUID(int=7 << 96).bytes + b"\x02", CONTEXT) for _ in range(3)} == {"the library's"}
    assert library.asked == []


def test_a_record_that_was_read_counts_although_the_registry_cannot_be_asked_any_more() -> None:
    library = Library(down=True)
    read = quick_reader(library.deserialize, library, {}, None)

    assert read(b"\x00\x00\x00\x00\x07\x02", CONTEXT) == "the library's"
    library.down = False
    assert read(b"\x00\x00\x00\x00\x07\x02", CONTEXT) == "the library's"
    assert read(b"\x00\x00\x00\x00\x07\x02", CONTEXT) == {"id": 1}


def test_every_key_goes_through_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def noted(name: str, call: Callable[..., object]) -> Callable[..., object]:
        def noting(*args: object) -> object:
            calls.append(name)
            return call(*args)

        return noting

    monkeypatch.setattr(AvroSerializer, "__call__", noted("write", AvroSerializer.__call__))
    monkeypatch.setattr(AvroDeserializer, "__call__", noted("read", AvroDeserializer.__call__))
    keys: SchemaRegistryAvroSerde[Any] = SchemaRegistryAvroSerde("mock://quick-keys", ORDER, is_key=True)
    values: SchemaRegistryAvroSerde[Any] = SchemaRegistryAvroSerde("mock://quick-keys", ORDER)

    for serde, expected in ((keys, ["write", "read"] * 3), (values, ["write", "read"])):
        write_one, read_one = bind_serializer(serde, "orders"), bind_deserializer(serde, "orders")
        for _ in range(3):
            read_one(write_one({"id": 5}, ()), ())
        assert calls == expected
        calls.clear()
