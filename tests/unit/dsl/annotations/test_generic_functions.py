"""Types of generic classes and functions: what is given to their variables, through all classes between."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

import pytest

from pykstreams import FixedKeyProcessor, Processor, Record, ValueTransformerWithKey
from pykstreams.dsl.annotations.inference import (
    fixed_key_processor_serde,
    processor_serdes,
    shown_function,
    transformer_serde,
    value_serde,
    values_serde,
)
from pykstreams.serdes.by_type import TYPES
from pykstreams.serdes.defaults import OverDefault, SerdeOrDefault

T = TypeVar("T")

TEXT = "StringSerde(encoding='utf-8')"
ORDERS = "JsonSerde(Order)"
CURE = "; correct the annotation, or give a serde"


@dataclass
class Order:
    amount: int


@dataclass
class Box(Generic[T]):
    item: T


class Kind(Enum):
    WEB = "web"


class Parser(Generic[T]):
    """What it returns is said by who makes it, or derives from it."""

    def parse(self, value: object) -> T:
        raise AssertionError

    @functools.cache  # noqa: B019 - as users write it
    def parsed(self, value: object) -> T:
        raise AssertionError

    @classmethod
    def of_class(cls, value: object) -> T:
        raise AssertionError

    def several(self, value: object) -> list[T]:
        raise AssertionError

    def __call__(self, value: object) -> Box[T]:
        raise AssertionError


class ListParser(Parser[list[T]], Generic[T]):
    """The same variable has another meaning here."""


class OrderParser(Parser[Order]): ...


@pytest.mark.parametrize(
    ("function", "type_"),
    [
        (OrderParser().parse, Order),
        (OrderParser().parsed, Order),
        (OrderParser.of_class, Order),
        (OrderParser(), Box[Order]),
        (functools.partial(OrderParser(), 1), Box[Order]),
        (Parser[Order]().parse, Order),
        (ListParser[Order]().parse, list[Order]),
    ],
)
def test_methods_of_generic_classes_return_the_types_that_are_given(
    function: Callable[..., object], type_: Any
) -> None:
    assert value_serde(function) is TYPES.serde(type_)


def test_methods_of_generic_classes_return_several_of_the_types_that_are_given() -> None:
    assert values_serde(OrderParser().several) is TYPES.serde(Order)


def test_a_generic_class_whose_types_nobody_gives_says_nothing() -> None:
    told = reason(value_serde(Parser().parse)) or ""

    assert "parse (test_generic_functions.py:" in told
    assert told.endswith(") is annotated to return T, which stands for no serde" + CURE)


def with_type_parameters(generic: Any, *parameters: object) -> Any:
    """Declares them as Python does from 3.12 on for ``def function[T]``; no variable of a module has their names."""
    name = "__type_params__"
    setattr(generic, name, parameters)
    return generic


def own(value: object) -> object:
    return value


class Reader(Generic[T]):
    def read(self, value: object) -> Any:
        return value


class OrderReader(Reader[Order]): ...


own.__annotations__["return"] = "list[Item]"
Reader.read.__annotations__["return"] = "list[T]"
with_type_parameters(own, TypeVar("Item"))
with_type_parameters(Reader, T)


def test_type_parameters_of_a_function_are_no_names_that_are_missing() -> None:
    assert reason(value_serde(own)) == (
        f"{shown_function(own)} is annotated to return list[Item], whose Item is not said{CURE}"
    )


def test_type_parameters_of_a_class_are_known_in_its_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(globals(), "T")

    assert values_serde(OrderReader().read) is TYPES.serde(Order)


K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


class Enriching(Processor[str, V, str, R], Generic[V, R]):
    """A processor of a library: the rest of its types is said by who derives from it."""


class Timing(Enriching[Order, R]):
    """One between the two."""


class Mixed:
    """Something else that a class may derive from."""


class ToKinds(Mixed, Timing[Kind]):
    def process(self, record: Record[str, Order]) -> None:
        """Forwards nothing."""


class Inside(FixedKeyProcessor[K, V, R], Generic[R, K, V]):
    """Its types stand in another order."""


class Replacing(ValueTransformerWithKey[str, V, list[V]], Generic[V]):
    """What it returns has its type inside."""


def enriching() -> Enriching[int, Order]:
    raise AssertionError


@pytest.mark.parametrize("supplier", [ToKinds, Timing[Kind], Enriching[Order, Kind], functools.partial(ToKinds)])
def test_types_of_processors_are_found_through_generic_classes_between(supplier: Callable[[], Any]) -> None:
    assert [repr(one) for one in processor_serdes(supplier)] == [TEXT, "JsonSerde(Kind)"]


def test_types_of_processors_are_found_where_a_function_makes_them() -> None:
    assert [repr(one) for one in processor_serdes(enriching)] == [TEXT, ORDERS]


def test_types_of_processors_are_found_by_their_names_and_inside_of_others() -> None:
    assert repr(fixed_key_processor_serde(Inside[Order, str, int])) == ORDERS
    assert transformer_serde(Replacing[Order]) is value_serde(list[Order])


def reason(serde: SerdeOrDefault) -> str | None:
    return serde.lacking if isinstance(serde, OverDefault) else repr(serde)
