"""Values that carry the key which their record had before, for joins over a repartition topic and back::

{length of the key: 4, big-endian, -1 for null}{key}{value}
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from pykstreams.core.types import Decoder, Encoder, Headers
from pykstreams.serdes.base import (
    CompiledSerde,
    EncoderOf,
    Serde,
    bind_deserializer,
    bind_serializer,
    refused_bytes,
    refused_value,
)

V = TypeVar("V")

_LENGTH = struct.Struct(">i")


class Carried(NamedTuple, Generic[V]):
    """A value with the bytes of the key that its record had."""

    key: bytes | None
    value: V


@dataclass(frozen=True)
class CarriedSerde(CompiledSerde[Carried[V]], Generic[V]):
    """Values with the bytes of a key; a value must not be ``None``.

    >>> from pykstreams.serdes import StringSerde
    >>> serde = CarriedSerde(StringSerde())
    >>> serde.serialize("topic", Carried(b"order", "5 apples"))
    b'\\x00\\x00\\x00\\x05order5 apples'
    >>> serde.deserialize("topic", b"\\xff\\xff\\xff\\xff5 apples")
    Carried(key=None, value='5 apples')
    """

    value: Serde[V]

    def encoder(self, topic: str) -> EncoderOf[Carried[V]]:
        return _encode(bind_serializer(self.value.serializer, topic), topic)

    def decoder(self, topic: str) -> Decoder:
        return _decode(bind_deserializer(self.value.deserializer, topic), topic)


def _encode(value: Encoder, topic: str) -> EncoderOf[Carried[V]]:
    pack = _LENGTH.pack
    null = pack(-1)

    def encode(data: Carried[V] | None, headers: Headers) -> bytes | None:
        if data is None:
            return None
        key, carrying = data
        body = value(carrying, headers)
        if body is None:
            raise refused_value("CarriedSerde", topic, data, "the value has no bytes")
        return null + body if key is None else pack(len(key)) + key + body

    return encode


def _decode(value: Decoder, topic: str) -> Decoder:
    unpack = _LENGTH.unpack

    def decode(data: bytes | None, headers: Headers) -> Carried[object] | None:
        if data is None:
            return None
        try:
            length = unpack(data[:4])[0]
        except struct.error as error:
            raise refused_bytes("CarriedSerde", topic, data, "expected a length in 4 bytes") from error
        if not -1 <= length <= len(data) - 4:
            why = f"the key has length {length}, {len(data) - 4} bytes are left"
            raise refused_bytes("CarriedSerde", topic, data, why)
        if length == -1:
            return Carried(None, value(data[4:], headers))
        return Carried(data[4 : 4 + length], value(data[4 + length :], headers))

    return decode
