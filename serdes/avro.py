"""Avro without a registry: the bare bytes of a value, with one schema for writer and reader."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, overload

from pykstreams.core.errors import ConfigError
from pykstreams.core.types import Decoder, Encoder, Headers
from pykstreams.serdes.base import CompiledSerde, refused_bytes, refused_value
from pykstreams.serdes.json.structured import plain_reader, plain_writer

T = TypeVar("T")


class AvroSerde(CompiledSerde[T], Generic[T]):
    """Avro's binary encoding of one value, no header in front of it.

    ``schema`` is a parsed schema, its JSON text, or the name of a simple type. Values are dicts for records,
    or, with ``type_``, values of a dataclass, pydantic model or msgspec struct. Raises ``ConfigError`` for a
    wrong schema. Writer and reader must use the same schema; for schemas that change use
    ``SchemaRegistryAvroSerde``.

    >>> serde = AvroSerde({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
    >>> serde.serialize("topic", {"id": 5})
    b'\\n'
    >>> serde.deserialize("topic", b"\\n")
    {'id': 5}
    """

    @overload
    def __init__(self: AvroSerde[Any], schema: AvroSchema, *, type_: None = None) -> None: ...

    @overload
    def __init__(self, schema: AvroSchema, *, type_: type[T]) -> None: ...

    def __init__(self, schema: AvroSchema, *, type_: type[T] | None = None) -> None:
        from fastavro import parse_schema, schemaless_reader, schemaless_writer
        from fastavro.schema import SchemaParseException, UnknownType

        plain = _load(schema)
        try:
            parsed: object = parse_schema(plain)
        except (SchemaParseException, UnknownType, TypeError, ValueError, KeyError, AttributeError) as error:
            raise ConfigError(f"Avro schema is {plain!r}, which is none: {type(error).__name__}: {error}") from error
        self._name = schema_name(plain)
        self._schema = parsed
        self._reader: Callable[..., object] = schemaless_reader
        self._writer: Callable[..., None] = schemaless_writer
        self.type_ = type_
        self._take_apart = None if type_ is None else plain_writer(type_)
        self._make = None if type_ is None else plain_reader(type_)

    def __repr__(self) -> str:
        return f"AvroSerde({self._name})"

    def encoder(self, topic: str) -> Encoder:
        write, schema, take_apart, buffer = self._writer, self._schema, self._take_apart, io.BytesIO

        def encode(data: object, headers: Headers) -> bytes | None:
            if data is None:
                return None
            try:
                output = buffer()
                write(output, schema, data if take_apart is None else take_apart(data))
                return output.getvalue()
            except Exception as error:  # fastavro has no common error, and models run the user's code
                raise refused_value(repr(self), topic, data, f"{type(error).__name__}: {error}") from error

        return encode

    def decoder(self, topic: str) -> Decoder:
        read, schema, make, buffer = self._reader, self._schema, self._make, io.BytesIO

        def decode(data: bytes | None, headers: Headers) -> object:
            if data is None:
                return None
            try:
                source = buffer(data)
                value = read(source, schema, None)
                if source.tell() != len(data):
                    raise ValueError(f"the value ends after {source.tell()} of {len(data)} bytes")
                return value if make is None else make(value)
            except Exception as error:  # as above
                raise refused_bytes(repr(self), topic, data, f"{type(error).__name__}: {error}") from error

        return decode


AvroSchema = str | Mapping[str, Any] | list[Any]
"""A schema as its JSON text, as the value of that text, or as the name of a simple type."""


def _load(schema: AvroSchema) -> Any:
    if not isinstance(schema, str):
        return schema
    try:
        return json.loads(schema)
    except ValueError:
        return schema


def schema_name(schema: object) -> str:
    """Returns the name of a schema, or the kind of one that has none."""
    schema = _load(schema) if isinstance(schema, str) else schema
    if isinstance(schema, Mapping):
        return str(schema.get("name", schema.get("type")))
    return schema if isinstance(schema, str) else "union"
