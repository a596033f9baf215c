"""Serdes of combined keys in the formats of users: JSON, Avro, Protobuf, or one's own.

All rows that refer to one row are found by a scan over the bytes that their keys start with, so besides whole keys such
a serde writes *partial* keys, which have the first part alone. Invariant: the bytes of a partial key are what all keys
with that first part start with, and no others. ``pykstreams.testing.assert_prefix_serde`` checks it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from pykstreams.core.errors import ConfigError, SerdeError
from pykstreams.core.shown_values import shown
from pykstreams.core.types import Decoder, Encoder, Headers
from pykstreams.serdes.avro import AvroSchema, AvroSerde
from pykstreams.serdes.base import (
    AnySerde,
    CompiledSerde,
    CompiledSerializer,
    EncoderOf,
    Serde,
    Serializer,
    bind_deserializer,
    bind_serializer,
    describe,
    refused_bytes,
    refused_text,
    refused_value,
)
from pykstreams.serdes.combined_key import CombinedKey
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.json.structured import plain_reader, plain_writer

P = TypeVar("P")
S = TypeVar("S")
T = TypeVar("T")


@runtime_checkable
class ComposedKeySerde(Serde[CombinedKey[P, S]], Protocol[P, S]):
    """The interface of serdes of combined keys, for joins; ``CombinedKeySerde`` is the one that works for all parts."""

    def partial_key_serializer(self) -> Serializer[P]:
        """Returns the serializer of partial keys, which takes the first part alone."""
        ...


class JsonCombinedKeySerde(CompiledSerde[CombinedKey[P, S]], Generic[P, S]):
    """Combined keys as JSON objects with two fields; a partial key ends behind the name of the second one.

    ``prefix`` and ``suffix`` write the two parts as JSON; without them they are plain values. Read is what such a serde
    has written, to the byte.

    >>> serde = JsonCombinedKeySerde(names=("a", "b"))
    >>> serde.serialize("topic", CombinedKey({"key": 1}, {"key": "b5"}))
    b'{"a":{"key":1},"b":{"key":"b5"}}'
    >>> serde.partial_key_serializer().serialize("topic", {"key": 1})
    b'{"a":{"key":1},"b":'
    """

    def __init__(
        self,
        prefix: Serde[P] | None = None,
        suffix: Serde[S] | None = None,
        *,
        names: tuple[str, str] = ("prefix", "suffix"),
    ) -> None:
        self.parts: tuple[AnySerde, AnySerde] = prefix or JsonSerde(), suffix or JsonSerde()
        first, second = (json.dumps(name, ensure_ascii=False).encode() for name in names)
        if first == second:
            raise ConfigError(f"both fields of a JSON key are named {names[0]!r}; give them different names")
        self._head, self._between = b"{" + first + b":", b"," + second + b":"

    def __repr__(self) -> str:
        return f"JsonCombinedKeySerde({', '.join(map(describe, self.parts))})"

    def encoder(self, topic: str) -> EncoderOf[CombinedKey[P, S]]:
        encode_partial, suffix = self._partial_encoder(topic), bind_serializer(self.parts[1].serializer, topic)

        def encode(data: tuple[object, object] | None, headers: Headers) -> bytes | None:
            if data is None:
                return None
            first, second = _parts(self, topic, data)
            tail = suffix(second, headers)
            if tail is None:
                raise refused_value(repr(self), topic, data, "its suffix has no bytes")
            return encode_partial(first, headers) + tail + b"}"  # type: ignore[operator]

        return encode

    def decoder(self, topic: str) -> Decoder:
        prefix, suffix = (bind_deserializer(part.deserializer, topic) for part in self.parts)
        head, between, end_of_value = self._head, self._between, json.JSONDecoder().raw_decode

        def decode(data: bytes | None, headers: Headers) -> object:
            if data is None:
                return None
            try:
                if not data.startswith(head):
                    raise ValueError(f"it does not start with {head.decode()}")
                text = data[len(head) :].decode()
                first = text[: end_of_value(text)[1]].encode()
                rest = data[len(head) + len(first) :]
                if not rest.startswith(between) or not rest.endswith(b"}"):
                    raise ValueError(f"behind the first value comes no {between.decode()}")
            except ValueError as error:
                raise refused_text(repr(self), topic, data, f"{error}") from error
            return CombinedKey(prefix(first, headers), suffix(rest[len(between) : -1], headers))

        return decode

    def partial_key_serializer(self) -> Serializer[P]:
        """Returns the serializer of what comes before the second value."""
        return _PartialKeys(self._partial_encoder)

    def _partial_encoder(self, topic: str) -> Encoder:
        encode_prefix = bind_serializer(self.parts[0].serializer, topic)
        head, between = self._head, self._between

        def encode(data: object, headers: Headers) -> bytes | None:
            raw = encode_prefix(data, headers)
            if raw is None:
                raise refused_value(repr(self), topic, data, "the prefix has no bytes")
            return head + raw + between

        return encode


class AvroCombinedKeySerde(CompiledSerde[CombinedKey[P, S]], Generic[P, S]):
    """Combined keys as Avro records with two fields; a partial key is the first field alone.

    ``schema`` is that of the record. Parts are what ``AvroSerde`` takes, or values of ``prefix_type`` and
    ``suffix_type``. A partial key does not write the second field at all: a union that is left unset would still write
    the index of ``null``, which no whole key has there.

    >>> fields = [{"name": "a", "type": "string"}, {"name": "b", "type": ["null", "string"]}]
    >>> serde = AvroCombinedKeySerde({"type": "record", "name": "Key", "fields": fields})
    >>> serde.serialize("topic", CombinedKey("a1", "b5"))
    b'\\x04a1\\x02\\x04b5'
    >>> serde.partial_key_serializer().serialize("topic", "a1")
    b'\\x04a1'
    """

    def __init__(
        self, schema: AvroSchema, *, prefix_type: type[P] | None = None, suffix_type: type[S] | None = None
    ) -> None:
        plain = json.loads(schema) if isinstance(schema, str) and schema.lstrip().startswith("{") else schema
        fields = plain.get("fields") if isinstance(plain, Mapping) else None
        if not isinstance(plain, Mapping) or not isinstance(fields, list) or len(fields) != 2:
            raise ConfigError(f"schema of combined keys is {plain!r}; expected an Avro record with two fields")
        self._names = fields[0]["name"], fields[1]["name"]
        self._whole: AvroSerde[object] = AvroSerde(plain)
        self._partial: AvroSerde[object] = AvroSerde({**plain, "fields": fields[:1]})
        self._types = prefix_type, suffix_type

    def __repr__(self) -> str:
        return f"AvroCombinedKeySerde({self._whole!r})"

    def encoder(self, topic: str) -> EncoderOf[CombinedKey[P, S]]:
        encode_record, (first_name, second_name) = self._whole.encoder(topic), self._names
        plain_first, plain_second = (_same if type_ is None else plain_writer(type_) for type_ in self._types)

        def encode(data: tuple[object, object] | None, headers: Headers) -> bytes | None:
            if data is None:
                return None
            first, second = _parts(self, topic, data)
            return encode_record({first_name: plain_first(first), second_name: plain_second(second)}, headers)

        return encode

    def decoder(self, topic: str) -> Decoder:
        decode_record, (first_name, second_name) = self._whole.decoder(topic), self._names
        make_first, make_second = (_same if type_ is None else plain_reader(type_) for type_ in self._types)

        def decode(data: bytes | None, headers: Headers) -> object:
            if data is None:
                return None
            record = decode_record(data, headers)
            return CombinedKey(make_first(record[first_name]), make_second(record[second_name]))

        return decode

    def partial_key_serializer(self) -> Serializer[P]:
        """Returns the serializer of the first field alone."""
        prefix_type, name = self._types[0], self._names[0]

        def encoder(topic: str) -> Encoder:
            encode_record = self._partial.encoder(topic)
            plain = _same if prefix_type is None else plain_writer(prefix_type)
            return lambda data, headers: encode_record({name: plain(data)}, headers)

        return _PartialKeys(encoder)


class ProtobufCombinedKeySerde(CompiledSerde[CombinedKey[P, S]], Generic[P, S]):
    """Combined keys as Protobuf messages with two fields; in a partial key only the first one is set.

    ``message`` is the generated class, ``names`` the fields; parts are scalars or messages. The first field must have
    the smaller number, since fields are written by their numbers, and must show whether it is set (a message, or
    ``optional``): zero would be written as nothing, which all keys start with. Raises ``ConfigError`` otherwise.
    """

    def __init__(self, message: type[Any], *, names: tuple[str, str] = ("prefix", "suffix")) -> None:
        descriptor = message.DESCRIPTOR
        for name in names:
            if name not in descriptor.fields_by_name:
                raise ConfigError(f"message {descriptor.full_name} has no field {name!r}; name its fields in names=")
        first, second = (descriptor.fields_by_name[name] for name in names)
        if first.number >= second.number:
            raise ConfigError(
                f"field {first.name!r} of {descriptor.full_name} has number {first.number}, {second.name!r} has "
                f"{second.number}; fields are written by number, so give the prefix the smaller one"
            )
        if not first.has_presence:
            raise ConfigError(
                f"field {first.name!r} of {descriptor.full_name} is not written where it has its default value, or is "
                "repeated, so it is no prefix; declare it optional, or make it a message"
            )
        self._message = message
        self._names = names
        self._are_messages = first.message_type is not None, second.message_type is not None

    def __repr__(self) -> str:
        return f"ProtobufCombinedKeySerde({self._message.DESCRIPTOR.full_name})"

    def encoder(self, topic: str) -> EncoderOf[CombinedKey[P, S]]:
        def encode(data: tuple[object, object] | None, headers: Headers) -> bytes | None:
            return None if data is None else self._written(topic, data, *_parts(self, topic, data))

        return encode

    def decoder(self, topic: str) -> Decoder:
        from google.protobuf.message import DecodeError

        message, (first, second) = self._message, self._names

        def decode(data: bytes | None, headers: Headers) -> object:
            if data is None:
                return None
            try:
                read = message.FromString(data)
            except DecodeError as error:
                raise refused_bytes(repr(self), topic, data, str(error)) from error
            return CombinedKey(getattr(read, first), getattr(read, second))

        return decode

    def partial_key_serializer(self) -> Serializer[P]:
        """Returns the serializer of messages with the first field alone."""
        return _PartialKeys(lambda topic: lambda data, headers: self._written(topic, data, data))

    def _written(self, topic: str, data: object, *parts: object) -> bytes:
        message = self._message()
        try:
            for name, is_message, part in zip(self._names, self._are_messages, parts, strict=False):
                if is_message:
                    getattr(message, name).CopyFrom(part)
                    getattr(message, name).SetInParent()  # an empty message is written, too
                else:
                    setattr(message, name, part)
            written: bytes = message.SerializeToString(deterministic=True)
        except (TypeError, ValueError, AttributeError) as error:
            raise refused_value(repr(self), topic, data, f"{type(error).__name__}: {error}") from error
        return written


@dataclass(frozen=True)
class PrefixChecked(CompiledSerde[T], Generic[P, T]):
    """A serde of keys that looks at each key it writes whether it starts with its partial key.

    ``reference(key)`` gives what ``partial`` writes.
    """

    inner: Serde[T]
    partial: Serializer[P]
    reference: Callable[[Any], object]

    def __repr__(self) -> str:
        return describe(self.inner)

    def encoder(self, topic: str) -> Encoder:
        encode_key, encode_partial = bind_serializer(self.inner.serializer, topic), bind_serializer(self.partial, topic)
        reference = self.reference

        def encode(data: object, headers: Headers) -> bytes | None:
            key = encode_key(data, headers)
            if key is None:
                return None
            partial = encode_partial(reference(data), headers)
            if not partial or not key.startswith(partial):
                raise no_prefix(describe(self.inner), topic, data, key, partial)
            return key

        return encode

    def decoder(self, topic: str) -> Decoder:
        return bind_deserializer(self.inner.deserializer, topic)


@dataclass(frozen=True)
class FakedPrefixes(CompiledSerializer[object]):
    """Writes partial keys by a serde of whole ones: ``fake(reference)`` is a key of which it writes the prefix only."""

    inner: AnySerde
    fake: Callable[[Any], object]

    def encoder(self, topic: str) -> Encoder:
        encode_key, fake = bind_serializer(self.inner.serializer, topic), self.fake
        return lambda data, headers: encode_key(fake(data), headers)


def no_prefix(serde: str, topic: str, key: object, written: bytes, partial: bytes | None) -> SerdeError:
    """The error for a key that does not start with its partial key."""
    part = "nothing" if not partial else shown(partial)
    return SerdeError(
        f"{serde} writes {shown(key)} for topic {topic!r} as {shown(written)}, and its partial key as {part}, which is "
        "no prefix of it; rows would not be found. A partial key must be what the whole key starts with, up "
        "to where the second part begins; test the serde with pykstreams.testing.assert_prefix_serde",
        topic=topic,
        serde=serde,
    )


@dataclass(frozen=True)
class _PartialKeys(CompiledSerializer[object]):
    make: Callable[[str], Encoder]

    def encoder(self, topic: str) -> Encoder:
        return self.make(topic)


def _parts(serde: object, topic: str, data: tuple[object, object]) -> tuple[object, object]:
    try:
        first, second = data
    except (TypeError, ValueError) as error:
        raise refused_value(repr(serde), topic, data, "expected a CombinedKey") from error
    if first is None:
        raise refused_value(repr(serde), topic, data, "its prefix must not be None")
    return first, second


def _same(value: object) -> object:
    return value
