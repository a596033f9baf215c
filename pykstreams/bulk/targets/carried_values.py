"""How values travel from one stage of a job to the next: as MessagePack, which describes data and runs no code.

``None``, truth values, 64-bit integers, floats, texts, bytes, lists and dicts are MessagePack's own. All else is an
extension, whose content is MessagePack again::

    1  tuple             the items
    2  set, frozenset    [whether it is frozen, the items]
    3  large integer     decimal digits
    4  Decimal           its text
    5  datetime          [its ISO text, the key of its zone or null]
    6  date, 7  time     its ISO text
    8  timedelta         [days, seconds, microseconds]
    9  UUID              16 bytes
    10 object            [module, class, form, content] of an object of data: see ``_FORMS``

An object is made anew only of a class that is one of data itself, by its fields: what is read cannot call a function
of its choice, which a pickle can.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from importlib import import_module
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

import msgpack

from pykstreams.bulk.targets.target import RowError


def dumps(value: object) -> bytes:
    """Returns a value as bytes; ``RowError`` where it is, or holds, something else than data."""
    try:
        return bytes(msgpack.packb(value, default=_extension, strict_types=True))
    except (ValueError, RecursionError) as error:
        raise RowError(f"a value cannot travel from one stage of the job to the next: {error}") from error


def loads(raw: bytes) -> object:
    """Returns the value."""
    found: object = msgpack.unpackb(raw, ext_hook=_value, strict_map_key=False, use_list=True)
    return found


def _datetime(value: datetime) -> object:
    return [value.isoformat(), getattr(value.tzinfo, "key", None)]


def _to_datetime(content: tuple[str, str | None]) -> datetime:
    text, zone = content
    found = datetime.fromisoformat(text)
    if zone is not None:
        return found.astimezone(ZoneInfo(zone))
    return found.astimezone(UTC) if found.utcoffset() == timedelta() else found


_WRITERS: Final[Mapping[type, tuple[int, Callable[..., object]]]] = {
    tuple: (1, list),
    set: (2, lambda value: [False, list(value)]),
    frozenset: (2, lambda value: [True, list(value)]),
    int: (3, str),
    Decimal: (4, str),
    datetime: (5, _datetime),
    date: (6, date.isoformat),
    time: (7, time.isoformat),
    timedelta: (8, lambda value: [value.days, value.seconds, value.microseconds]),
    UUID: (9, lambda value: value.bytes),
}
_OBJECT: Final = 10
_READERS: Final[Mapping[int, Callable[..., object]]] = {
    1: tuple,
    2: lambda content: (frozenset if content[0] else set)(content[1]),
    3: int,
    4: Decimal,
    5: _to_datetime,
    6: date.fromisoformat,
    7: time.fromisoformat,
    8: lambda content: timedelta(*content),
    9: lambda content: UUID(bytes=content),
    _OBJECT: lambda content: _to_object(*content),
}


def _extension(value: object) -> object:
    kind = type(value)
    if kind in _WRITERS:
        code, write = _WRITERS[kind]
        return msgpack.ExtType(code, dumps(write(value)))
    if kind.__module__ == "numpy" and (item := getattr(value, "item", None)) is not None:
        return item()
    form = _form_of(kind)
    if form is None or "<locals>" in kind.__qualname__:
        raise RowError(
            f"a value of {kind.__module__}.{kind.__qualname__} cannot travel from one stage of the job to the next: "
            "give plain values, or objects of a dataclass, named tuple, enumeration, pydantic model, msgspec struct or "
            "protobuf message that is defined at the top of a module"
        )
    content = _FORMS[form][1](value)
    return msgpack.ExtType(_OBJECT, dumps([kind.__module__, kind.__qualname__, form, content]))


def _value(code: int, raw: bytes) -> object:
    return _READERS[code](loads(raw))


def _to_object(module: str, name: str, form: str, content: object) -> object:
    kind: object = sys.modules.get(module) or import_module(module)
    for part in name.split("."):
        kind = getattr(kind, part)
    if not isinstance(kind, type) or _form_of(kind) != form:
        raise RowError(f"{module}.{name} is no class of data any more; do not change the application during a job")
    return _FORMS[form][2](kind, content)


def _form_of(kind: type) -> str | None:
    return next((form for form, (is_one, _, _) in _FORMS.items() if is_one(kind)), None)


def _to_dataclass(kind: type, content: Mapping[str, object]) -> object:
    made: object = object.__new__(kind)  # as it was, without what its __init__ would do again
    for name, value in content.items():
        object.__setattr__(made, name, value)
    return made


_Form = tuple[Callable[[type], bool], Callable[..., object], Callable[..., object]]
_FORMS: Final[Mapping[str, _Form]] = {
    "enum": (lambda kind: issubclass(kind, Enum), lambda value: value.name, lambda kind, name: kind[name]),
    "namedtuple": (
        lambda kind: issubclass(kind, tuple) and hasattr(kind, "_fields"),
        list,
        lambda kind, items: tuple.__new__(kind, items),
    ),
    "pydantic": (
        lambda kind: hasattr(kind, "model_construct") and hasattr(kind, "model_fields"),
        lambda value: [value.__dict__, list(value.model_fields_set)],
        lambda kind, content: kind.model_construct(set(content[1]), **content[0]),
    ),
    "dataclass": (
        dataclasses.is_dataclass,
        lambda value: {field.name: getattr(value, field.name) for field in dataclasses.fields(value)},
        _to_dataclass,
    ),
    "struct": (
        lambda kind: hasattr(kind, "__struct_fields__"),
        lambda value: {name: getattr(value, name) for name in value.__struct_fields__},
        lambda kind, fields: kind(**fields),
    ),
    "protobuf": (
        lambda kind: hasattr(kind, "DESCRIPTOR") and hasattr(kind, "FromString"),
        lambda value: value.SerializeToString(),
        lambda kind, raw: kind.FromString(raw),
    ),
}
"""Objects of data: how their classes are known, what is kept of one, and how it is made anew."""
