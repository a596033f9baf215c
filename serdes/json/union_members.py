"""Members of a union, and by what the JSON of one is told from that of another.

A union in JSON has no word for which of its members it is. Two members are told apart where no JSON can be of both:
objects by the fields that one must have and the other does not know, or by a field that both always have, whose values
differ (``Literal``); all else by being text, number, list and so on. Invariant: of members that are told apart, one at
most takes what was written of any.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from itertools import combinations, product
from typing import Any, TypeAlias, cast
from uuid import UUID

from pykstreams.core.user_code.type_parameters import with_parameters
from pykstreams.serdes.json.field_types import dataclass_of, evaluated, field_types, typed_dict_of
from pykstreams.serdes.json.models import is_pydantic, is_struct

Kinds: TypeAlias = frozenset[object]
"""Kinds of JSON values, as the classes that they are read as; a pair of class and value is that value alone."""

_ALL: Kinds = frozenset((str, int, float, bool, types.NoneType, list, dict))
_WRITTEN: Mapping[object, Kinds] = {
    None: frozenset((types.NoneType,)),
    **{one: frozenset((one,)) for one in (types.NoneType, str, int, float, bool, bytes)},
    **{one: frozenset((str,)) for one in (Decimal, datetime, date, time, UUID)},
}
_READ_TOO: Mapping[object, Kinds] = {float: frozenset((int,)), Decimal: frozenset((int, float))}
_TEXTS = (date, datetime, time, UUID)
"""Types whose texts differ in form, so that ``fromisoformat`` and ``UUID`` refuse those of the others; but a
``datetime`` is read from a date, too, so it comes last."""
_MODULES = re.compile(r"\b(?:\w+\.)+(?:<locals>\.)?")


@dataclass(frozen=True, slots=True)
class JsonObject:
    """The fields that the JSON object of a type has.

    :param fields: all that it knows, with their types.
    :param required: those without which it is not read.
    :param always: those that are written of each value.
    :param is_open: whether it takes others, too.
    """

    fields: Mapping[str, object]
    required: frozenset[str]
    always: frozenset[str]
    is_open: bool = False

    def fits(self, plain: Mapping[str, object]) -> bool:
        """Whether an object has all fields that are required, and none that is unknown."""
        return self.required <= plain.keys() and (self.is_open or plain.keys() <= self.fields.keys())

    @property
    def tags(self) -> Mapping[str, Kinds]:
        """The fields that always have one of some values, and these."""
        found = {name: written_kinds(self.fields[name]) for name in self.always}
        return {name: kinds for name, kinds in found.items() if all(isinstance(one, tuple) for one in kinds)}


def json_object(type_: object) -> JsonObject | None:
    """Returns the fields of a type that is written as a JSON object; ``None`` for all other types."""
    if is_pydantic(type_):
        return None if getattr(type_, "__pydantic_root_model__", False) else _of_model(type_)
    if is_struct(type_):
        return _of_struct(type_)
    if (class_ := dataclass_of(type_)) is not None:
        hints = field_types(type_)
        fields = {one.name: one for one in dataclasses.fields(class_) if not one.name.startswith("_")}
        required = frozenset(name for name, one in fields.items() if one.init and not _has_default(one))
        return JsonObject({name: hints[name] for name in fields}, required, frozenset(fields))
    if (class_ := typed_dict_of(type_)) is not None:
        hints = field_types(type_)
        required = _required_keys(class_, hints)
        return JsonObject({name: _without_required(hint) for name, hint in hints.items()}, required, required)
    return None


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _required_keys(typed_dict: Any, hints: Mapping[str, object]) -> frozenset[str]:
    """The keys that a ``TypedDict`` must have: it does not know itself which, where its annotations are text."""
    required: frozenset[str] = typed_dict.__required_keys__
    return frozenset(name for name, hint in hints.items() if _is_required(hint, name in required))


def _is_required(hint: object, of_class: bool) -> bool:
    """Whether ``Required`` or ``NotRequired`` around an annotation says so, or without them its class."""
    origin = typing.get_origin(hint)
    if origin in (typing.Required, typing.NotRequired):
        return origin is typing.Required
    return _is_required(typing.get_args(hint)[0], of_class) if origin is typing.Annotated else of_class


def _without_required(hint: object) -> object:
    """A type without ``Required``, ``NotRequired`` and ``Annotated`` around it."""
    while typing.get_origin(hint) in (typing.Required, typing.NotRequired, typing.Annotated):
        hint = typing.get_args(hint)[0]
    return hint


def _of_model(type_: Any) -> JsonObject:
    fields: dict[str, object] = {}
    required, always = set(), set()
    for name, field in type_.model_fields.items():
        written = field.serialization_alias or field.alias or name
        fields[written] = field.annotation
        if field.is_required():
            required.add(written)
        if not field.exclude:
            always.add(written)
    for name, computed in type_.model_computed_fields.items():
        fields[computed.alias or name] = computed.return_type
    return JsonObject(fields, frozenset(required), frozenset(always), type_.model_config.get("extra") == "allow")


def _of_struct(type_: Any) -> JsonObject | None:
    from msgspec import structs

    config = type_.__struct_config__
    if config.array_like:
        return None
    known = evaluated(type_, lambda: structs.fields(type_))
    fields = {one.encode_name: one.type for one in known}
    required = frozenset(one.encode_name for one in known if one.required)
    always = required if config.omit_defaults else frozenset(fields)
    if config.tag is not None:
        fields = {config.tag_field: typing.Literal[config.tag], **fields}
        always |= {config.tag_field}
    return JsonObject(fields, required, always)


def members_of(type_: object) -> tuple[object, ...]:
    """Returns the members of a union, those of unions inside of it included; of another type the type itself."""
    type_ = unwrapped(type_)
    if typing.get_origin(type_) in (typing.Union, types.UnionType):
        return tuple(inner for one in typing.get_args(type_) for inner in members_of(one))
    return (type_,)


def unwrapped(type_: object) -> object:
    """Returns a type without ``Annotated`` and ``NewType`` around it, and what an alias stands for.

    Of a bare ``typing.List`` the class, ``list``.
    """
    while True:
        type_ = without_alias(type_)
        if typing.get_origin(type_) is typing.Annotated:
            type_ = typing.get_args(type_)[0]
        elif isinstance(type_, typing.NewType):
            type_ = type_.__supertype__
        else:
            return type_ if hasattr(type_, "__args__") else typing.get_origin(type_) or type_


def without_alias(type_: object) -> object:
    """Returns what an alias of a ``type`` statement stands for, with the types that are given to it; else the type."""
    origin = typing.get_origin(type_) or type_
    while type(origin).__name__ == "TypeAliasType":  # which Python has from 3.12 on, and typing_extensions before
        alias = cast("Any", origin)
        given = dict(zip(alias.__type_params__, typing.get_args(type_), strict=False))
        type_ = with_parameters(alias.__value__, given)
        origin = typing.get_origin(type_) or type_
    return type_


def written_kinds(type_: object) -> Kinds:
    """Returns the kinds of JSON that values of a type are written as."""
    members = members_of(type_)
    if len(members) != 1:
        return frozenset().union(*map(written_kinds, members))
    (type_,) = members
    origin = typing.get_origin(type_) or type_
    if origin is typing.Literal:
        return frozenset(_value_kind(one) for one in typing.get_args(type_))
    if isinstance(type_, type) and issubclass(type_, Enum):
        return frozenset(map(_value_kind, type_))
    if (known := _WRITTEN.get(type_)) is not None:
        return known
    if origin in (list, tuple, Sequence):
        return frozenset((list,))
    return frozenset((dict,)) if origin in (dict, Mapping) or json_object(type_) is not None else _ALL


def read_kinds(type_: object) -> Kinds:
    """Returns the kinds of JSON that values of a type are read from."""
    return written_kinds(type_).union(*(_READ_TOO.get(one, ()) for one in members_of(type_)))


def takes(kinds: Kinds, kind: type) -> bool:
    """Whether values of a kind, or some of them, are among these."""
    return any(one is kind or (isinstance(one, tuple) and one[0] is kind) for one in kinds)


def read_late(type_: object) -> bool:
    """Whether a type takes the texts of another that is told from it otherwise."""
    return type_ is datetime


def _value_kind(value: object) -> object:
    plain = value.value if isinstance(value, Enum) else value
    if isinstance(plain, str | int | float | bool | None):
        return type(plain), plain
    if isinstance(plain, Decimal | date | time | UUID):
        return str
    return list if isinstance(plain, list | tuple) else dict


def _are_disjoint(one: Kinds, other: Kinds) -> bool:
    classes = [{kind for kind in kinds if isinstance(kind, type)} for kinds in (one, other)]
    values = [{kind for kind in kinds if not isinstance(kind, type)} for kinds in (one, other)]
    return not (
        classes[0] & classes[1]
        or values[0] & values[1]
        or any(cast("tuple[type, object]", kind)[0] in classes[1] for kind in values[0])
        or any(cast("tuple[type, object]", kind)[0] in classes[0] for kind in values[1])
    )


def _reads_the_same(type_: object, above: tuple[object, ...] = ()) -> bool:
    """Whether values of a type are read as the JSON that they are, so that another such type reads the same."""
    members = members_of(type_)
    if len(members) != 1:
        return all(_reads_the_same(one, above) for one in members)
    (type_,) = members
    origin, arguments = typing.get_origin(type_) or type_, typing.get_args(type_)
    if type_ in (Any, object, None, types.NoneType, str, int, bool) or type_ in above:
        return True
    if origin is typing.Literal:
        return not any(isinstance(one, Enum) for one in arguments)
    if isinstance(type_, type) and issubclass(type_, Enum):
        return issubclass(type_, str | int)  # members are equal to their values
    if typed_dict_of(type_) is not None:
        known = json_object(type_)
        return known is not None and all(_reads_the_same(one, (*above, type_)) for one in known.fields.values())
    if origin in (list, Sequence, dict, Mapping):
        return all(_reads_the_same(one, above) for one in arguments)
    return False


def are_told_apart(one: object, other: object) -> bool:
    """Whether no JSON is of both types, unless it is the same value of both.

    >>> are_told_apart(int, list[int]), are_told_apart(str, datetime), are_told_apart(list[int], list[str])
    (True, False, True)
    """
    pairs = product(members_of(one), members_of(other))
    return all(_are_apart(first, second) for first, second in pairs)


def _are_apart(one: object, other: object) -> bool:
    if one == other or (_reads_the_same(one) and _reads_the_same(other)):
        return True
    if one in _TEXTS and other in _TEXTS:
        return True
    if _are_disjoint(written_kinds(one), written_kinds(other)):
        return True
    objects = json_object(one), json_object(other)
    if objects[0] is not None and objects[1] is not None:
        return _are_objects_apart(objects[0], objects[1])
    origins = {typing.get_origin(type_) or type_ for type_ in (one, other)}
    if origins <= {list, tuple, Sequence}:
        return _are_lists_apart(one, other)
    entries = typing.get_args(one), typing.get_args(other)
    return origins <= {dict, Mapping} and all(entries) and are_told_apart(entries[0][1], entries[1][1])


def _are_objects_apart(one: JsonObject, other: JsonObject) -> bool:
    for name in one.always & other.always:
        if _are_disjoint(read_kinds(one.fields[name]), read_kinds(other.fields[name])):
            return True
    strange = not other.is_open and one.required - other.fields.keys()
    return bool(strange or (not one.is_open and other.required - one.fields.keys()))


def _are_lists_apart(one: object, other: object) -> bool:
    first, second = _entries(one), _entries(other)
    if first[1] is None and second[1] is None:
        same_class = (typing.get_origin(one) is tuple) is (typing.get_origin(other) is tuple)
        return same_class and are_told_apart(first[0], second[0])
    if first[1] is not None and second[1] is not None:
        if len(first[1]) != len(second[1]):
            return True
        pairs = list(zip(first[1], second[1], strict=True))
        differs = any(_are_disjoint(read_kinds(a), read_kinds(b)) for a, b in pairs)
        return differs or all(are_told_apart(a, b) for a, b in pairs)
    entry, fixed = (first[0], second[1]) if first[1] is None else (second[0], first[1])
    return any(_are_disjoint(read_kinds(entry), read_kinds(one)) for one in fixed or ())


def _entries(type_: object) -> tuple[object, tuple[object, ...] | None]:
    """The type of all entries of a list, or else those of each."""
    arguments = typing.get_args(type_)
    if not arguments:
        return Any, None
    if typing.get_origin(type_) is tuple and arguments[1:] != (Ellipsis,):
        return Any, arguments
    return arguments[0], None


def alike(members: Sequence[object], *, objects_only: bool) -> tuple[object, object] | None:
    """Returns two members that are not told apart; ``None`` where all are.

    :param objects_only: whether to look at objects alone, where plain values have more kinds than JSON has.
    """
    for one, other in combinations(members, 2):
        if objects_only and (json_object(one) is None or json_object(other) is None):
            continue
        if not _are_apart(one, other):
            return one, other
    return None


def short_name(type_: object) -> str:
    """Returns the name of a class, without the types of what is in a container."""
    is_generic = typing.get_args(type_) and (dataclass_of(type_) or typed_dict_of(type_))
    return name_of_type(type_) if is_generic else str(getattr(type_, "__name__", name_of_type(type_)))


def name_of_type(type_: object) -> str:
    """Returns a type as it is written, without the modules that it is from."""
    if isinstance(type_, type) and not typing.get_args(type_):
        return type_.__name__
    return _MODULES.sub("", str(type_))
