"""Generic dataclasses and ``TypedDict`` with their types, as values, keys and parts of others."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, Generic, TypedDict, TypeVar

import msgspec
import pydantic
import pytest

from pykstreams import StreamsBuilder
from pykstreams.core.errors import SerdeError
from pykstreams.serdes import JsonSerde, Serdes
from pykstreams.serdes.by_type import TYPES
from pykstreams.serdes.json.json_keys import JsonKeySerde
from pykstreams.serdes.json.json_of_types import json_type
from pykstreams.serdes.json.lost_numbers import question_of_lost_numbers
from pykstreams.testing import TopologyTestDriver

A = TypeVar("A")
B = TypeVar("B")


@dataclass
class Order:
    amount: Decimal


@dataclass(frozen=True)
class Box(Generic[A]):
    item: A
    others: list[A] = field(default_factory=list)
    inside: Box[A] | None = None


@dataclass(frozen=True)
class Pair(Generic[A, B]):
    first: A
    second: B | None
    by_name: dict[str, tuple[A, B]]


@dataclass(frozen=True)
class Turned(Pair[B, A], Generic[A, B]):
    third: A


@dataclass(frozen=True)
class Dated(Box[date]):
    note: str = ""


@dataclass
class Holder:
    box: Box[Order]


class Named(TypedDict, Generic[A]):
    name: str
    item: A


class Model(pydantic.BaseModel, Generic[A]):
    item: A


class Struct(msgspec.Struct, Generic[A]):
    item: A


class OrderStruct(Struct[Order]):
    pass


ORDER, DAY = Order(Decimal("9.50")), date(2026, 5, 1)

VALUES: list[tuple[Any, Any]] = [
    (Box[Order], Box(ORDER, [ORDER], Box(ORDER))),
    (Box[date], Box(DAY)),
    (Box[Box[date]], Box(Box(DAY))),
    (Pair[date, Order], Pair(DAY, ORDER, {"a": (DAY, ORDER)})),
    (Turned[date, Order], Turned(ORDER, DAY, {"a": (ORDER, DAY)}, DAY)),
    (Dated, Dated(DAY, [DAY], Box(DAY), "x")),
    (Holder, Holder(Box(ORDER))),
    (Named[date], {"name": "x", "item": DAY}),
    (list[Named[Order]], [{"name": "x", "item": ORDER}]),
    (list[Box[date]], [Box(DAY)]),
    (Box[date] | None, Box(DAY)),
    (Box[date] | Order, Box(DAY)),
    (Model[Order], Model[Order](item=ORDER)),
    (list[Model[date]], [Model[date](item=DAY)]),
    (OrderStruct, OrderStruct(ORDER)),
]


@pytest.mark.parametrize(("type_", "value"), VALUES)
@pytest.mark.parametrize("serde_of", [Serdes.for_type, JsonSerde, JsonKeySerde])
def test_values_of_generic_types_come_back(type_: Any, value: Any, serde_of: Any) -> None:
    serde = serde_of(type_)

    assert serde.deserializer.deserialize("t", serde.serializer.serialize("t", value)) == value


UNSAID = "field Box.item: the type A is not said; give the class its types in brackets"


def test_what_does_not_fit_is_refused_with_its_path_and_another_class_is_not_written() -> None:
    serde: Any = JsonSerde(Box[Order])

    with pytest.raises(SerdeError, match=r"\(Box\[Order\]\) cannot read .*: others\[0\]: expected Order, got 5"):
        serde.deserialize("t", b'{"item":{"amount":"1"},"others":[5]}')
    with pytest.raises(SerdeError, match=r"JsonSerde\(Box\[Order\]\) cannot write .* of type Order .* expected Box$"):
        serde.serialize("t", ORDER)


def test_keys_of_equal_values_have_one_form() -> None:
    serde: Any = JsonKeySerde(Box[Decimal])

    assert serde.serialize("t", Box(Decimal("1.50"))) == serde.serialize("t", Box(Decimal("1.5")))


@pytest.mark.parametrize(
    ("type_", "told"),
    [
        (
            Box,
            f"{UNSAID}, or give Box a serde of your own",
        ),
        (
            Holder | Box,
            f"{UNSAID}, or give Holder | Box a serde of your own",
        ),
        (Box[complex], "field Box[complex].item: values of type complex cannot be made"),
    ],
)
def test_a_type_that_is_not_said_is_refused_with_the_cure(type_: Any, told: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(told)}"):
        JsonSerde(type_)


def test_a_generic_struct_is_refused_with_the_cure() -> None:
    with pytest.raises(TypeError, match=re.escape("there is no serde for Struct[Order]; make a class of it")):
        Serdes.for_type(Struct[Order])


def test_the_json_of_a_generic_type_is_that_of_a_class_with_its_types() -> None:
    described = json_type(Box[Order])

    assert described.name == "Box[Order]"
    assert [one.type for one in described.fields][:2] == [json_type(Order), json_type(list[Order])]


def test_floats_are_looked_for_in_what_is_said() -> None:
    assert question_of_lost_numbers(Box[str]) is None
    with pytest.raises(SerdeError, match=r"others\[0\]: JSON has no number nan"):
        JsonSerde(Box[float]).serialize("t", Box(1.0, [float("nan")]))


def boxed(order: Order) -> Box[Order]:
    return Box(order)


def test_a_step_has_the_serde_of_a_generic_type() -> None:
    builder = StreamsBuilder()
    builder.stream("in", str, Order).map_values(boxed).to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in", str, Order).pipe_input("k", ORDER)

        assert driver.create_output_topic("out", str, TYPES.serde(Box[Order])).read_value() == Box(ORDER)
