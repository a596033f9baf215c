"""Python types and the plain values (dicts, lists, text, numbers) that JSON and Avro know.

``plain_reader`` and ``plain_writer`` compile a type once into a function. Dataclasses are taken apart here,
by their annotations; pydantic models and msgspec structs by their own libraries, which are only imported when
such a type is given. Invariant: ``plain_reader(t)(plain_writer(t)(value)) == value``.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias, TypeVar, cast
from uuid import UUID

import orjson

from pykstreams.serdes.json.field_types import UnresolvedFieldError, dataclass_of, field_types
from pykstreams.serdes.json.lost_numbers import loses_numbers, refuse_lost_numbers
from pykstreams.serdes.json.models import is_pydantic, is_struct, json_part, json_text
from pykstreams.serdes.json.union_members import (
    JsonObject,
    alike,
    json_object,
    members_of,
    name_of_type,
    read_kinds,
    read_late,
    takes,
    unwrapped,
    written_kinds,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

Convert: TypeAlias = Callable[[Any], Any]
"""A function from values to plain ones, or back; which type it takes is known only when it is made."""

_AS_THEY_ARE = (str, int, float, types.NoneType)
"""Classes of values that have one plain value, which is equal to them."""


class MismatchError(ValueError):
    """A plain value that does not fit its type; the text starts with the path to it."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(f"{path.removeprefix('.')}: {message}" if path else message)
        self.message = message
        self.path = path

    def below(self, step: str) -> MismatchError:
        """The same, seen from one level up."""
        return MismatchError(self.message, step + self.path)


def plain_writer(type_: object) -> Convert:
    """Returns the function that takes values of a type apart, down to what Avro's logical types take."""
    if is_pydantic(type_):
        return lambda value: _without_enums(value.model_dump(by_alias=True))
    if is_struct(type_):
        import msgspec

        kept = (bytes, bytearray, datetime, date, time, Decimal, UUID)
        return lambda value: msgspec.to_builtins(value, builtin_types=kept)
    if dataclasses.is_dataclass(type_):
        return lambda value: _without_enums(dataclasses.asdict(value))
    return _without_enums


def json_writer(type_: object) -> Convert:
    """Returns the function that takes values of a type apart, down to what JSON has.

    It raises ``LostNumberError`` (a ``ValueError``) for NaN and infinite numbers.
    """
    take_apart = json_part if is_pydantic(type_) or is_struct(type_) else _by_text

    def write(value: object) -> object:
        if loses_numbers(value):
            refuse_lost_numbers(value, json_text(value))
        return take_apart(value)

    return write


def _by_text(value: object) -> object:
    return orjson.loads(json_text(value))


def plain_reader(type_: object, *, of_json: bool = False, refused: Collection[object] = ()) -> Convert:
    """Returns the function that makes values of a type.

    Fields that a dataclass does not have are ignored, missing ones take their defaults; a ``TypedDict`` keeps those
    that it does not know, and has all that it requires. Of a union the member is made whose fields fit, or else the one
    that is of the kind. The function raises ``MismatchError`` (a ``ValueError``) for a value that does not fit,
    ``plain_reader`` itself ``TypeError`` for a type it cannot make.

    :param of_json: whether plain values are no more than JSON has. Refused are then also unions whose members are text
        alike, and fields that orjson does not write.
    :param refused: types that the plain values do not have, and that are refused inside of others.

    >>> plain_reader(list[int | None])([1, None])
    [1, None]
    """
    if is_pydantic(type_):
        return _parsing_reader(type_) if bytes in refused else type_.model_validate
    if is_struct(type_):
        import msgspec

        return lambda plain: msgspec.convert(plain, type_, str_keys=of_json)
    return _Readers(type_, of_json=of_json, refused=refused).of(type_)


def _parsing_reader(type_: type[BaseModel]) -> Convert:
    """The reader of a pydantic model as of JSON text: a strict one takes a time from text, but not from a ``str``."""
    from pydantic_core import to_json

    return lambda plain: type_.model_validate_json(to_json(plain))


