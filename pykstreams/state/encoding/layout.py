"""How a value, its timestamp and its headers become the bytes of one row, and how such rows are written to a changelog.

Four layouts, big-endian::

    plain          value
    timestamped    timestamp (8 bytes, signed) | value                           ValueAndTimestampSerializer, 4.3.1
    with headers   size of headers (varint) | headers | timestamp (8) | value    ValueTimestampHeadersSerializer, 4.3.1
    of sessions    size of headers (varint) | headers | value                    AggregationWithHeadersSerializer, 4.3.1

    headers        nothing when there are none, else: count (varint), then for each
                   length of key (varint) | key (UTF-8) | length of value (varint, -1 for null) | value

Varints are Kafka's: zig-zag, seven bits a byte, the lowest first.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Final, TypeAlias

from pykstreams.core.kept_bytes import kept
from pykstreams.core.types import Headers
from pykstreams.state.encoding.changelog_rows import ChangelogColumns
from pykstreams.state.interfaces.engine import Write

NO_TIMESTAMP: Final = -1
"""The timestamp of a row that was kept without one."""

Parts: TypeAlias = tuple[bytes, int, Headers]
"""Value, timestamp and headers of a row."""

TIMESTAMP: Final = struct.Struct(">q")
_WIDTH: Final = TIMESTAMP.size
_NO_HEADERS: Final = b"\0"
"""The first byte of a row without headers, in the layouts that keep some."""


class Layout(ABC):
    """One way to pack a row."""

    name: ClassVar[str]
    """The parts of a row beside the value, in words that files on disk have: they never change."""

    @abstractmethod
    def pack(self, value: bytes, timestamp: int, headers: Headers) -> bytes:
        """Returns the bytes of a row."""

    @abstractmethod
    def unpack(self, packed: bytes) -> Parts:
        """Divides a row; what the layout does not keep is ``NO_TIMESTAMP`` and no headers."""

    def restored(self, rows: ChangelogColumns) -> Iterable[Write]:
        """Packs changelog rows."""
        pack = self.pack
        return [
            (key, None if value is None else pack(value, timestamp, headers)) for key, value, timestamp, headers in rows
        ]


class _Plain(Layout):
    name = "plain"

    def pack(self, value: bytes, timestamp: int, headers: Headers) -> bytes:
        return kept(value)

    def unpack(self, packed: bytes) -> Parts:
        return packed, NO_TIMESTAMP, ()

    def restored(self, rows: ChangelogColumns) -> Iterable[Write]:
        return zip(rows.keys, rows.values, strict=True)


class _Timestamped(Layout):
    name = "timestamped"

    def pack(self, value: bytes, timestamp: int, headers: Headers) -> bytes:
        return TIMESTAMP.pack(timestamp) + value

    def unpack(self, packed: bytes) -> Parts:
        return packed[_WIDTH:], TIMESTAMP.unpack_from(packed)[0], ()

    def restored(self, rows: ChangelogColumns) -> Iterable[Write]:
        pack = TIMESTAMP.pack
        packed = [
            None if (value := record.value()) is None else pack(record.timestamp()[1]) + value
            for record in rows.records
        ]
        return zip(rows.keys, packed, strict=True)


class _WithHeaders(Layout):
    name = "with headers"

    def pack(self, value: bytes, timestamp: int, headers: Headers) -> bytes:
        if not headers:
            return _NO_HEADERS + TIMESTAMP.pack(timestamp) + value
        raw = pack_headers(headers)
        return b"".join((_varint(len(raw)), raw, TIMESTAMP.pack(timestamp), value))

    def unpack(self, packed: bytes) -> Parts:
        if not packed[0]:
            return packed[_WIDTH + 1 :], TIMESTAMP.unpack_from(packed, 1)[0], ()
        size, start = _read_varint(packed, 0)
        end = start + size
        headers = unpack_headers(packed[start:end])
        return packed[end + _WIDTH :], TIMESTAMP.unpack_from(packed, end)[0], headers


class _HeadersAndValue(Layout):
    name = "sessions with headers"

    def pack(self, value: bytes, timestamp: int, headers: Headers) -> bytes:
        raw = pack_headers(headers)
        return b"".join((_varint(len(raw)), raw, value))

    def unpack(self, packed: bytes) -> Parts:
        size, start = _read_varint(packed, 0)
        end = start + size
        return packed[end:], NO_TIMESTAMP, unpack_headers(packed[start:end])


PLAIN: Final[Layout] = _Plain()
TIMESTAMPED: Final[Layout] = _Timestamped()
WITH_HEADERS: Final[Layout] = _WithHeaders()
HEADERS_AND_VALUE: Final[Layout] = _HeadersAndValue()


def pack_headers(headers: Headers) -> bytes:
    """Writes headers.

    >>> pack_headers([("a", b"x"), ("b", None)]).hex(" ")
    '04 02 61 02 78 02 62 01'
    """
    if not headers:
        return b""
    parts = [_varint(len(headers))]
    for name, value in headers:
        raw = name.encode()
        parts += _varint(len(raw)), raw
        if value is None:
            parts.append(_varint(-1))
        else:
            parts += _varint(len(value)), value
    return b"".join(parts)


def unpack_headers(raw: bytes) -> Headers:
    """Reads what ``pack_headers`` writes.

    >>> unpack_headers(bytes.fromhex("0402610278026201"))
    (('a', b'x'), ('b', None))
    """
    if not raw:
        return ()
    count, at = _read_varint(raw, 0)
    found: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        size, at = _read_varint(raw, at)
        name = raw[at : at + size].decode()
        size, at = _read_varint(raw, at + size)
        if size < 0:
            found.append((name, None))
        else:
            found.append((name, raw[at : at + size]))
            at += size
    return tuple(found)


def _varint(value: int) -> bytes:
    rest = value << 1 if value >= 0 else (-value << 1) - 1
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
