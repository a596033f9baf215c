"""Fields whose types cannot be evaluated: they are told with class, field and cure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec
import pytest

from pykstreams.serdes import JsonSerde, Serdes
from pykstreams.serdes.json.field_types import UnresolvedFieldError
from pykstreams.serdes.json.json_keys import JsonKeySerde

if TYPE_CHECKING:
    from decimal import Decimal as Dec


@dataclass
class Line:
    amount: int
    price: Dec


@dataclass
class Below(Line):
    note: str = ""


@dataclass
class Order:
    id: int
    lines: list[Line]


class Trip(TypedDict):
    city: str
    price: Dec | None


class Struct(msgspec.Struct):
    price: Dec


@dataclass
class NoType:
    price: object


NoType.__annotations__["price"] = "msgspec.Missing"
NoType.__dataclass_fields__["price"].type = "msgspec.Missing"


CURE = (
    "and name 'Dec' is not defined; import Dec at run time, not under TYPE_CHECKING, or move it to the level of a "
    "module"
)


@pytest.mark.parametrize(
    ("type_", "told"),
    [
        (Line, f"field Line.price is annotated with 'Dec', {CURE}"),
        (Below, f"field Line.price is annotated with 'Dec', {CURE}"),
        (list[Line], f"field Line.price is annotated with 'Dec', {CURE}"),
        (Order, f"field Line.price is annotated with 'Dec', {CURE}"),
        (Trip, f"field Trip.price is annotated with 'Dec | None', {CURE}"),
        (Line | None, f"field Line.price is annotated with 'Dec', {CURE}"),
        (Line | Trip, f"field Line.price is annotated with 'Dec', {CURE}"),
        (Struct, f"field Struct.price is annotated with 'Dec', {CURE}"),
        (
            NoType,
            "field NoType.price is annotated with 'msgspec.Missing', and module 'msgspec' has no attribute 'Missing'; "
            "correct the annotation",
        ),
    ],
)
@pytest.mark.parametrize("serde_of", [Serdes.for_type, JsonSerde, JsonKeySerde])
def test_a_field_whose_type_is_not_there_is_told_with_the_cure(type_: Any, told: str, serde_of: Any) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(told)}$"):
        serde_of(type_)


def test_a_local_class_in_a_field_is_told_with_the_cure() -> None:
    @dataclass
    class Inner:
        amount: int

    @dataclass
    class Outer:
        inner: Inner

    told = (
        "field Outer.inner is annotated with 'Inner', and name 'Inner' is not defined; import Inner at run time, not "
        "under TYPE_CHECKING, or move it to the level of a module"
    )
    with pytest.raises(UnresolvedFieldError, match=f"^{re.escape(told)}$"):
        JsonSerde(Outer)
