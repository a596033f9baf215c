"""The JSON that a type is written as, and read from, by this project and by the libraries of models."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

from pykstreams.serdes.json.field_types import UnresolvedFieldError, dataclass_of, typed_dict_of
from pykstreams.serdes.json.json_types import JsonField, JsonKind, JsonType, Unknown
from pykstreams.serdes.json.models import is_pydantic, is_struct, json_text
from pykstreams.serdes.json.union_members import JsonObject, json_object, members_of, name_of_type, unwrapped

_SIMPLE: Final = (str, int, float, bool, bytes, Decimal, datetime, date, time, UUID)
_LISTS: Final = (list, Sequence, set, frozenset, Set)


def json_type(type_: object) -> JsonType:
    """Returns the JSON of a type.

    >>> json_type(list[int | None]).as_dict()["name"]
    'list[int | None]'
    """
    return _json_type(type_, ())


def _json_type(type_: object, above: tuple[object, ...]) -> JsonType:
    type_ = unwrapped(type_)
    name, origin, arguments = name_of_type(type_), typing.get_origin(type_) or type_, typing.get_args(type_)
    if type_ in (Any, object):
        return JsonType(JsonKind.ANYTHING, name)
    if type_ in (None, types.NoneType):
        return JsonType(JsonKind.SIMPLE, "None")
    if type_ in _SIMPLE:
        return JsonType(JsonKind.SIMPLE, name)
    if origin is typing.Literal or (isinstance(type_, type) and issubclass(type_, Enum)):
        values = arguments if origin is typing.Literal else tuple(typing.cast("type[Enum]", type_))
        return JsonType(JsonKind.VALUES, name, values=tuple(map(_text, values)))
    if origin in (typing.Union, types.UnionType):
        return JsonType(JsonKind.UNION, name, tuple(_json_type(one, above) for one in members_of(type_)))
    if origin is tuple and arguments and arguments[1:] != (Ellipsis,):
        return JsonType(JsonKind.TUPLE, name, tuple(_json_type(one, above) for one in arguments))
    if origin is tuple or origin in _LISTS:
        return JsonType(JsonKind.LIST, name, (_json_type(arguments[0] if arguments else Any, above),))
    if origin in (dict, Mapping):
        return JsonType(JsonKind.DICT, name, (_json_type(arguments[1] if arguments else Any, above),))
    if type_ in above:
        return JsonType(JsonKind.ABOVE, name, level=above[::-1].index(type_))
    if getattr(type_, "__pydantic_root_model__", False):
        return _json_type(typing.cast("Any", type_).model_fields["root"].annotation, above)
    if is_struct(type_) and type_.__struct_config__.array_like:
        return JsonType(JsonKind.OTHER, f"{name}{_entries(type_)}")
    try:
        known = json_object(type_)
    except UnresolvedFieldError:  # of a dataclass in a model, which has its own ways to find what annotations name
        known = None
    return JsonType(JsonKind.OTHER, name) if known is None else _object(type_, name, known, (*above, type_))


def _entries(type_: Any) -> list[str]:
    """The fields of a struct that is written as a list, by their places."""
    from msgspec import structs

    return [name_of_type(one.type) for one in structs.fields(type_)]


def _text(value: object) -> str:
    plain = value.value if isinstance(value, Enum) else value
    try:
        return json_text(plain).decode()
    except TypeError:
        return repr(plain)


def _object(type_: object, name: str, known: JsonObject, above: tuple[object, ...]) -> JsonType:
    read_as = _read_as(type_, known)
    fields = tuple(
        JsonField(
            field, _json_type(inner, above), field not in known.required, field in known.always, read_as.get(field, ())
        )
        for field, inner in known.fields.items()
    )
    return JsonType(JsonKind.OBJECT, name, fields=fields, unknown=_unknown(type_, known))


def _read_as(type_: Any, known: JsonObject) -> dict[str, tuple[str, ...]]:
    """The names that each field is read from; those that are made anew, such as computed ones, are left out."""
    if is_pydantic(type_):
        return dict(_names_of_model(type_))
    init = {name: one.init for name, one in getattr(dataclass_of(type_), "__dataclass_fields__", {}).items()}
    return {name: (name,) for name in known.fields if init.get(name, True)}


def _names_of_model(type_: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    config = type_.model_config
    for name, field in type_.model_fields.items():
        alias = field.validation_alias or field.alias
        names = [one for one in getattr(alias, "choices", [alias]) if isinstance(one, str)]
        if config.get("validate_by_alias") is False:
            names = []
        if not names or config.get("populate_by_name") or config.get("validate_by_name"):
            names.append(name)
        yield field.serialization_alias or field.alias or name, tuple(names)


def _unknown(type_: Any, known: JsonObject) -> Unknown:
    if known.is_open or typed_dict_of(type_) is not None:
        return Unknown.KEPT
    refuses = is_struct(type_) and type_.__struct_config__.forbid_unknown_fields
    if refuses or (is_pydantic(type_) and type_.model_config.get("extra") == "forbid"):
        return Unknown.REFUSED
    return Unknown.IGNORED
