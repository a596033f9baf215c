"""Keys of two parts, for joins between a table's key and a foreign key (``CombinedKeySchema``, 4.3.1)::

    {length of the prefix: 4, big-endian}{prefix}{suffix}

The length comes first, so the bytes of one prefix are never a prefix of another's: a scan over
``prefix_bytes`` finds exactly the keys with that prefix. ``encode_combined_key`` and its counterpart work on
halves that are bound already, for joins that serialize each half under a topic of its own.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from pykstreams.core.types import Decoder, Encoder, Headers
from pykstreams.serdes.base import (
    CompiledSerde,
    CompiledSerializer,
    EncoderOf,
    Serde,
    Serializer,
    bind_deserializer,
    bind_serializer,
    fixed_width,
    refused_bytes,
    refused_value,
)

P = TypeVar("P")
S = TypeVar("S")

_LENGTH = struct.Struct(">i")
_pack_length = _LENGTH.pack
_CURE = " (a part that may be None wants an OptionalSerde)"


class CombinedKey(NamedTuple, Generic[P, S]):
    """A key of two parts: what is scanned by, and what tells the rows of one scan apart."""

    prefix: P
    suffix: S


@dataclass(frozen=True)
class CombinedKeySerde(CompiledSerde[CombinedKey[P, S]], Generic[P, S]):
    """Combined keys; neither part may be ``None``, unless its serde is an ``OptionalSerde``.

    >>> from pykstreams.serdes import StringSerde
    >>> serde = CombinedKeySerde(StringSerde(), StringSerde())
    >>> serde.serialize("topic", CombinedKey("customer", "order"))
    b'\\x00\\x00\\x00\\x08customerorder'
    >>> serde.prefix_bytes("topic", "customer")
    b'\\x00\\x00\\x00\\x08customer'
    """

    prefix: Serde[P]
    suffix: Serde[S]

    def encoder(self, topic: str) -> EncoderOf[CombinedKey[P, S]]:
        return encode_combined_key(
            bind_serializer(self.prefix.serializer, topic),
            bind_serializer(self.suffix.serializer, topic),
            topic,
        )

    def decoder(self, topic: str) -> Decoder:
        return decode_combined_key(
            bind_deserializer(self.prefix.deserializer, topic),
            bind_deserializer(self.suffix.deserializer, topic),
            topic,
        )

    def prefix_bytes(self, topic: str, prefix: P, headers: Headers | None = None) -> bytes:
        """Returns the bytes that all keys with that prefix start with, and no others."""
        encoded = encode_prefix(bind_serializer(self.prefix.serializer, topic), topic)(prefix, headers or ())
        if encoded is None:
            raise refused_value(repr(self), topic, prefix, "the prefix must not be None")
        return encoded

    def partial_key_serializer(self) -> Serializer[P]:
        """Returns the serializer of prefixes alone: ``prefix_bytes`` as an object."""
        return PartialKeySerializer(self.prefix.serializer)


@dataclass(frozen=True)
class PartialKeySerializer(CompiledSerializer[P], Generic[P]):
    """Writes the prefix of a combined key, for range scans."""

    inner: Serializer[P]

    @property
    def width(self) -> int | None:
        inner = fixed_width(self.inner)
        return None if inner is None else _LENGTH.size + inner

    def encoder(self, topic: str) -> Encoder:
        return encode_prefix(bind_serializer(self.inner, topic), topic)


def prefix_width(key_serde: object) -> int | None:
    """Returns how many bytes the partial keys of a serde of combined keys have; ``None`` where that differs, or where
    keys have no parts.

    >>> from pykstreams.serdes import Serdes
    >>> prefix_width(CombinedKeySerde(Serdes.long(), Serdes.string()))
    12
    """
    partial = getattr(key_serde, "partial_key_serializer", None)
    return fixed_width(partial()) if callable(partial) else None


def encode_combined_key(prefix: Encoder, suffix: Encoder, topic: str) -> EncoderOf[tuple[object, object]]:
    """Binds two encoders to one of combined keys."""
    pack = _LENGTH.pack

    def encode(data: tuple[object, object] | None, headers: Headers) -> bytes | None:
        if data is None:
            return None
        try:
            first, second = data
            head = prefix(first, headers)
            return pack(len(head)) + head + suffix(second, headers)  # type: ignore[arg-type, operator]
        except (TypeError, ValueError) as error:
            why = f"expected a CombinedKey whose prefix and suffix are not None{_CURE}"
            raise refused_value("CombinedKeySerde", topic, data, why) from error

    return encode


def combined_key_bytes(prefix: bytes, suffix: bytes) -> bytes:
    """Returns the bytes of a combined key whose parts are serialized."""
    return _pack_length(len(prefix)) + prefix + suffix


def decode_combined_key(prefix: Decoder, suffix: Decoder, topic: str) -> Decoder:
    """Binds two decoders to one of combined keys."""
    unpack = _LENGTH.unpack

    def decode(data: bytes | None, headers: Headers) -> CombinedKey[object, object] | None:
        if data is None:
            return None
        try:
            end = 4 + unpack(data[:4])[0]
        except (struct.error, TypeError) as error:
            raise refused_bytes("CombinedKeySerde", topic, data, "expected a length in 4 bytes") from error
        if not 4 <= end <= len(data):
            why = f"the prefix has length {end - 4}, {len(data) - 4} bytes are left"
            raise refused_bytes("CombinedKeySerde", topic, data, why)
        return CombinedKey(prefix(data[4:end], headers), suffix(data[end:], headers))

    return decode


def encode_prefix(prefix: Encoder, topic: str) -> Encoder:
    """Binds the encoder of prefixes to one of partial keys; ``None`` stays ``None``."""
    pack = _LENGTH.pack

    def encode(data: object, headers: Headers) -> bytes | None:
        if data is None:
            return None
        head = prefix(data, headers)
        if head is None:
            raise refused_value("CombinedKeySerde", topic, data, "the prefix has no bytes")
        return pack(len(head)) + head

    return encode
