"""JSON by orjson: plain values, or values of a dataclass, pydantic model or msgspec struct."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar, overload

import orjson

from pykstreams.core.types import ColumnReader, Decoder, Headers
from pykstreams.serdes.base import CompiledSerde, EncoderOf, refused_text, refused_value, wrong_type
from pykstreams.serdes.json.field_types import dataclass_of, evaluated
from pykstreams.serdes.json.json_of_types import json_type
from pykstreams.serdes.json.json_types import JsonType
from pykstreams.serdes.json.lost_numbers import question_of_lost_numbers, refuse_lost_numbers
from pykstreams.serdes.json.models import is_pydantic, is_struct, json_text
from pykstreams.serdes.json.structured import plain_reader
from pykstreams.serdes.json.union_members import short_name

T = TypeVar("T")


class JsonSerde(CompiledSerde[T], Generic[T]):
    """JSON text in UTF-8. Without a type the values are what JSON has: dicts, lists, text, numbers.

    With a type (a dataclass, a pydantic model, a msgspec struct, or a combination such as ``list[Order]``)
    values of that type are written and made; a ``Decimal`` in them is text. ``dumps`` replaces the writer
    (``value -> bytes`` or ``str``), ``loads`` the reader of plain values (``bytes -> value``); the type is still
    applied. Raises ``TypeError`` for a type whose values cannot be made from JSON, as one with a field of ``bytes``
    where there is no ``loads``.

    NaN and infinite numbers, which JSON does not have, are refused when they are written, but in a pydantic model whose
    ``ser_json_inf_nan`` writes them as something else than ``null``; give ``dumps`` to write them otherwise. Whole
    numbers beyond 64 bits are refused when they are written; read, they are floats, which a field of ``int`` refuses.
    The libraries of pydantic models and msgspec structs take them. The offset of a time zone is written in minutes: the
    seconds that some had before they were standard times (and that ``pytz`` gives to a ``tzinfo=``) are lost, and the
    moment with them.

    The JSON text ``null`` is read as ``None`` with every type, as Jackson does, but by one that takes ``null`` itself.
    Keys are compared by their bytes, so the fields of a JSON key must always come in the same order.

    >>> serde = JsonSerde()
    >>> serde.serialize("topic", {"id": 1})
    b'{"id":1}'
    """

    @overload
    def __init__(
        self: JsonSerde[Any],
        type_: None = None,
        *,
        dumps: Callable[[Any], bytes | str] | None = None,
        loads: Callable[[bytes], object] | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        type_: type[T],
        *,
        dumps: Callable[[T], bytes | str] | None = None,
        loads: Callable[[bytes], object] | None = None,
    ) -> None: ...

    def __init__(
        self,
        type_: type[T] | None = None,
        *,
        dumps: Callable[[T], bytes | str] | None = None,
        loads: Callable[[bytes], object] | None = None,
    ) -> None:
        self._type = type_
        self._dumps = dumps
        self._loads = loads
        self._checked = _class_of(type_)
        self._write = _text_writer(dumps) if dumps else _writer(type_)
        self._loses_numbers = None if dumps else question_of_lost_numbers(object if type_ is None else type_)
        self._read = _reader(type_, loads)

    def __repr__(self) -> str:
        return f"JsonSerde({short_name(self._type) if self._type else ''})"

    @property
    def type_(self) -> type[T] | None:
        """The type of the values; ``None`` where they are what JSON has."""
        return self._type

    @property
    def json_type(self) -> JsonType | None:
        """The JSON that it writes and reads; ``None`` where functions or subclasses of a user do that."""
        if type(self) is not JsonSerde or self._dumps is not None or self._loads is not None:
            return None
        return json_type(object if self._type is None else self._type)

    def writes_as(self, other: object) -> bool:
        if type(self) is not JsonSerde or type(other) is not JsonSerde:
            return False  # a user's subclass may write something else
        return self._type == other._type and self._dumps is other._dumps

    def encoder(self, topic: str) -> EncoderOf[T]:
        write, checked, loses_numbers = self._write, self._checked, self._loses_numbers

        def encode(data: T | None, headers: Headers) -> bytes | None:
            nonlocal write
            if data is None:
                return None
            if checked is not None and not isinstance(data, checked):
                raise wrong_type(repr(self), topic, data, checked.__name__)
            try:
                text = write(data)
                # ``in`` would cost three times as much as ``rpartition``, since it tries a number first
                if loses_numbers is not None and text.rpartition(b"null")[1] and loses_numbers(data):
                    refuse_lost_numbers(data, text)
                return text
            except orjson.JSONEncodeError as error:
                if write is not orjson.dumps or self._type is None:
                    raise refused_value(repr(self), topic, data, f"{type(error).__name__}: {error}") from error
                write = json_text  # slower, so it is taken from the first value on that needs it
                return encode(data, headers)
            except Exception as error:  # a user's dumps, or a model's own serializers, may raise anything
                raise refused_value(repr(self), topic, data, f"{type(error).__name__}: {error}") from error

        return encode

    def decoder(self, topic: str) -> Decoder:
        read = self._read

        def decode(data: bytes | None, headers: Headers) -> object:
            if data is None:
                return None
            try:
                return read(data)
            except Exception as error:  # a user's loads, __post_init__ or validators may raise anything
                if data.strip() == b"null":  # asked only here, so that other values are not slower
                    return None
                raise refused_text(repr(self), topic, data, f"{type(error).__name__}: {error}") from error

        return decode

    def column_reader(self) -> ColumnReader | None:
        if type(self) is not JsonSerde or self._type is not None or self._loads is not None:
            return None
        return partial(map, orjson.loads)


def _class_of(type_: object) -> type | None:
    """The class that all values of a type are instances of, where nothing else that JSON has is; else ``None``."""
    return type_ if is_pydantic(type_) or is_struct(type_) else dataclass_of(type_)


def _writer(type_: object) -> Callable[[Any], bytes]:
    if is_pydantic(type_):
        return lambda value: value.model_dump_json(by_alias=True).encode()
    if is_struct(type_):
        import msgspec

        return msgspec.json.Encoder().encode
    return orjson.dumps


def _reader(type_: object, loads: Callable[[bytes], object] | None) -> Callable[[bytes], object]:
    if type_ is None:
        return loads or orjson.loads
    if loads is None and is_pydantic(type_):
        return type_.model_validate_json
    if loads is None and is_struct(type_):
        import msgspec

        return evaluated(type_, lambda: msgspec.json.Decoder(type_).decode)
    refused = () if loads else (bytes,)
    parse, make = loads or orjson.loads, plain_reader(type_, of_json=True, refused=refused)
    return lambda data: make(parse(data))


def _text_writer(dumps: Callable[[T], bytes | str]) -> Callable[[T], bytes]:
    def write(value: T) -> bytes:
        text = dumps(value)
        return text.encode() if isinstance(text, str) else text

    return write
