"""Avro without a registry: plain values, and values of dataclasses, pydantic models and msgspec structs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Literal

import msgspec
import pydantic
import pytest

from pykstreams.core.errors import ConfigError, SerdeError
from pykstreams.serdes import AvroSerde, bind_deserializer


class State(Enum):
    OPEN = "open"
    PAID = "paid"


ORDER_AVRO = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["open", "paid"]}},
        {"name": "paid", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "raw", "type": "bytes"},
    ],
}


@dataclass
class Payment:
    id: int
    state: State
    paid: datetime
    raw: bytes


class PaymentStruct(msgspec.Struct):
    id: int
    state: State
    paid: datetime
    raw: bytes


class PaymentModel(pydantic.BaseModel):
    id: int
    state: Literal["open", "paid"]
    paid: datetime
    raw: bytes


class StatesModel(pydantic.BaseModel):
    state: State
    before: list[State]
    counts: dict[State, int]


STATES_AVRO = {
    "type": "record",
    "name": "States",
    "fields": [
        ORDER_AVRO["fields"][1],
        {"name": "before", "type": {"type": "array", "items": "State"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
    ],
}


@dataclass
class Audit:
    states: StatesModel


PAID = datetime(2024, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        Payment(1, State.PAID, PAID, b"\xff"),
        PaymentStruct(1, State.PAID, PAID, b"\xff"),
        PaymentModel(id=1, state="paid", paid=PAID, raw=b"\xff"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_avro_values_can_have_a_type(value: Any) -> None:
    serde = AvroSerde(ORDER_AVRO, type_=type(value))

    assert serde.deserialize("t", serde.serialize("t", value)) == value


def test_enumerations_in_pydantic_models_are_symbols_as_in_other_types() -> None:
    model = StatesModel(state=State.PAID, before=[State.OPEN], counts={State.OPEN: 1})
    serde = AvroSerde(STATES_AVRO, type_=StatesModel)
    around = AvroSerde(
        {"type": "record", "name": "Audit", "fields": [{"name": "states", "type": STATES_AVRO}]}, type_=Audit
    )

    assert serde.deserialize("t", serde.serialize("t", model)) == model
    assert around.deserialize("t", around.serialize("t", Audit(model))) == Audit(model)


def test_avro_takes_the_schema_as_value_text_or_name() -> None:
    for schema in ({"type": "long"}, '{"type": "long"}', '"long"', "long"):
        assert AvroSerde(schema).serialize("t", -1) == b"\x01"
    assert AvroSerde(["null", "long"]).serialize("t", 1) == b"\x02\x02"
    names = [repr(AvroSerde(schema)) for schema in (ORDER_AVRO, "long", ["null", "long"])]
    assert names == ["AvroSerde(Payment)", "AvroSerde(long)", "AvroSerde(union)"]


@pytest.mark.parametrize(
    "schema", ["no such type", {"type": "record"}, {"type": "record", "name": "A", "fields": 5}, 5]
)
def test_a_broken_avro_schema_is_refused(schema: Any) -> None:
    with pytest.raises(ConfigError, match=r"Avro schema is .*, which is none: "):
        AvroSerde(schema)


def test_avro_refuses_values_and_bytes_that_do_not_fit() -> None:
    serde = AvroSerde("long")
    with pytest.raises(SerdeError, match=r"AvroSerde\(long\) cannot write 'x' of type str for topic 't'"):
        serde.serialize("t", "x")
    with pytest.raises(SerdeError, match=r"AvroSerde\(long\) cannot read 0 bytes of topic 't': EOFError"):
        serde.deserialize("t", b"")
    with pytest.raises(SerdeError, match="the value ends after 1 of 2 bytes"):
        bind_deserializer(serde, "t")(b"\x02\x02", ())
