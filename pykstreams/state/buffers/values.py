"""The values of a suppression buffer, and their bytes in the changelog in each format there has been.

A value is the change last put (``old``, ``new``), what the table had before the key was buffered (``prior``), and the
record that brought the change. In the changelog, with ``time`` the place of the key in the buffer, numbers big-endian::

    v3     context | prior | old | new | time (8)           old: length (4), -1 null, -2 the same as prior | value
    v2     context | length (4) of change | change | prior | time (8)
    v1     time (8) | context | length (4) of change | change
    v0     time (8) | change                                no header "v"
    change old | new                                        prior, old, new: length (4), -1 null | value

The header ``v`` holds the version as one byte. v3 is written; the others are read, since a changelog may be older than
the application. Sources: ``BufferValue``, ``InMemoryTimeOrderedKeyValueChangeBuffer``,
``TimeOrderedKeyValueBufferChangelogDeserializationHelper``, 4.3.1.
"""

from __future__ import annotations

import struct
from typing import Final, TypeAlias

from pykstreams.core.types import Headers
from pykstreams.state.encoding.record_context import (
    Origin,
    PackedReader,
    RawContext,
    context_bytes,
    pack_context,
    sized,
)

HEADERS: Final[Headers] = (("v", b"\x03"),)
"""The headers of what is written."""

Read: TypeAlias = "tuple[int, BufferValue]"
"""Time and value."""

_SAME_AS_PRIOR: Final = b"\xff\xff\xff\xfe"
_NO_PRIOR_NO_OLD: Final = 2 * sized(None)
_NO_TIME: Final = bytes(8)
_pack_long = struct.Struct(">q").pack


class BufferValue:
    """The value kept for one key; never changed in place.

    ``size`` is what it counts for (``BufferValue.residentMemorySizeEstimate``, 4.3.1): an old value equal to the prior
    one is counted once.
    """

    __slots__ = ("new", "old", "prior", "raw", "size")

    def __init__(self, prior: bytes | None, old: bytes | None, new: bytes | None, raw: RawContext) -> None:
        self.prior = prior
        self.old = old
        self.new = new
        self.raw = raw
        size = context_bytes(raw)
        if prior is not None:
            size += len(prior)
        if old is not None and old != prior:
            size += len(old)
        if new is not None:
            size += len(new)
        self.size = size


def pack(time: int, value: BufferValue) -> bytes:
    """Returns the bytes of a changelog row."""
    prior, old = value.prior, value.old
    packed_old = _SAME_AS_PRIOR if old is not None and old == prior else sized(old)
    return pack_context(value.raw) + sized(prior) + packed_old + sized(value.new) + _pack_long(time)


def pack_record(value: bytes | None, raw: RawContext) -> bytes:
    """Returns the bytes of a row for a record instead of a change: ``value`` is the new one, and its time is 0."""
    return pack_context(raw) + _NO_PRIOR_NO_OLD + sized(value) + _NO_TIME


def read(data: bytes, headers: Headers, timestamp: int, prior: bytes | None, changelog: Origin) -> Read:
    """Reads a changelog row of any version; ``ValueError`` for one that is none.

    :param timestamp: the time of the row itself, which v0 took for that of the record.
    :param prior: the prior value known for the key, for versions that did not write it.
    :param changelog: what v0 took for where the record came from.
    """
    versions = [version for name, version in headers if name == "v"]
    if not versions:
        return _read_v0(data, (changelog, timestamp, headers), prior)
    version = versions[-1]
    if version == b"\x03":
        return read_v3(data)
    if version == b"\x02":
        return _read_v2_or_v3(data)
    if version == b"\x01":
        return _read_v1(data, prior)
    raise ValueError(f"its header 'v' is {version!r}")


def read_v3(data: bytes) -> Read:
    """Reads a changelog row of the version that is written; ``ValueError`` for one that is none."""
    reader = PackedReader(data)
    raw = reader.context()
    prior = reader.sized()
    size = reader.int32()
    if size == -2:
        old = prior
    else:
        old = None if size == -1 else reader.take(size)
    new = reader.sized()
    return reader.int64(), BufferValue(prior, old, new, raw)


def _read_v2_or_v3(data: bytes) -> Read:
    """Kafka Streams 2.4.0, 2.4.1 and 2.5.0 wrote v3 and called it v2."""
    try:
        return _read_v2(data)
    except ValueError as not_v2:
        try:
            return read_v3(data)
        except ValueError as not_v3:
            raise ValueError(f"it is neither v2 ({not_v2}) nor v3 ({not_v3})") from not_v3


def _read_v2(data: bytes) -> Read:
    reader = PackedReader(data)
    raw = reader.context()
    old, new = _change(reader.sized())
    prior = reader.sized()
    return reader.int64(), BufferValue(prior, old, new, raw)


def _read_v1(data: bytes, prior: bytes | None) -> Read:
    reader = PackedReader(data)
    time, raw = reader.int64(), reader.context()
    old, new = _change(reader.sized())
    return time, BufferValue(old if prior is None else prior, old, new, raw)


def _read_v0(data: bytes, raw: RawContext, prior: bytes | None) -> Read:
    reader = PackedReader(data)
    time = reader.int64()
    old, new = _change(reader.rest())
    return time, BufferValue(old if prior is None else prior, old, new, raw)


def _change(data: bytes | None) -> tuple[bytes | None, bytes | None]:
    if data is None:
        raise ValueError("it has no change")
    reader = PackedReader(data)
    return reader.sized(), reader.sized()
