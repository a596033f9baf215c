"""The record that brought a value, as it is kept beside the value: its size, and its bytes in a changelog.

While it is kept in memory it is the ``raw`` of ``CurrentRecord``: (message, timestamp in ms, headers); a message of
``None`` stands for a punctuator. In a changelog (``ProcessorRecordContext.serialize``, 4.3.1), numbers big-endian::

    timestamp (8) | offset (8) | topic length (4) | topic | partition (4) | number of headers (4) | headers
    header: name length (4) | name | value length (4), -1 for null | value

Kafka Streams cannot write what a punctuator brought, which has no topic; here its topic is empty text.
"""

from __future__ import annotations

import struct
from typing import Any, Final, TypeAlias

from pykstreams.core.types import Headers

RawContext: TypeAlias = tuple[Any, int, Headers]
"""Message, timestamp in ms and headers."""

_FIXED_BYTES: Final = 20  # timestamp, offset, partition
_NULL: Final = b"\xff\xff\xff\xff"

_pack_start = struct.Struct(">qqi").pack
_pack_ints = struct.Struct(">ii").pack
_pack_int = struct.Struct(">i").pack
_int_at = struct.Struct(">i").unpack_from
_long_at = struct.Struct(">q").unpack_from


class Origin:
    """Where a record came from that was read back from a changelog: a message without its key and value."""

    __slots__ = ("_offset", "_partition", "_topic")

    def __init__(self, topic: str, partition: int, offset: int) -> None:
        self._topic = topic
        self._partition = partition
        self._offset = offset

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes | None:
        return None


class KeptMessage(Origin):
    """Where a record came from, with the key and the value that it had there."""

    __slots__ = ("_key", "_value")

    def __init__(self, origin: Origin, key: bytes | None, value: bytes | None) -> None:
        super().__init__(origin.topic(), origin.partition(), origin.offset())
        self._key = key
        self._value = value

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value


def without_message(raw: RawContext) -> RawContext:
    """The fields of a context that was packed and read again."""
    message, timestamp, headers = raw
    origin = Origin("", -1, -1) if message is None else Origin(message.topic(), message.partition(), message.offset())
    return origin, timestamp, tuple(headers)


def context_bytes(raw: RawContext | None) -> int:
    """How many bytes a context counts for (``ProcessorRecordContext.residentMemorySizeEstimate``, 4.3.1)."""
    if raw is None:
        return _FIXED_BYTES
    message, _, headers = raw
    size = _FIXED_BYTES if message is None else _FIXED_BYTES + len(message.topic())
    for name, value in headers:
        size += len(name) + (0 if value is None else len(value))
    return size


def pack_context(raw: RawContext) -> bytes:
    """Encodes a context."""
    message, timestamp, headers = raw
    if message is None:
        packed = _pack_start(timestamp, -1, 0) + _pack_ints(-1, len(headers))
    else:
        topic = message.topic().encode()
        packed = _pack_start(timestamp, message.offset(), len(topic)) + topic
        packed += _pack_ints(message.partition(), len(headers))
    for name, value in headers:
        packed += sized(name.encode()) + sized(value)
    return packed


def sized(value: bytes | None) -> bytes:
    """Encodes a value after its length, -1 for ``None``."""
    return _NULL if value is None else _pack_int(len(value)) + value


class PackedReader:
    """Reads what was packed, from the start to the end; ``ValueError`` when something cannot be there."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def int32(self) -> int:
        at = self._advance(4)
        value: int = _int_at(self._data, at)[0]
        return value

    def int64(self) -> int:
        at = self._advance(8)
        value: int = _long_at(self._data, at)[0]
        return value

    def take(self, size: int) -> bytes:
        at = self._advance(size)
        return self._data[at : at + size]

    def sized(self) -> bytes | None:
        """A value after its length."""
        size = self.int32()
        return None if size == -1 else self.take(size)

    def rest(self) -> bytes:
        """All that is left."""
        return self.take(len(self._data) - self._at)

    def context(self) -> RawContext:
        """A context; Kafka Streams once wrote -1 for the number of headers where there were none."""
        timestamp, offset = self.int64(), self.int64()
        topic = self.take(self.int32()).decode()
        partition, count = self.int32(), self.int32()
        if count < -1:
            raise ValueError(f"a record has {count} headers")
        headers = tuple((self.take(self.int32()).decode(), self.sized()) for _ in range(count))
        return Origin(topic, partition, offset), timestamp, headers

    def _advance(self, size: int) -> int:
        at = self._at
        if size < 0 or at + size > len(self._data):
            raise ValueError(f"{size} bytes are wanted at {at} of {len(self._data)}")
        self._at = at + size
        return at
