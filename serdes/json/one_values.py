"""Models of keys in one form: of values that are equal and look different, such as ``Decimal("1.0")`` and ``("1.00")``.

A model is written by its own library, whatever serializers it has; so what is in it is replaced, in a copy, by the one
of all values equal to it. Invariant: what is the one already is left as it is, so that its bytes are those of the
library, and costs no copy.
"""

from __future__ import annotations

import copy
import dataclasses
import operator
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias, cast
from uuid import UUID

from pykstreams.serdes.json.field_types import evaluated
from pykstreams.serdes.json.models import is_pydantic, is_struct
from pykstreams.serdes.json.structured import Convert
from pykstreams.serdes.json.union_members import unwrapped
from pykstreams.serdes.text_values import one_datetime, one_decimal, one_time

if TYPE_CHECKING:
    from pydantic import BaseModel

_Field: TypeAlias = tuple[str, Convert]

_NOT_SET: Final = object()
_MOST_DIGITS: Final = 1000  # of a whole number that is written without exponent


@cache
def model_form(type_: type) -> Convert:
    """Returns the function that takes models of a class apart, down to what JSON has, alike for equal ones.

    It takes models of classes below that one as well.
    """
    one_of = _one_model(type_)
    if is_pydantic(type_):

        def write(value: object) -> object:
            return cast("BaseModel", one_of(value)).model_dump(mode="json", by_alias=True)

    else:
        import msgspec

        def write(value: object) -> object:
            return msgspec.to_builtins(one_of(value), order="deterministic")  # of sets

    def form(value: object) -> object:
        kind: type = type(value)
        return write(value) if kind is type_ else model_form(kind)(value)

    return form


def _one_value(value: object) -> object:
    """Returns the one of all values that are equal to what may be inside of a model."""
    kind: type = type(value)
    if kind is float:
        return value or 0.0  # not -0.0, which is equal to 0.0
    if isinstance(value, Decimal):
        return _one_number(value)
    if isinstance(value, datetime):
        return one_datetime(value)
    if isinstance(value, time):
        return one_time(value)
    if kind is dict:
        return _one_dict(value, _one_value, _one_value)
    if kind in (list, tuple):
        return _one_list(value, _one_value)
    if isinstance(value, set | frozenset):
        return _IN_ORDER.get(kind, kind)(map(_one_value, value))
    if is_pydantic(kind) or is_struct(kind) or dataclasses.is_dataclass(kind):
        return _one_model(kind)(value)
    return value


def _of_type(type_: object) -> Convert | None:
    """Returns the function for values of a type, which may also be such as equal one of it (1 and 1.0, 1 and ``True``).

    ``None`` where equal values look the same.
    """
    type_ = unwrapped(type_)
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if type_ in (str, bytes, bool, date, UUID, types.NoneType) or (isinstance(type_, type) and issubclass(type_, Enum)):
        return None
    if type_ is float:
        return _one_float
    if type_ is int:
        return lambda value: int(value) if type(value) is bool else value
    if origin in (typing.Union, types.UnionType) and len(arguments) == 2 and types.NoneType in arguments:
        inner = _of_type(next(one for one in arguments if one is not types.NoneType))
        return None if inner is None else lambda value: None if value is None else inner(value)
    if origin in (list, Sequence) or (origin is tuple and arguments[1:] == (Ellipsis,)):
        entry = _of_type(arguments[0])
        return None if entry is None else lambda value: _one_list(value, entry)
    if origin is tuple:
        entries = [_of_type(one) or _same for one in arguments]
        return lambda value: _one_tuple(value, entries)
    if origin in (dict, Mapping):
        key_of, value_of = (_of_type(one) or _same for one in arguments)
        return lambda value: _one_dict(value, key_of, value_of)
    return _one_value


def _one_list(value: object, entry: Convert) -> object:
    if not isinstance(value, list | tuple) or (kind := type(value)) not in (list, tuple):
        return _one_value(value)
    made = kind(map(entry, value))
    return value if all(map(operator.is_, made, value)) else made


