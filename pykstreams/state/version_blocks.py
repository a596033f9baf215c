"""Versions of one key that ended in the same segment, packed into one row.

A block, in the byte order of the machine::

    last time (8) | first time (8) | count (4) | start of each version (8) | end of each value (4) | values

Versions are in order of time, each valid from its start to the start of the next one, the last one to the last time.
The end of a value counts from where values begin; it is doubled, and one more marks a deletion, whose value is empty.
A block without versions only knows that its key was deleted at that time.

Invariants: first time is the start of the first version, or the last time where there are none; all times differ.
"""

from __future__ import annotations

from bisect import bisect_right
from struct import Struct
from typing import Final, NamedTuple

_HEAD: Final = Struct("=qqI")
_TIME: Final = Struct("=q")
_END: Final = Struct("=I")
_TIMES_AT: Final = _HEAD.size
_TIME_BYTES: Final = _TIME.size
_END_BYTES: Final = _END.size

last_time = _TIME.unpack_from
"""Gives (last time,) of a block."""

bounds = _HEAD.unpack_from
"""Gives (last time, first time, count) of a block."""


class Version(NamedTuple):
    """A value from ``start`` up to, and without, ``end``; ``None`` for a deletion."""

    value: bytes | None
    start: int
    end: int


def deleted_at(time: int) -> bytes:
    """A block that only knows of a deletion."""
    return _HEAD.pack(time, time, 0)


def single(value: bytes | None, start: int, end: int) -> bytes:
    """A block of one version."""
    if value is None:
        return _HEAD.pack(end, start, 1) + _TIME.pack(start) + _END.pack(1)
    return _HEAD.pack(end, start, 1) + _TIME.pack(start) + _END.pack(len(value) << 1) + value


def appended(block: bytes, value: bytes | None, start: int, end: int) -> bytes:
    """A block with one more version at its end; between its last time and ``start`` the key was deleted."""
    last, first, count = _HEAD.unpack_from(block)
    if last < start:
        block, count = appended(block, None, last, start), count + 1
    if count == 0:
        return single(value, start, end)
    ends_at = _TIMES_AT + _TIME_BYTES * count
    values_at = ends_at + _END_BYTES * count
    size = (len(block) - values_at) << 1
    if value is None:
        size, value = size + 1, b""
    else:
        size += len(value) << 1
    return b"".join(
        (
            _HEAD.pack(end, first, count + 1),
            block[_TIMES_AT:ends_at],
            _TIME.pack(start),
            block[ends_at:values_at],
            _END.pack(size),
            block[values_at:],
            value,
        )
    )


def version_at(block: bytes, time: int) -> Version:
    """The version that is valid at a time from the first on and before the last."""
    last, _, count = _HEAD.unpack_from(block)
    ends_at = _TIMES_AT + _TIME_BYTES * count
    starts = memoryview(block)[_TIMES_AT:ends_at].cast("q")
    index = bisect_right(starts, time) - 1
    end = last if index + 1 == count else starts[index + 1]
    mark = _END.unpack_from(block, ends_at + _END_BYTES * index)[0]
    if mark & 1:
        return Version(None, starts[index], end)
    begin = _END.unpack_from(block, ends_at + _END_BYTES * (index - 1))[0] >> 1 if index else 0
    values_at = ends_at + _END_BYTES * count
    return Version(block[values_at + begin : values_at + (mark >> 1)], starts[index], end)


def versions(block: bytes) -> list[Version]:
    """Every version, in order of time."""
    last, _, count = _HEAD.unpack_from(block)
    ends_at = _TIMES_AT + _TIME_BYTES * count
    values_at = ends_at + _END_BYTES * count
    view = memoryview(block)
    starts = [*view[_TIMES_AT:ends_at].cast("q"), last]
    found: list[Version] = []
    begin = values_at
    for index, mark in enumerate(view[ends_at:values_at].cast("I")):
        end = values_at + (mark >> 1)
        found.append(Version(None if mark & 1 else block[begin:end], starts[index], starts[index + 1]))
        begin = end
    return found


def packed(found: list[Version]) -> bytes:
    """A block of versions, each of which ends where the next one starts; there is at least one."""
    times: list[bytes] = []
    ends: list[bytes] = []
    size = 0
    for value, start, _ in found:
        times.append(_TIME.pack(start))
        size += 0 if value is None else len(value)
        ends.append(_END.pack(size << 1 | (value is None)))
    values = [value for value, _, _ in found if value]
    head = _HEAD.pack(found[-1].end, found[0].start, len(found))
    return b"".join((head, *times, *ends, *values))
