"""Lists of values, with the bytes of ``ListSerializer`` (clients 4.3.1), which has two layouts::

    01 {count: 4} {length: 4, -1 for null}{entry} ...              entries of any size
    00 {nulls: 4}{index: 4 each} {count: 4} {entry} ...            entries of one size: short, integer, long,
                                                                   float, double, UUID; nulls have no bytes

All numbers are big-endian. Two mistakes of ``ListDeserializer`` are left out: it refuses a list that ends
with an entry of no bytes, and fills an entry that was cut off with zeros.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeVar

from pykstreams.core.types import Decoder, Encoder, Headers
from pykstreams.serdes.base import (
    CompiledSerde,
    Serde,
    bind_deserializer,
    bind_serializer,
    refused_bytes,
    refused_value,
    wrong_type,
)
from pykstreams.serdes.primitives import (
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    LongSerde,
    ShortSerde,
    UUIDSerde,
)

T = TypeVar("T")

_SIZES: dict[type, int] = {
    ShortSerde: 2,
    IntegerSerde: 4,
    FloatSerde: 4,
    LongSerde: 8,
    DoubleSerde: 8,
    UUIDSerde: 36,
}
_INT = struct.Struct(">i")
_NULL_ENTRY = _INT.pack(-1)
_ONE_SIZE, _ANY_SIZE = b"\x00", b"\x01"


@dataclass(frozen=True)
class ListSerde(CompiledSerde[list[T | None]]):
    """Lists of what the inner serde takes; tuples are written too. Entries may be ``None``.

    >>> ListSerde(LongSerde()).serialize("topic", [5, None]).hex(" ", 4)
    '00 00000001 00000001 00000002 00000000 00000005'
    """

    inner: Serde[T]

    def encoder(self, topic: str) -> Encoder:
        write = _write_one_size if type(self.inner) in _SIZES else _write_any_size
        inner = bind_serializer(self.inner.serializer, topic)

        def encode(data: object, headers: Headers) -> bytes | None:
            if data is None:
                return None
            if not isinstance(data, list | tuple):
                raise wrong_type(repr(self), topic, data, "a list")
            try:
                return write(data, headers, inner)
            except TypeError as error:
                raise refused_value(repr(self), topic, data, "an entry that is not None has no bytes") from error

        return encode

    def decoder(self, topic: str) -> Decoder:
        size = _SIZES.get(type(self.inner))
        inner = bind_deserializer(self.inner.deserializer, topic)

        def decode(data: bytes | None, headers: Headers) -> list[object] | None:
            if data is None:
                return None
            try:
                return _read(data, headers, inner, size)
            except (_BrokenListError, struct.error, TypeError) as error:
                raise refused_bytes(repr(self), topic, data, f"no list: {error}") from error

        return decode


class _BrokenListError(Exception):
    """Bytes that are no list."""


def _write_any_size(data: list[object] | tuple[object, ...], headers: Headers, inner: Encoder) -> bytes:
    pack = _INT.pack
    parts = [_ANY_SIZE, pack(len(data))]
    for entry in data:
        if entry is None:
            parts.append(_NULL_ENTRY)
        else:
            raw = inner(entry, headers)
            parts += (pack(len(raw)), raw)  # type: ignore[arg-type]  # the caller explains a None
    return b"".join(parts)


def _write_one_size(data: list[object] | tuple[object, ...], headers: Headers, inner: Encoder) -> bytes:
    nulls = [index for index, entry in enumerate(data) if entry is None]
    head = struct.pack(f">{len(nulls) + 2}i", len(nulls), *nulls, len(data))
    return b"".join([_ONE_SIZE, head, *[inner(entry, headers) for entry in data if entry is not None]])  # type: ignore[list-item]


def _read(data: bytes, headers: Headers, inner: Decoder, size: int | None) -> list[object]:
    layout = data[:1]
    if layout == _ANY_SIZE:
        return _read_any_size(data, headers, inner)
    if layout != _ONE_SIZE:
        raise _BrokenListError("the first byte is neither 00 nor 01")
    if size is None:
        raise _BrokenListError("its entries have one size, and those of the inner serde have not")
    return _read_one_size(data, headers, inner, size)


def _read_any_size(data: bytes, headers: Headers, inner: Decoder) -> list[object]:
    unpack = _INT.unpack_from
    position, result = 5, list[object]()
    for _ in range(_checked_count(unpack(data, 1)[0], data)):
        length = unpack(data, position)[0]
        position += 4
        if length == -1:
            result.append(None)
            continue
        if not 0 <= length <= len(data) - position:
            raise _BrokenListError(f"entry {len(result)} has length {length}, {len(data) - position} bytes are left")
        result.append(inner(data[position : position + length], headers))
        position += length
    return result


def _read_one_size(data: bytes, headers: Headers, inner: Decoder, size: int) -> list[object]:
    null_count = _checked_count(_INT.unpack_from(data, 1)[0], data)
    nulls = set(struct.unpack_from(f">{null_count}i", data, 5))
    position = 5 + 4 * null_count
    count = _checked_count(_INT.unpack_from(data, position)[0], data)
    position += 4
    result: list[object] = []
    for index in range(count):
        if index in nulls:
            result.append(None)
            continue
        if position + size > len(data):
            raise _BrokenListError(f"entry {index} wants {size} bytes, {len(data) - position} are left")
        result.append(inner(data[position : position + size], headers))
        position += size
    return result


def _checked_count(count: int, data: bytes) -> int:
    if not 0 <= count <= len(data):
        raise _BrokenListError(f"a count is {count}, with {len(data)} bytes in all")
    return count
