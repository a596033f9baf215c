"""JSON keys with one form: equal keys of a type have equal bytes, since these decide the partition."""

from __future__ import annotations

import dataclasses
import operator
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Generic, TypeVar, cast
from uuid import UUID

import orjson

from pykstreams.core.types import Decoder, Headers
from pykstreams.serdes.base import CompiledSerde, EncoderOf, refused_value
from pykstreams.serdes.json.field_types import dataclass_of, field_types, typed_dict_of
from pykstreams.serdes.json.json_of_types import json_type
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.json.json_types import JsonType
from pykstreams.serdes.json.lost_numbers import question_of_lost_numbers, refuse_lost_numbers
from pykstreams.serdes.json.models import is_pydantic, is_struct
from pykstreams.serdes.json.one_values import model_form
from pykstreams.serdes.json.structured import Convert
from pykstreams.serdes.json.union_members import json_object, short_name, unwrapped
from pykstreams.serdes.text_values import one_datetime, one_decimal, one_time

T = TypeVar("T")


class JsonKeySerde(CompiledSerde[T], Generic[T]):
    """Keys of a type as JSON text in its one form: fields in the order of their names, and each value as its type
    says, so that ``1`` in a field of ``float`` is written as ``1.0``, times in UTC, and decimal numbers without zeros
    at their end. NaN and infinite numbers are refused. What is read is what ``JsonSerde`` reads.

    >>> serde = JsonKeySerde(dict[str, float])
    >>> serde.serialize("topic", {"y": 1, "x": 2.5})
    b'{"x":2.5,"y":1.0}'
    """

    def __init__(self, type_: type[T]) -> None:
        self._type = type_
        self._form = _form(type_, {})
        self._loses_numbers = question_of_lost_numbers(type_)
        self._read = JsonSerde(type_)

    def __repr__(self) -> str:
        return f"JsonKeySerde({short_name(self._type)})"

    @property
    def type_(self) -> type[T]:
        """The type of the values."""
        return self._type

    @property
    def json_type(self) -> JsonType | None:
        """The JSON that it writes and reads, fields in the order of their names; ``None`` of a user's subclass."""
        return json_type(self._type).sorted() if type(self) is JsonKeySerde else None

    def writes_as(self, other: object) -> bool:
        return type(other) is JsonKeySerde and other._type == self._type

    def encoder(self, topic: str) -> EncoderOf[T]:
        check, form, dumps, option = self._read.encoder(topic), self._form, orjson.dumps, orjson.OPT_SORT_KEYS
        loses_numbers = self._loses_numbers

        def encode(data: T | None, headers: Headers) -> bytes | None:
            if data is None:
                return None
            try:
                text = dumps(form(data), option=option)
                if loses_numbers is not None and text.rpartition(b"null")[1] and loses_numbers(data):
                    refuse_lost_numbers(data, text)
                return text
            except Exception as error:  # a value of another type, or what a model's own serializers raise
                check(data, headers)
                raise refused_value(repr(self), topic, data, f"{type(error).__name__}: {error}") from error

        return encode

    def decoder(self, topic: str) -> Decoder:
        return self._read.decoder(topic)


def _form(type_: object, made: dict[object, Convert]) -> Convert:
    """Returns the function from values of a type to the plain values of their one form."""
    type_ = unwrapped(type_)
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if is_pydantic(type_) or is_struct(type_):
        return model_form(type_)
    if dataclass_of(type_) is not None:
        return _fields_form(type_, made)
    if (simple := _SIMPLE.get(type_)) is not None:
        return simple
    if origin in (typing.Union, types.UnionType) and len(arguments) == 2 and types.NoneType in arguments:
        inner = _form(next(one for one in arguments if one is not types.NoneType), made)
        return lambda value: None if value is None else inner(value)
    if origin in (list, Sequence) or (origin is tuple and arguments[1:] == (Ellipsis,)):
        entry = _form(arguments[0], made)
        return lambda value: [entry(one) for one in value]
    if origin is tuple:
        entries = [_form(argument, made) for argument in arguments]
        return lambda value: [entry(one) for entry, one in zip(entries, value, strict=True)]
    if origin in (dict, Mapping):
        values = _form(arguments[1], made)
        return lambda value: {key: values(one) for key, one in value.items()}
    if typed_dict_of(type_) is not None and (known := json_object(type_)) is not None:
        return _typed_dict_form(known.fields, made)
    return _form_by_value


def _fields_form(type_: object, made: dict[object, Convert]) -> Convert:
    if type_ in made:  # a type that contains itself
        return lambda value: made[type_](value)
    made[type_] = _form_by_value
    hints, class_ = field_types(type_), cast("type", dataclass_of(type_))
    fields = [(one.name, _form(hints[one.name], made)) for one in dataclasses.fields(class_) if one.init]

    def form(value: object) -> object:
        if not isinstance(value, class_):
            raise TypeError(f"expected {class_.__name__}")
        return {name: of(getattr(value, name)) for name, of in fields}

    made[type_] = form
    return form


def _typed_dict_form(fields: Mapping[str, object], made: dict[object, Convert]) -> Convert:
    forms = {name: _form(hint, made) for name, hint in fields.items()}
    return lambda value: {name: forms.get(name, _form_by_value)(one) for name, one in value.items()}


def _form_by_value(value: object) -> object:
    """The form of a value whose type says nothing more: by what it is."""
    if isinstance(value, Enum):
        return _form_by_value(value.value)
    for simple in (float, Decimal, datetime, time):
        if isinstance(value, simple):
            return _SIMPLE[simple](value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields_form(type(value), {})(value)
    if isinstance(value, dict):
        return {key: _form_by_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_form_by_value(one) for one in value]
    kind: type = type(value)
    if is_pydantic(kind) or is_struct(kind):
        return model_form(kind)(value)
    return value


def _float(value: float) -> float:
    return float(value) + 0.0  # not -0.0, which is equal to 0.0


_SIMPLE: dict[object, Convert] = {
    str: lambda value: value,
    bool: lambda value: value,
    int: operator.index,
    float: _float,
    Decimal: lambda value: str(one_decimal(value)),
    datetime: lambda value: one_datetime(value).isoformat(),
    date: lambda value: value.isoformat(),
    time: lambda value: one_time(value).isoformat(),
    UUID: str,
}
"""The one form of values that have no parts; a ``bool`` in a field of ``int`` becomes the number it equals."""
