"""Avro with a registered schema, without what the client library does for each record and most schemas do not need.

``AvroSerializer`` and ``AvroDeserializer`` look for rules, tags and versions whenever they are called, which takes some
15 us a record. The first record of each topic and schema goes through them: they ask the registry, and refuse what they
refuse. What comes after it, of a schema without rules and references, is written and read by ``fastavro`` as they do
it.

Invariant: bytes, values and errors are theirs. Where a setting, a schema or a header asks for more they get every
record; and so do keys, of which they keep the last one for the rules of values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Final, Protocol, TypeAlias

HEAD: Final = 5
"""The bytes in front: a zero, and the id of the schema."""

_ZERO: Final = 0
"""The first of them; a record with another one names its schema otherwise."""

_VALUE: Final = "value"
"""The field of a record that is not its key, as contexts name it."""

_IN_HEADERS: Final = "__value_schema_id"
"""The header that has the id of the schema instead."""

_PLAIN_SETTINGS: Final = frozenset({"auto.register.schemas", "normalize.schemas"})
"""They only count when a schema is registered."""

_Convert: TypeAlias = Callable[[object], object]
_Schema: TypeAlias = "str | list[object] | dict[str, object]"
"""A schema that ``fastavro`` has parsed."""


class Context(Protocol):
    """The used part of ``SerializationContext``."""

    @property
    def topic(self) -> str: ...

    @property
    def field(self) -> str: ...

    @property
    def headers(self) -> Mapping[str, object] | Sequence[tuple[str, object]] | None: ...


class WriterSchema(Protocol):
    """The used part of ``Schema``."""

    @property
    def schema_str(self) -> str | None: ...

    @property
    def references(self) -> Sequence[object] | None: ...

    @property
    def rule_set(self) -> object | None: ...


class SchemasById(Protocol):
    """The used part of ``SchemaRegistryClient``, which keeps the schemas that it was asked for."""

    def get_schema(self, schema_id: int, subject_name: str | None = ...) -> WriterSchema: ...


def quick_writer(
    serializer: Callable[[object, Context], bytes | None],
    schema: object,
    settings: Mapping[str, object],
    take_apart: _Convert | None,
) -> Callable[[object, Context], bytes | None]:
    """Returns a serializer that writes as ``serializer`` does.

    :param schema: the JSON text that it writes with; anything else leaves all to it.
    :param settings: those that the user has given it.
    :param take_apart: makes the values of Avro of those of the user, ``None`` where they are the same.
    """
    parsed = _parsed(schema)
    if parsed is None or settings.keys() - _PLAIN_SETTINGS:
        return serializer
    from fastavro import schemaless_writer

    heads: dict[str, bytes | None] = {}
    unknown = b""

    def quickly(head: bytes, value: object) -> bytes:
        output = BytesIO()
        output.write(head)
        schemaless_writer(output, parsed, value if take_apart is None else take_apart(value))
        return output.getvalue()

    def first(value: object, context: Context) -> bytes | None:
        data = serializer(value, context)
        if data is not None:
            head = data[:HEAD]
            heads[context.topic] = head if context.field == _VALUE and quickly(head, value) == data else None
        return data

    def write(value: object, context: Context) -> bytes | None:
        head = heads.get(context.topic, unknown)
        if head is None:
            return serializer(value, context)
        return quickly(head, value) if head else first(value, context)

    return write


def quick_reader(
    deserializer: Callable[[bytes, Context], object],
    client: SchemasById,
    settings: Mapping[str, object],
    make: _Convert | None,
) -> Callable[[bytes, Context], object]:
    """Returns a deserializer that reads as ``deserializer`` does.

    :param client: its own.
    :param settings: those that the user has given it.
    :param make: makes the values of the user of those of Avro, ``None`` where they are the same.
    """
    if settings:
        return deserializer
    from fastavro import schemaless_reader

    schemas: dict[tuple[str, bytes], _Schema | None] = {}  # by topic, too: the client keeps what each subject has

    def first(data: bytes, context: Context) -> object:
        value = deserializer(data, context)
        known = context.topic, data[:HEAD]
        if data[0] == _ZERO and context.field == _VALUE and known not in schemas and not context.headers:
            try:
                found = client.get_schema(int.from_bytes(data[1:HEAD], "big"), f"{context.topic}-value")
            except Exception:  # of the registry or the network; the record has been read, and the next one asks again
                return value
            has_rules = found.rule_set is not None
            schemas[known] = None if has_rules or found.references else _parsed(found.schema_str)
        return value

    def read(data: bytes, context: Context) -> object:
        schema = schemas.get((context.topic, data[:HEAD])) if len(data) > HEAD else None
        if schema is None or (context.headers and _IN_HEADERS in dict(context.headers)):
            return first(data, context)
        source = BytesIO(data)
        source.seek(HEAD)
        plain = schemaless_reader(source, schema, None)
        return plain if make is None else make(plain)

    return read


def _parsed(text: object) -> _Schema | None:
    """The schema in a JSON text; ``None`` where there is none, or one whose values the library writes by itself."""
    from fastavro import parse_schema

    if not isinstance(text, str):
        return None
    schema = parse_schema(json.loads(text))
    is_bytes = isinstance(schema, dict) and schema.get("type") == "bytes"
    return None if schema == "bytes" or is_bytes else schema