def _without_enums(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {_without_enums(key): _without_enums(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_enums(inner) for inner in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _without_enums(dataclasses.asdict(value))
    if is_pydantic(type(value)) or is_struct(type(value)):
        return plain_writer(type(value))(value)
    return value


class _Readers:
    """The readers of one type and of all that is inside of it; a type may contain itself."""

    def __init__(self, whole: object, *, of_json: bool, refused: Collection[object]) -> None:
        self._whole = whole
        self._of_json = of_json
        self._refused = refused
        self._made: dict[object, Convert] = {}

    def of(self, type_: object, *, exact: bool = False) -> Convert:
        """Makes the reader of a type; an exact one takes no objects with fields that the type does not know."""
        type_ = unwrapped(type_)
        if type_ in (Any, object):
            return lambda plain: plain
        if type_ in self._refused:
            name, cure = name_of_type(type_), self._own_serde()
            raise TypeError(f"JSON has no {name}; take str, such as their base64, {cure}")
        if (simple := _simple_reader(type_)) is not None:
            return simple
        if isinstance(type_, type) and issubclass(type_, Enum):
            return self._enum_reader(type_)
        if (known := json_object(type_)) is not None:
            reader = self._object_reader(type_, known)
            return _exact_reader(type_, reader, known) if exact else reader
        if is_pydantic(type_) or is_struct(type_):
            return _model_reader(type_, plain_reader(type_, of_json=self._of_json, refused=self._refused))
        origin, arguments = typing.get_origin(type_), typing.get_args(type_)
        if origin in (typing.Union, types.UnionType):
            return self._union_reader(type_, exact=exact)
        if origin is typing.Literal:
            return _first_reader(type_, [self._member_reader(type_, one) for one in arguments])
        if type_ is tuple:
            return _list_reader(lambda plain: plain, tuple)
        if type_ in (list, Sequence):
            return _instance_reader(type_, list)
        if type_ in (dict, Mapping):
            return _instance_reader(type_, dict)
        if origin in (list, Sequence):
            return _list_reader(self.of(arguments[0], exact=exact), list)
        if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
            return _list_reader(self.of(arguments[0], exact=exact), tuple)
        if origin is tuple:
            return _tuple_reader([self.of(argument, exact=exact) for argument in arguments])
        if origin in (dict, Mapping) and unwrapped(arguments[0]) is str:
            return _dict_reader(self.of(arguments[1], exact=exact))
        raise TypeError(self._unknown(type_, origin, arguments))

    def _unknown(self, type_: object, origin: object, arguments: tuple[object, ...]) -> str:
        name, cure = name_of_type(type_), self._own_serde()
        if isinstance(type_, TypeVar):
            return f"the type {type_.__name__} is not said; give the class its types in brackets, {cure}"
        if origin in (dict, Mapping):
            text_keys = f"dict[str, {name_of_type(arguments[1])}]"
            return f"the keys of {name} are no text, which those of objects in JSON are; take {text_keys}, {cure}"
        return f"values of type {name} cannot be made from plain ones (text, numbers, lists, dicts); take those, {cure}"

    def _own_serde(self) -> str:
        whole = name_of_type(self._whole)
        return f"or give {whole} a serde of your own, types.register({whole}, serde)"

    def _enum_reader(self, type_: type[Enum]) -> Convert:
        by_value = _text_reader(type_, type_, text=object)
        parsed = [self._member_reader(type_, one) for one in type_ if not isinstance(one.value, _AS_THEY_ARE)]
        return _first_reader(type_, [*parsed, by_value]) if parsed else by_value

    def _member_reader(self, type_: object, member: object) -> Convert:
        """The reader of one member of an enumeration, by its plain value, or of a value that stands for itself."""
        written = member.value if isinstance(member, Enum) else member
        if isinstance(written, _AS_THEY_ARE):
            return _value_reader(type_, written, member)
        return _parsed_reader(type_, self._of_value(written), written, member)

    def _of_value(self, value: object) -> Convert:
        """The reader of values that are like this one."""
        if type(value) is tuple:
            return _tuple_reader([self._of_value(one) for one in value])
        try:
            return self.of(type(value))
        except TypeError:
            return lambda plain: plain

    def _object_reader(self, type_: object, known: JsonObject) -> Convert:
        if is_pydantic(type_) or is_struct(type_):
            return _model_reader(type_, plain_reader(type_, of_json=self._of_json, refused=self._refused))
        if type_ in self._made:
            return lambda plain: self._made[type_](plain)
        self._made[type_] = _not_yet
        if (class_ := dataclass_of(type_)) is not None:
            made = self._dataclass_reader(type_, class_)
        else:
            made = self._typed_dict_reader(type_, known)
        self._made[type_] = made
        return made

    def _dataclass_reader(self, type_: object, class_: type) -> Convert:
        hints = field_types(type_)
        fields = []
        for field in dataclasses.fields(class_):
            if not field.init:
                continue
            if self._of_json and field.name.startswith("_"):
                raise TypeError(
                    f"field {name_of_type(type_)}.{field.name} is not written to JSON because of its underscore; "
                    "rename it, or give it init=False"
                )
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            fields.append((field.name, f".{field.name}", self._of_field(type_, field.name, hints), required))

        def read(plain: object) -> object:
            if not isinstance(plain, dict):
                raise _mismatch(type_, plain)
            values = {}
            for name, step, reader, required in fields:
                if name in plain:
                    values[name] = _at(step, reader, plain[name])
                elif required:
                    raise _missing(name)
            return class_(**values)

        return read

    def _typed_dict_reader(self, type_: object, known: JsonObject) -> Convert:
        fields = {name: (f".{name}", self._of_field(type_, name, known.fields)) for name in known.fields}
        required = [name for name in fields if name in known.required]

        def read(plain: object) -> object:
            if not isinstance(plain, dict):
                raise _mismatch(type_, plain)
            for name in required:
                if name not in plain:
                    raise _missing(name)
            return {
                name: _at(*fields[name], inner) if name in fields else inner  # others are kept as they are
                for name, inner in plain.items()
            }

        return read

    def _of_field(self, type_: object, name: str, hints: Mapping[str, object]) -> Convert:
        try:
            return self.of(hints[name])
        except UnresolvedFieldError:
            raise
        except TypeError as error:
            raise TypeError(f"field {name_of_type(type_)}.{name}: {error}") from error

    def _union_reader(self, type_: object, *, exact: bool) -> Convert:
        members = members_of(type_)
        if (pair := alike(members, objects_only=not self._of_json)) is not None:
            raise TypeError(_not_told_apart(type_, *pair))
        made = []
        for one in members:
            kinds = written_kinds(one)
            alone = all(other is one or kinds.isdisjoint(written_kinds(other)) for other in members)
            known = json_object(one)
            made.append(_Member(one, self.of(one, exact=exact or (known is None and not alone)), known))
        return _union_reader(type_, made)


def _simple_reader(type_: object) -> Convert | None:
    if type_ in (None, types.NoneType):
        return _value_reader("None", None, None)
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
    return None


def _mismatch(type_: object, plain: object) -> MismatchError:
    return MismatchError(f"expected {name_of_type(type_)}, got {plain!r}")


def _missing(name: str) -> MismatchError:
    return MismatchError("is missing, and has no default", f".{name}")


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


def _value_reader(type_: object, written: object, value: object) -> Convert:
    """The reader of one value alone."""

    def read(plain: object) -> object:
        if plain == written and type(plain) is type(written):
            return value
        raise _mismatch(type_, plain)

    return read


def _parsed_reader(type_: object, parse: Convert, written: object, value: object) -> Convert:
    """The reader of one value alone, whose plain one has other forms, too, or another type."""

    def read(plain: object) -> object:
        if parse(plain) == written:
            return value
        raise _mismatch(type_, plain)

    return read


def _first_reader(type_: object, readers: Sequence[Convert]) -> Convert:
    """The reader of what the first of some takes that does not refuse it."""

    def read(plain: object) -> object:
        for reader in readers:
            try:
                return reader(plain)
            except MismatchError:
                continue
        raise _mismatch(type_, plain)

    return read


class _Member:
    """A member of a union, with its reader and the fields that it has as an object."""

    def __init__(self, type_: object, read: Convert, known: JsonObject | None) -> None:
        self.type = type_
        self.read = read
        self.object = known
        self.tags = {} if known is None else known.tags
        self._written, self._taken = written_kinds(type_), read_kinds(type_)

    def rank(self, kind: type) -> tuple[int, bool]:
        """Where it stands among those that are asked for a value of some kind."""
        if takes(self._written, kind):
            return 0, read_late(self.type)
        return (1 if takes(self._taken, kind) else 2), False

    def may_have(self, plain: Mapping[str, object], tags: Iterable[str]) -> bool:
        """Whether fields that decide may have the values that they have."""
        if self.object is None:
            return True
        for name in tags:
            if name in self.tags:
                value = plain[name]
                if isinstance(value, list | dict) or (type(value), value) not in self.tags[name]:
                    return False
            elif name not in self.object.fields and not self.object.is_open:
                return False
        return True

    def fits(self, plain: Mapping[str, object]) -> bool:
        """Whether the names of fields are those of an object of this member."""
        return self.object is None or self.object.fits(plain)


def _union_reader(type_: object, members: Sequence[_Member]) -> Convert:
    kinds: tuple[type, ...] = (str, int, float, bool, list)
    by_kind = {kind: sorted(members, key=lambda one: one.rank(kind)) for kind in kinds}
    by_kind[dict] = [one for one in members if one.rank(dict)[0] == 0]
    tags = sorted({name for one in by_kind[dict] for name in one.tags})

    def read(plain: object) -> object:
        kind = type(plain)
        asked = by_kind.get(kind) or members
        if kind is dict and len(asked) > 1:
            return _read_object(type_, asked, tags, cast("dict[str, object]", plain))
        for member in asked:
            try:
                return member.read(plain)
            except MismatchError:
                continue
        raise _mismatch(type_, plain)

    return read


def _read_object(type_: object, members: Sequence[_Member], tags: Sequence[str], plain: dict[str, object]) -> object:
    told = [name for name in tags if name in plain]
    rest = [one for one in members if one.may_have(plain, told)]
    if not told or len(rest) != 1:
        rest = [one for one in rest if one.fits(plain)]
    if len(rest) == 1:
        return rest[0].read(plain)
    read, refused = [], []
    for member in rest:
        try:
            read.append((member, member.read(plain)))
        except MismatchError as error:
            refused.append(error)
    if read and all(value == read[0][1] for _, value in read):
        return read[0][1]
    names = f"the fields {', '.join(sorted(plain))}" if plain else "no fields"
    if read:
        raise MismatchError(
            f"{' and '.join(name_of_type(one.type) for one, _ in read)} have {names}, and nothing decides"
        )
    if refused:
        raise refused[0]
    raise MismatchError(f"no member of {name_of_type(type_)} has {names}")


def _not_told_apart(union: object, one: object, other: object) -> str:
    names = f"{name_of_type(one)} and {name_of_type(other)}"
    cure = f"types.register({name_of_type(union)}, serde)"
    objects = json_object(one), json_object(other)
    if objects[0] is None or objects[1] is None:
        return (
            f"{names} cannot be told apart in JSON, which has no word for the type; take types that JSON writes "
            f"differently, dataclasses around them, or register a serde of your own, {cure}"
        )
    both = ", ".join(sorted(objects[0].required | objects[1].required))
    told = f"with the field{'s' if ',' in both else ''} {both}" if both else "without fields"
    return (
        f"{names} cannot be told apart: an object {told} may be either; give each a field of a Literal type, "
        f'kind: Literal["..."] = "...", or register a serde of your own, {cure}'
    )


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


def _model_reader(type_: object, make: Convert) -> Convert:
    """The reader of a pydantic model or a msgspec struct inside of other values."""
    failures = _failures_of(type_)

    def read(plain: object) -> object:
        try:
            return make(plain)
        except failures as error:
            raise MismatchError(str(error)) from error

    return read


def _failures_of(type_: object) -> tuple[type[Exception], ...]:
    if is_pydantic(type_):
        return (ValueError,)
    import msgspec

    return (msgspec.ValidationError,)


def _exact_reader(type_: object, reader: Convert, known: JsonObject) -> Convert:
    def read(plain: object) -> object:
        if isinstance(plain, dict) and not known.fits(plain):
            raise _mismatch(type_, plain)
        return reader(plain)

    return read


def _not_yet(plain: object) -> NoReturn:
    raise AssertionError("a reader ran before it was made")


def _at(step: str, reader: Convert, plain: object) -> object:
    try:
        return reader(plain)
    except MismatchError as error:
        raise error.below(step) from error.__cause__
