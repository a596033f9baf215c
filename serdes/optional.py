"""Values that may be missing inside of something that is there, such as a part of a combined key::

    None          no bytes
    a value       01 {bytes of the inner serde}

The byte in front tells a missing value from one that has no bytes, such as an empty text. The bytes of one value are a
prefix of another's only where those of the inner serde are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pykstreams.core.types import Decoder, Encoder, Headers
from pykstreams.serdes.base import (
    CompiledSerde,
    Serde,
    bind_deserializer,
    bind_serializer,
    refused_bytes,
    refused_value,
)

T = TypeVar("T")

_THERE = b"\x01"


@dataclass(frozen=True)
class OptionalSerde(CompiledSerde[T | None], Generic[T]):
    """Values of the inner serde, or ``None`` as a value of its own: it has bytes, though none of them.

    >>> from pykstreams.serdes import StringSerde
    >>> serde = OptionalSerde(StringSerde())
    >>> serde.serialize("topic", None), serde.serialize("topic", ""), serde.serialize("topic", "a")
    (b'', b'\\x01', b'\\x01a')
    """

    inner: Serde[T]

    def encoder(self, topic: str) -> Encoder:
        inner = bind_serializer(self.inner.serializer, topic)

        def encode(data: object, headers: Headers) -> bytes:
            if data is None:
                return b""
            raw = inner(data, headers)
            if raw is None:
                raise refused_value(repr(self), topic, data, "the inner serde gives no bytes")
            return _THERE + raw

        return encode

    def decoder(self, topic: str) -> Decoder:
        inner = bind_deserializer(self.inner.deserializer, topic)

        def decode(data: bytes | None, headers: Headers) -> object:
            if not data:
                return None
            if data[:1] != _THERE:
                raise refused_bytes(repr(self), topic, data, "expected no bytes, or 01 and the bytes of a value")
            return inner(data[1:], headers)

        return decode