def _one_tuple(value: object, entries: Sequence[Convert]) -> object:
    if not isinstance(value, tuple) or len(value) != len(entries):
        return _one_value(value)
    made = tuple(entry(one) for entry, one in zip(entries, value, strict=True))
    return value if all(map(operator.is_, made, value)) else made


def _one_dict(value: object, key_of: Convert, value_of: Convert) -> object:
    if not isinstance(value, dict):
        return value
    return {key_of(key): value_of(one) for key, one in value.items()}


@cache
def _one_model(type_: type) -> Convert:
    """Returns the function that gives the one of all models of a class that are equal."""
    fields, defaults, replace = _fields(type_), _left_out(type_), _replace(type_)
    others = "__pydantic_extra__" if is_pydantic(type_) and type_.model_config.get("extra") == "allow" else None

    def one_model(value: object) -> object:
        changed: dict[str, object] = {}
        for name, one_of in fields:
            old = getattr(value, name, _NOT_SET)
            new = old if old is _NOT_SET else one_of(old)
            if name in defaults and new == one_of(defaults[name]):
                new = defaults[name]
            if new is not old:
                changed[name] = new
        if others is not None:
            changed |= {name: _one_value(one) for name, one in getattr(value, others).items()}
        return replace(value, changed) if changed else value

    return one_model


def _fields(type_: type) -> list[_Field]:
    """The fields that equal models may have different values in."""
    if is_pydantic(type_):
        hints = {name: field.annotation for name, field in type_.model_fields.items()}
    elif is_struct(type_):
        from msgspec.structs import fields

        hints = {one.name: one.type for one in evaluated(type_, lambda: fields(type_))}
    else:
        hints = dict.fromkeys((one.name for one in dataclasses.fields(type_)), object)
        with suppress(NameError):  # its library may know a name from elsewhere
            hints |= {name: hint for name, hint in typing.get_type_hints(type_).items() if name in hints}
    found = [(name, _of_type(hint) or (_same if name in _left_out(type_) else None)) for name, hint in hints.items()]
    return [(name, one_of) for name, one_of in found if one_of is not None]


def _left_out(type_: type) -> dict[str, object]:
    """The defaults that a struct leaves out where a field has this very object, and not where it has an equal one."""
    if not is_struct(type_) or not type_.__struct_config__.omit_defaults:
        return {}
    from msgspec import NODEFAULT
    from msgspec.structs import fields

    return {one.name: one.default for one in fields(type_) if one.default is not NODEFAULT}


def _replace(type_: type) -> Callable[[object, dict[str, object]], object]:
    """Returns the function that makes a copy with other values in some fields, which nobody checks again."""
    if is_pydantic(type_):
        return lambda value, changed: cast("BaseModel", value).model_copy(update=changed)
    set_field: Callable[[object, str, object], None] = object.__setattr__
    if is_struct(type_):
        from msgspec.structs import force_setattr

        set_field = cast("Callable[[object, str, object], None]", force_setattr)

    def replaced(value: object, changed: dict[str, object]) -> object:
        made = copy.copy(value)
        for name, one in changed.items():
            set_field(made, name, one)
        return made

    return replaced


def _same(value: object) -> object:
    return value


def _one_float(value: object) -> object:
    if isinstance(value, float):
        return value or 0.0
    return float(value) if isinstance(value, int) else _one_value(value)


def _one_number(value: Decimal) -> Decimal:
    """The number without zeros behind its point; a whole one without exponent, as most are made."""
    number = one_decimal(value)
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and exponent > 0 and number.adjusted() < _MOST_DIGITS:
        number = Decimal(int(number))
    return value if number.same_quantum(value) and (value or not value.is_signed()) else number


class _SetInOrder(set[object]):
    """A set that is gone through in the order of its texts, and not in that of hashes, which each process has."""

    def __iter__(self) -> Iterator[object]:
        return iter(sorted(super().__iter__(), key=repr))


class _FrozenSetInOrder(frozenset[object]):
    """The same, for sets that cannot be changed."""

    def __iter__(self) -> Iterator[object]:
        return iter(sorted(super().__iter__(), key=repr))


_IN_ORDER: Final[Mapping[type, type]] = {set: _SetInOrder, frozenset: _FrozenSetInOrder}
