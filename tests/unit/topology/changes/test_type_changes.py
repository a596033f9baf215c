"""The differences of two types, beside what happens when one reads what the other has written."""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from types import GenericAlias
from typing import Any, Literal, NotRequired, TypedDict
from uuid import UUID

import msgspec
import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from pykstreams.core.errors import SerializationError
from pykstreams.serdes import JsonSerde
from pykstreams.serdes.json.json_of_types import json_type
from pykstreams.topology.changes.type_changes import Effect, type_changes

READ = {Effect.NONE, Effect.LOST}
"""What leaves all that was written readable."""


def effects(old: Any, new: Any) -> list[Effect]:
    return [change.effect for change in type_changes(json_type(old), json_type(new))]


def is_read(old: Any, value: object, new: Any) -> bool:
    raw = JsonSerde(old).serializer.serialize("topic", value)
    try:
        JsonSerde(new).deserializer.deserialize("topic", raw)
    except SerializationError:
        return False
    return True


def typed(type_: Any, *more: Any) -> Any:
    return make_dataclass("Typed", [("field", type_), *more])


class Color(Enum):
    RED = "red"


class Colors(Enum):
    RED = "red"
    BLUE = "blue"


VALUES = [
    (int, 1, int | None, []),
    (int | None, None, int, [Effect.OTHER]),
    (int, 1, float, []),
    (float, 1.5, int, [Effect.OTHER]),
    (float, 1.5, Decimal, []),
    (Decimal, Decimal("1.5"), str, []),
    (UUID, UUID(int=1), str, []),
    (date, date(2026, 1, 1), int, [Effect.OTHER]),
    (int, 1, str, [Effect.OTHER]),
    (int, 1, int | str, []),
    (bool, True, int, [Effect.OTHER]),
    (Color, Color.RED, Colors, []),
    (Colors, Colors.BLUE, Color, [Effect.OTHER]),
    (Color, Color.RED, str, []),
    (Literal["a", "b"], "b", Literal["a"], [Effect.OTHER]),
    (Literal[1, 2], 1, int, []),
    (list[int], [1], tuple[int, ...], []),
    (list[int], [1], list[str], [Effect.OTHER]),
    (tuple[int, int], (1, 2), list[int], []),
    (tuple[int, int], (1, 2), tuple[int, int, int], [Effect.OTHER]),
    (dict[str, int], {"a": 1}, dict[str, float], []),
    (dict[str, int], {"a": 1}, list[int], [Effect.OTHER]),
    (int, 1, Any, []),
]


@pytest.mark.parametrize(("old", "value", "new", "expected"), VALUES)
def test_field_of_another_type_is_told_where_it_is_not_read(
    old: Any, value: object, new: Any, expected: list[Effect]
) -> None:
    before, after = typed(old), typed(new)

    assert effects(before, after) == expected
    assert is_read(before, before(value), after) is (expected == [])


@dataclass
class Plain:
    name: str
    note: str = ""


@dataclass
class Leaf:
    size: int


@dataclass
class Tree:
    leaf: Leaf
    below: list[Tree]


@dataclass
class Twig:
    """A leaf with one field more."""

    size: int
    veins: int


@dataclass
class Bush:
    leaf: Twig
    below: list[Bush]


class Entry(TypedDict):
    name: str
    note: NotRequired[str]


class Required(TypedDict):
    name: str
    note: str


class OnlyName(TypedDict):
    name: str


class Model(BaseModel):
    name: str
    note: str = ""


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str


class Kept(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


class Renamed(BaseModel):
    title: str = Field(validation_alias=AliasChoices("title", "name"))
    note: str = ""


class Struct(msgspec.Struct):
    name: str
    note: str = ""


class Sparse(msgspec.Struct, omit_defaults=True):
    name: str
    note: str = ""


class Full(msgspec.Struct):
    name: str
    note: str


class StrictStruct(msgspec.Struct, forbid_unknown_fields=True):
    name: str


NAME = make_dataclass("Name", [("name", str)])
NAME_AND_NOTE = make_dataclass("Note", [("name", str), ("note", str)])
MADE_ANEW = make_dataclass("Made", [("name", str), ("note", str, field(default="", init=False))])

OBJECTS = [
    (Plain, Plain("a"), NAME, [Effect.LOST]),
    (NAME, NAME("a"), Plain, [Effect.NONE]),
    (NAME, NAME("a"), NAME_AND_NOTE, [Effect.WITHOUT]),
    (Plain, Plain("a"), MADE_ANEW, []),
    (MADE_ANEW, MADE_ANEW("a"), NAME, []),
    (Plain, Plain("a"), Model, []),
    (Plain, Plain("a"), Struct, []),
    (Tree, Tree(Leaf(1), [Tree(Leaf(2), [])]), Tree, []),
    (Tree, Tree(Leaf(1), []), Bush, [Effect.WITHOUT]),
    (Bush, Bush(Twig(1, 2), []), Tree, [Effect.LOST]),
    (Entry, {"name": "a"}, Required, [Effect.WITHOUT]),
    (Entry, {"name": "a", "note": "b"}, OnlyName, []),
    (Model, Model(name="a"), Strict, [Effect.REFUSED]),
    (Model, Model(name="a"), Kept, []),
    (Model, Model(name="a"), Renamed, []),
    (Struct, Struct("a"), StrictStruct, [Effect.REFUSED]),
    (Sparse, Sparse("a"), Full, [Effect.WITHOUT]),
    (Plain, Plain("a"), Plain | None, []),
    (Plain | Leaf, Leaf(1), Plain | Leaf | Tree, []),
    (Plain | Leaf, Leaf(1), Plain, [Effect.LOST, Effect.WITHOUT, Effect.NONE]),
    (list[Plain], [Plain("a")], GenericAlias(list, NAME_AND_NOTE), [Effect.WITHOUT]),
]


@pytest.mark.parametrize(("old", "value", "new", "expected"), OBJECTS)
def test_other_fields_are_told_as_they_are_read(old: Any, value: object, new: Any, expected: list[Effect]) -> None:
    assert effects(old, new) == expected
    assert is_read(old, value, new) or not READ.issuperset(expected)


def test_field_that_lost_its_default_may_be_missing_in_old_rows() -> None:
    """Rows may be there of a time before the field: with its default they were read."""
    (change,) = type_changes(json_type(Plain), json_type(NAME_AND_NOTE))

    assert (change.what, change.effect) == ("field Note.note has no default any more", Effect.WITHOUT)
    assert "accept it, if the field was written from the beginning" in change.cure


def test_struct_that_is_written_as_a_list_is_compared_by_the_types_of_its_places() -> None:
    one, other = (msgspec.defstruct("Pair", [("a", int), ("b", type_)], array_like=True) for type_ in (int, str))

    assert effects(one, one) == []
    assert effects(one, other) == [Effect.OTHER]
