"""Python types and the plain values (dicts, lists, text, numbers) that JSON and Avro know.

``plain_reader`` and ``plain_writer`` compile a type once into a function. Dataclasses are taken apart here,
by their annotations; pydantic models and msgspec structs by their own libraries, which are only imported when
such a type is given. Invariant: ``plain_reader(t)(plain_writer(t)(value)) == value``.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeGuard
from uuid import UUID

import orjson

if TYPE_CHECKING:
    import msgspec
    from pydantic import BaseModel

Convert: TypeAlias = Callable[[Any], Any]
"""A function from values to plain ones, or back; which type it takes is known only when it is made."""


class MismatchError(ValueError):
    """A plain value that does not fit its type; the text starts with the path to it."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(f"{path.removeprefix('.')}: {message}" if path else message)
        self.message = message
        self.path = path

    def below(self, step: str) -> MismatchError:
        """The same, seen from one level up."""
        return MismatchError(self.message, step + self.path)


def is_pydantic(type_: object) -> TypeGuard[type[BaseModel]]:
    """Whether a type is a pydantic model."""
    return isinstance(type_, type) and callable(getattr(type_, "model_validate_json", None))


def is_struct(type_: object) -> TypeGuard[type[msgspec.Struct]]:
    """Whether a type is a msgspec struct."""
    return isinstance(type_, type) and hasattr(type_, "__struct_fields__")


def plain_writer(type_: object) -> Convert:
    """Returns the function that takes values of a type apart, down to what Avro's logical types take."""
    if is_pydantic(type_):
        return lambda value: value.model_dump(by_alias=True)
    if is_struct(type_):
        import msgspec

        kept = (bytes, bytearray, datetime, date, time, Decimal, UUID)
        return lambda value: msgspec.to_builtins(value, builtin_types=kept)
    if dataclasses.is_dataclass(type_):
        return lambda value: _without_enums(dataclasses.asdict(value))
    return _without_enums


def json_writer(type_: object) -> Convert:
    """Returns the function that takes values of a type apart, down to what JSON has."""
    if is_pydantic(type_):
        return lambda value: value.model_dump(mode="json", by_alias=True)
    if is_struct(type_):
        import msgspec

        return msgspec.to_builtins
    return lambda value: orjson.loads(orjson.dumps(value))


def plain_reader(type_: object) -> Convert:
    """Returns the function that makes values of a type.

    Fields that a dataclass does not have are ignored, missing ones take their defaults. The function raises
    ``MismatchError`` (a ``ValueError``) for a value that does not fit, ``plain_reader`` itself ``TypeError``
    for a type it cannot make.

    >>> plain_reader(list[int | None])([1, None])
    [1, None]
    """
    if is_pydantic(type_):
        return type_.model_validate
    if is_struct(type_):
        import msgspec

        return lambda plain: msgspec.convert(plain, type_)
    return _reader(type_, {})


