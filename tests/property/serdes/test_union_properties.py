"""What is written of a member of a union is read as the same value, or the union is refused when its serde is made."""

from __future__ import annotations

import dataclasses
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from types import GenericAlias
from typing import Any, Literal, Union
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams.serdes import JsonSerde
from pykstreams.serdes.json.json_keys import JsonKeySerde


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Size(Enum):
    SMALL = "small"
    LARGE = 2


TYPES: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(max_size=3) | st.sampled_from(["red", "2026-01-02", "1.5", str(UUID(int=1))]),
    bool: st.booleans(),
    None: st.none(),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False, places=2),
    date: st.dates(),
    datetime: st.datetimes(),
    UUID: st.uuids(),
    Color: st.sampled_from(Color),
    Size: st.sampled_from(Size),
    Literal["a", "b"]: st.sampled_from(["a", "b"]),
    Literal["b", 2]: st.sampled_from(["b", 2]),
    Literal["c"]: st.just("c"),
}
DEFAULTS: dict[Any, Any] = {
    int: 0,
    float: 0.5,
    str: "",
    bool: True,
    None: None,
    Decimal: Decimal("1.5"),
    date: date(2026, 1, 2),
    datetime: datetime(2026, 1, 2, 3),
    UUID: UUID(int=1),
    Color: Color.RED,
    Size: Size.LARGE,
    Literal["a", "b"]: "a",
    Literal["b", 2]: 2,
    Literal["c"]: "c",
}
SIMPLE = st.sampled_from(list(TYPES))
FIELDS = st.dictionaries(st.sampled_from("abc"), st.tuples(SIMPLE, st.booleans()), max_size=3)


def object_type(number: int, fields: dict[str, tuple[Any, bool]]) -> Any:
    """A dataclass with these fields; those that need not be there come last."""
    made: list[Any] = []
    for name, (type_, is_required) in sorted(fields.items(), key=lambda item: not item[1][1]):
        made.append((name, type_) if is_required else (name, type_, dataclasses.field(default=DEFAULTS[type_])))
    return dataclasses.make_dataclass(f"Member{number}", made)


@st.composite
def members(draw: st.DrawFn) -> tuple[Any, st.SearchStrategy[Any]]:
    """A type, and values of it."""
    kind = draw(st.sampled_from(["simple", "object", "object", "object", "list", "tuple", "pair", "dict"]))
    if kind == "simple":
        type_ = draw(SIMPLE)
        return type_, TYPES[type_]
    if kind == "object":
        fields = draw(FIELDS)
        made = object_type(draw(st.integers(0, 99)), fields)
        return made, st.builds(made, **{name: TYPES[type_] for name, (type_, _) in fields.items()})
    inner, values = draw(members())
    if kind == "list":
        return GenericAlias(list, (inner,)), st.lists(values, max_size=2)
    if kind == "tuple":
        return GenericAlias(tuple, (inner, ...)), st.lists(values, max_size=2).map(tuple)
    if kind == "pair":
        return GenericAlias(tuple, (inner, int)), st.tuples(values, TYPES[int])
    return GenericAlias(dict, (str, inner)), st.dictionaries(st.sampled_from("abc"), values, max_size=2)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_what_is_written_of_a_member_is_read_as_it_or_the_union_is_refused(data: st.DataObject) -> None:
    found = data.draw(st.lists(members(), min_size=2, max_size=3))
    union: Any = Union[tuple(type_ for type_, _ in found)]  # noqa: UP007
    try:
        serdes: list[Any] = [JsonSerde(union), JsonKeySerde(union)]
    except TypeError as refused:
        assert "cannot be told apart" in str(refused)
        return
    value = data.draw(data.draw(st.sampled_from([values for _, values in found])))
    for serde in serdes:
        read = serde.deserialize("t", serde.serialize("t", value))
        assert (read, type(read)) == (value, type(value))
