"""Numbers that JSON does not have, NaN and the infinite ones, which all its writers write as ``null``.

A reader of ``float`` refuses that, and one of ``float | None`` has a ``None`` that nobody wrote. Invariant: a value
without such numbers costs no more than the search for ``null`` in its text; one with a ``null`` of another reason a
look at the floats that its type has, and one without type a reading of the text.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias, cast
from uuid import UUID

import orjson

from pykstreams.serdes.json.field_types import UnresolvedFieldError, dataclass_of, evaluated
from pykstreams.serdes.json.models import is_pydantic, is_struct, json_part
from pykstreams.serdes.json.union_members import json_object, members_of, unwrapped

if TYPE_CHECKING:
    from pydantic import BaseModel

Ask: TypeAlias = Callable[[object], bool]
"""A question about a value."""

_NO_FLOATS: Final = frozenset((str, int, bool, bytes, Decimal, datetime, date, time, UUID, None, types.NoneType))
_LISTS: Final = (list, tuple, Sequence)
_DICTS: Final = (dict, Mapping)


class LostNumberError(ValueError):
    """A number that JSON does not have; the text starts with the path to it."""

    def __init__(self, number: float, path: str) -> None:
        place = f"{path.removeprefix('.')}: " if path else ""
        super().__init__(
            f"{place}JSON has no number {number}; have None in a field of float | None, or a text, in its place, or "
            "take a serde that has it, as DoubleSerde"
        )


def refuse_lost_numbers(value: object, text: bytes) -> None:
    """Raises ``LostNumberError`` if a number of a value has become a ``null`` in its JSON.

    >>> refuse_lost_numbers({"a": [1.0, math.inf]}, b'{"a":[1.0,null]}')
    Traceback (most recent call last):
        ...
    pykstreams.serdes.json.lost_numbers.LostNumberError: a[1]: JSON has no number inf; have None in a field of ...
    """
    try:
        written = orjson.loads(text)
    except orjson.JSONDecodeError:  # of a model that writes NaN itself
        written = json.loads(text)
    if written != value:  # as plain values are, at once
        _compare(value, written, "")


def question_of_lost_numbers(type_: object) -> Ask | None:
    """Returns the function that tells whether a value of a type may have numbers that JSON does not have.

    ``None`` for a type whose values have no floats.
    """
    if not _has_floats(type_, set()):
        return None
    ask = _ask(type_, {})
    return _perhaps if ask is loses_numbers else ask


def _perhaps(value: object) -> bool:
    """The answer for values of any type: to compare them with what was written costs less than to go through them."""
    return True


def loses_numbers(value: object) -> bool:
    """Whether there are numbers in a value, whatever it is, that JSON does not have."""
    kind: type = type(value)
    if kind is float:
        return not math.isfinite(cast("float", value))
    if kind in _NO_FLOATS:
        return False
    if isinstance(value, dict):
        return any(map(loses_numbers, value.values()))
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(loses_numbers, value))
    if is_pydantic(kind) or is_struct(kind):
        return loses_numbers(_taken_apart(value))
    if dataclasses.is_dataclass(kind):
        return any(loses_numbers(getattr(value, one.name, None)) for one in dataclasses.fields(kind))
    return False


def _has_floats(type_: object, seen: set[object]) -> bool:
    """Whether a type is, or has inside, one of floats, or one that may be anything."""
    type_ = unwrapped(type_)
    if type_ in seen or type_ in _NO_FLOATS or typing.get_origin(type_) is typing.Literal:
        return False
    if isinstance(type_, type) and issubclass(type_, Enum):
        return False
    seen.add(type_)
    parts = _parts(type_)
    return parts is None or any(_has_floats(one, seen) for one in parts)


def _parts(type_: object) -> Collection[object] | None:
    """The types inside of another; ``None`` of ``float``, and where they are not known."""
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin in (typing.Union, types.UnionType):
        return members_of(type_)
    if origin in _LISTS:
        return [one for one in arguments if one is not Ellipsis]
    if origin in _DICTS:
        return arguments[1:]
    fields = _field_types(type_)
    return None if fields is None else fields.values()


def _field_types(type_: object) -> Mapping[str, object] | None:
    """The types of the fields of an object by the names of its attributes; ``None`` where these are not all."""
    if is_pydantic(type_):
        if type_.model_config.get("extra") == "allow":
            return None
        computed = {name: one.return_type for name, one in type_.model_computed_fields.items()}
        return {name: one.annotation for name, one in type_.model_fields.items() if not one.exclude} | computed
    if is_struct(type_):
        from msgspec import structs

        return {one.name: one.type for one in evaluated(type_, lambda: structs.fields(type_))}
    try:
        known = json_object(type_)
    except UnresolvedFieldError:  # of a dataclass in a model, whose library may know a name from elsewhere
        return None
    return None if known is None else known.fields


def _ask(type_: object, made: dict[object, Ask]) -> Ask:
    """Makes the question of a type that has floats, with those of all such types inside of it."""
    type_ = unwrapped(type_)
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if type_ is float:
        return _is_lost
    if origin in (typing.Union, types.UnionType):
        there = [one for one in members_of(type_) if one not in (None, types.NoneType)]
        return _ask(there[0], made) if len(there) == 1 else loses_numbers
    if origin in (list, Sequence) or (origin is tuple and arguments[1:] == (Ellipsis,)):
        return _of_entries(_ask(arguments[0], made))
    if origin in _DICTS:
        return _of_values(_ask(arguments[1], made))
    if type_ in made:
        return lambda value: made[type_](value)
    class_ = type_ if is_pydantic(type_) or is_struct(type_) else dataclass_of(type_)
    if class_ is None or (fields := _field_types(type_)) is None:
        return loses_numbers
    made[type_] = loses_numbers
    asked = [(name, _ask(one, made)) for name, one in fields.items() if _has_floats(one, set())]
    made[type_] = _of_fields(class_, asked)
    return made[type_]


# A value is not checked when it is written, so what is of another type than its annotation says is asked by itself.


def _is_lost(value: object) -> bool:
    return not math.isfinite(value) if isinstance(value, float) else loses_numbers(value)


def _of_entries(ask: Ask) -> Ask:
    if ask is loses_numbers:
        return loses_numbers
    return lambda value: any(map(ask, value)) if isinstance(value, list | tuple) else loses_numbers(value)


def _of_values(ask: Ask) -> Ask:
    if ask is loses_numbers:
        return loses_numbers
    return lambda value: any(map(ask, value.values())) if isinstance(value, dict) else loses_numbers(value)


def _of_fields(type_: type, fields: Sequence[tuple[str, Ask]]) -> Ask:
    floats = [name for name, ask in fields if ask is _is_lost]
    others = [one for one in fields if one[1] is not _is_lost]

    def asked(value: object) -> bool:
        if not isinstance(value, type_):
            return loses_numbers(value)
        for name in floats:  # most that there are, and a call for each would cost more than all else
            number = getattr(value, name, None)
            if type(number) is float:
                if not math.isfinite(number):
                    return True
            elif number is not None and loses_numbers(number):
                return True
        return bool(others) and any(ask(getattr(value, name, None)) for name, ask in others)

    return asked


def _taken_apart(value: object) -> object:
    """The parts of a model or a struct, with the numbers that JSON does not have."""
    if is_pydantic(type(value)):
        return cast("BaseModel", value).model_dump(by_alias=True)  # for JSON it would leave some of them out
    return json_part(value)


def _compare(value: object, written: object, path: str) -> None:
    """Raises ``LostNumberError`` for the first ``null`` that stands for a number."""
    if written is None:
        if isinstance(value, float):
            raise LostNumberError(value, path)
        return
    if not isinstance(written, dict | list):
        return
    if is_pydantic(type(value)) or is_struct(type(value)):
        value = _taken_apart(value)
    if isinstance(written, list):
        for index, (inner, one) in enumerate(zip(cast("Iterable[object]", value), written, strict=False)):
            _compare(inner, one, f"{path}[{index}]")
        return
    inside = value if isinstance(value, dict) else {name: getattr(value, name, None) for name in written}
    for name, one in written.items():
        _compare(inside.get(name), one, f"{path}.{name}" if name.isidentifier() else f"{path}[{name!r}]")
