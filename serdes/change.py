"""New and old value in one payload, as repartition topics of tables carry it (``ChangedSerializer``, 4.3.1).

The last byte says what is there. Written, as Kafka Streams 4.3.1 writes without ``upgrade.from``::

    {old} 00        {new} 01        {length of new: varint}{new}{old} 02

Read besides these, from applications on the way to a later release::

    {old}{is latest} 03     {new}{is latest} 04     {length of new: varint}{new}{old}{is latest} 05

``is latest`` is one byte, 01 or 00, and true where it is missing; the varint is zig-zag, of up to five bytes.
A change without any value does not exist, nor does a record without a change: both are errors, as in Java.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pykstreams.core.types import Change, Decoder, Headers
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

_OLD, _NEW, _BOTH = 0, 1, 2
_FLAGS_WITH_LATEST = 3


@dataclass(frozen=True)
class ChangeSerde(CompiledSerde[Change[V]], Generic[V]):
    """Changes: tuples ``(new, old, is_latest)``; ``is_latest`` is not written.

    >>> from pykstreams.serdes import StringSerde
    >>> serde = ChangeSerde(StringSerde())
    >>> serde.serialize("topic", ("new", "old", True))
    b'\\x06newold\\x02'
    >>> serde.deserialize("topic", b"old\\x00")
    (None, 'old', True)
    """

    inner: Serde[V]

    def encoder(self, topic: str) -> EncoderOf[Change[V]]:
        inner = bind_serializer(self.inner.serializer, topic)
        short_lengths = [_varint(length) for length in range(64)]

        def encode(data: Change[V] | None, headers: Headers) -> bytes:
            try:
                new, old, _ = data  # type: ignore[misc]  # None is refused below
                if old is None:
                    if new is not None:
                        return inner(new, headers) + b"\x01"  # type: ignore[operator]
                elif new is None:
                    return inner(old, headers) + b"\x00"  # type: ignore[operator]
                else:
                    raw: bytes = inner(new, headers)  # type: ignore[assignment]  # no bytes are refused below
                    length = len(raw)
                    head = short_lengths[length] if length < 64 else _varint(length)
                    return head + raw + inner(old, headers) + b"\x02"  # type: ignore[operator]
            except (TypeError, ValueError) as error:
                raise refused_value(repr(self), topic, data, "expected (new, old, is_latest)") from error
            raise refused_value(repr(self), topic, data, "both values are None")

        return encode

    def decoder(self, topic: str) -> Decoder:
        inner = bind_deserializer(self.inner.deserializer, topic)

        def decode(data: bytes | None, headers: Headers) -> Change[object]:
            try:
                new, old, is_latest = split_change(data)  # type: ignore[arg-type]
            except (TypeError, ValueError, IndexError) as error:
                raise refused_bytes(repr(self), topic, data, f"no change: {error}") from error
            return inner(new, headers), inner(old, headers), is_latest

        return decode


def split_change(data: bytes) -> Change[bytes]:
    """Returns the bytes of the new and the old value; ``ValueError`` or ``IndexError`` for bytes that are none.

    >>> split_change(b"old\\x00")
    (None, b'old', True)
    """
    flag, end, is_latest = data[-1], len(data) - 1, True
    if flag >= _FLAGS_WITH_LATEST:
        flag -= _FLAGS_WITH_LATEST
        end -= 1
        if flag > _BOTH:
            raise ValueError(f"the last byte is {data[-1]}; expected 0 to 5")
        if end < 0 or data[end] > 1:
            raise ValueError("the byte before the last is neither 0 nor 1")
        is_latest = data[end] == 1
    if flag == _OLD:
        return None, data[:end], is_latest
    if flag == _NEW:
        return data[:end], None, is_latest
    length, start = _read_varint(data)
    if not 0 <= length <= end - start:
        raise ValueError(f"the new value has length {length}, {max(end - start, 0)} bytes are left")
    return data[start : start + length], data[start + length : end], is_latest


def _varint(number: int) -> bytes:
    """Encodes a length, which is never negative, as zig-zag varint."""
    number <<= 1
    result = bytearray()
    while number > 0x7F:
        result.append(number & 0x7F | 0x80)
        number >>= 7
    result.append(number)
    return bytes(result)


def _read_varint(data: bytes) -> tuple[int, int]:
    """Decodes a zig-zag varint of up to five bytes; returns it and the position behind it."""
    number = 0
    for position in range(5):
        byte = data[position]
        number |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            number &= 0xFFFFFFFF
            return number >> 1 ^ -(number & 1), position + 1
    raise ValueError("the length of the new value does not end after five bytes")