def _without_enums(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {key: _without_enums(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_enums(inner) for inner in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _without_enums(dataclasses.asdict(value))
    return value


def _reader(type_: object, made: dict[object, Convert]) -> Convert:
    """``made`` holds the readers of dataclasses, so that a type may contain itself."""
    if type_ in (Any, object):
        return lambda plain: plain
    if (simple := _simple_reader(type_)) is not None:
        return simple
    if dataclasses.is_dataclass(type_) and isinstance(type_, type):
        return _dataclass_reader(type_, made)
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin is typing.Annotated:
        return _reader(arguments[0], made)
    if isinstance(type_, typing.NewType):
        return _reader(type_.__supertype__, made)
    if origin in (typing.Union, types.UnionType):
        return _union_reader(type_, [_reader(argument, made) for argument in arguments])
    if origin is typing.Literal:
        return _member_reader(type_, arguments)
    if type_ is tuple:
        return _list_reader(lambda plain: plain, tuple)
    if type_ is list:
        return _instance_reader(type_, list)
    if type_ is dict or typing.is_typeddict(type_):
        return _instance_reader(type_, dict)
    if origin in (list, Sequence):
        return _list_reader(_reader(arguments[0], made), list)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _list_reader(_reader(arguments[0], made), tuple)
    if origin is tuple:
        return _tuple_reader([_reader(argument, made) for argument in arguments])
    if origin in (dict, Mapping) and arguments[0] is str:
        return _dict_reader(_reader(arguments[1], made))
    raise TypeError(f"values of type {type_!r} cannot be made from plain ones")


def _simple_reader(type_: object) -> Convert | None:
    if type_ in (None, types.NoneType):
        return _member_reader("None", (None,))
    if type_ is float:
        return _read_float
    if type_ is int:
        return _read_int
    if type_ in (bool, str, bytes):
        return _instance_reader(type_, type_)
    if type_ is Decimal:
        return _read_decimal
    if type_ in (datetime, date, time):
        return _text_reader(type_, type_.fromisoformat)
    if type_ is UUID:
        return _text_reader(UUID, UUID)
    if isinstance(type_, type) and issubclass(type_, Enum):
        return _text_reader(type_, type_, text=object)
    return None


def _mismatch(type_: object, plain: object) -> MismatchError:
    name = type_.__name__ if isinstance(type_, type) and not typing.get_args(type_) else str(type_)
    return MismatchError(f"expected {name}, got {plain!r}")


def _read_float(plain: object) -> float:
    if isinstance(plain, int | float) and not isinstance(plain, bool):
        return float(plain)
    raise _mismatch(float, plain)


def _read_int(plain: object) -> int:
    if isinstance(plain, int) and not isinstance(plain, bool):
        return plain
    raise _mismatch(int, plain)


def _instance_reader(type_: object, kind: type) -> Convert:
    def read(plain: object) -> object:
        if isinstance(plain, kind):
            return plain
        raise _mismatch(type_, plain)

    return read


def _text_reader(type_: type, parse: Convert, text: type = str) -> Convert:
    def read(plain: object) -> object:
        if type(plain) is type_:
            return plain
        if isinstance(plain, text):
            try:
                return parse(plain)
            except ValueError as error:
                raise _mismatch(type_, plain) from error
        raise _mismatch(type_, plain)

    return read


def _read_decimal(plain: object) -> Decimal:
    """Reads text, or a number: of one with a point the digits that it is written with, seventeen at most."""
    if isinstance(plain, Decimal):
        return plain
    if isinstance(plain, str | int | float) and not isinstance(plain, bool):
        try:
            return Decimal(str(plain))
        except InvalidOperation as error:
            raise _mismatch(Decimal, plain) from error
    raise _mismatch(Decimal, plain)


def _member_reader(type_: object, members: tuple[object, ...]) -> Convert:
    def read(plain: object) -> object:
        for member in members:
            if plain == member and type(plain) is type(member):
                return member
        raise _mismatch(type_, plain)

    return read


def _union_reader(type_: object, readers: list[Convert]) -> Convert:
    def read(plain: object) -> object:
        for reader in readers:
            try:
                return reader(plain)
            except MismatchError:
                continue
        raise _mismatch(type_, plain)

    return read


def _list_reader(entry: Convert, kind: type) -> Convert:
    def read(plain: object) -> object:
        if not isinstance(plain, list | tuple):
            raise _mismatch(kind, plain)
        return kind(_at(f"[{index}]", entry, inner) for index, inner in enumerate(plain))

    return read


def _tuple_reader(entries: list[Convert]) -> Convert:
    def read(plain: object) -> object:
        if not isinstance(plain, list | tuple) or len(plain) != len(entries):
            raise MismatchError(f"expected a list of {len(entries)}, got {plain!r}")
        pairs = zip(entries, plain, strict=True)
        return tuple(_at(f"[{index}]", entry, inner) for index, (entry, inner) in enumerate(pairs))

    return read


def _dict_reader(entry: Convert) -> Convert:
    def read(plain: object) -> object:
        if not isinstance(plain, dict):
            raise _mismatch(dict, plain)
        return {key: _at(f"[{key!r}]", entry, inner) for key, inner in plain.items()}

    return read


def _dataclass_reader(type_: type, made: dict[object, Convert]) -> Convert:
    if type_ in made:
        return lambda plain: made[type_](plain)
    made[type_] = _not_yet
    hints = typing.get_type_hints(type_, include_extras=True)
    fields = []
    for field in dataclasses.fields(type_):
        if not field.init:
            continue
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        try:
            reader = _reader(hints[field.name], made)
        except TypeError as error:
            raise TypeError(f"field {type_.__name__}.{field.name}: {error}") from error
        fields.append((field.name, f".{field.name}", reader, required))

    def read(plain: object) -> object:
        if not isinstance(plain, dict):
            raise _mismatch(type_, plain)
        values = {}
        for name, step, reader, required in fields:
            if name in plain:
                values[name] = _at(step, reader, plain[name])
            elif required:
                raise MismatchError("is missing, and has no default", step)
        return type_(**values)

    made[type_] = read
    return read


def _not_yet(plain: object) -> NoReturn:
    raise AssertionError("a reader ran before it was made")


def _at(step: str, reader: Convert, plain: object) -> object:
    try:
        return reader(plain)
    except MismatchError as error:
        raise error.below(step) from error.__cause__
