"""Versions of one key that ended in the same segment, packed into one row.

A block, in the byte order of the machine::

    last time (8) | first time (8) | count (4) | start of each version (8) | size of each value (4) | values

Versions are in order of time, each valid from its start to the start of the next one, the last one to the last time.
A value has one more byte before it, so that a deletion, of size 0, is none. A block without versions only knows that
its key was deleted at its time.

Invariants: first time is the start of the first version, or the last time where there are none; all times differ.
"""

from __future__ import annotations

from bisect import bisect_right
from struct import Struct
from typing import Final, NamedTuple

_HEAD: Final = Struct("=qqI")
_TIME: Final = Struct("=q")
_SIZE: Final = Struct("=I")
_SINGLE: Final = Struct("=qqIqI")
_STARTS_AT: Final = _HEAD.size
_TIME_BYTES: Final = _TIME.size
_SIZE_BYTES: Final = _SIZE.size
_THERE: Final = b"\0"

last_time = _TIME.unpack_from
"""Unpacks (last time,) of a block."""

bounds = _HEAD.unpack_from
"""Unpacks (last time, first time, count) of a block."""


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
        return _SINGLE.pack(end, start, 1, start, 0)
    return _SINGLE.pack(end, start, 1, start, len(value) + 1) + _THERE + value


def appended(block: bytes, value: bytes | None, start: int, end: int) -> bytes:
    """A block with one more version at its end; between its last time and ``start`` the key was deleted."""
    last, first, count = _HEAD.unpack_from(block)
    if last < start:
        block = appended(block, None, last, start)
        last, first, count = _HEAD.unpack_from(block)
    if count == 0:
        return single(value, start, end)
    sizes_at = _STARTS_AT + _TIME_BYTES * count
    values_at = sizes_at + _SIZE_BYTES * count
    kept = b"" if value is None else _THERE + value
    return b"".join(
        (
            _HEAD.pack(end, first, count + 1),
            block[_STARTS_AT:sizes_at],
            _TIME.pack(start),
            block[sizes_at:values_at],
            _SIZE.pack(len(kept)),
            block[values_at:],
            kept,
        )
    )


def prepended(block: bytes, value: bytes | None, start: int) -> bytes:
    """A block with one more version before its first one, which may be a mere deletion."""
    last, _, count = _HEAD.unpack_from(block)
    return _spliced(block, 0, 0, value, start) if count else single(value, start, last)


def index_at(block: bytes, time: int) -> tuple[int, int, int]:
    """The version that is valid at a time from the first on and before the last: (index, start, end)."""
    last, _, count = _HEAD.unpack_from(block)
    starts = memoryview(block)[_STARTS_AT : _STARTS_AT + _TIME_BYTES * count].cast("q")
    index = bisect_right(starts, time) - 1
    return index, starts[index], last if index + 1 == count else starts[index + 1]


def found_at(block: bytes, time: int) -> tuple[bytes, int] | None:
    """The value that is valid at a time before the last one, with its start; ``None`` for none."""
    _, start, count = _HEAD.unpack_from(block)
    if start > time:
        return None
    if count == 1:
        return (block[_SINGLE.size + 1 :], start) if len(block) > _SINGLE.size else None
    index, start, _ = index_at(block, time)
    begin, size = _place(block, count, index)
    return (block[begin + 1 : begin + size], start) if size else None


def value_at(block: bytes, index: int) -> bytes | None:
    """The value of a version."""
    count = _HEAD.unpack_from(block)[2]
    begin, size = _place(block, count, index)
    return block[begin + 1 : begin + size] if size else None


def replaced(block: bytes, index: int, value: bytes | None, start: int) -> bytes:
    """A block in which a version has another value and starts at another time."""
    return _spliced(block, index, 1, value, start)


def divided(block: bytes, index: int, value: bytes | None, start: int) -> bytes:
    """A block in which a version is valid up to ``start`` only, and another one from there on."""
    return _spliced(block, index + 1, 0, value, start)


def versions(block: bytes) -> list[Version]:
    """Every version, in order of time."""
    last, _, count = _HEAD.unpack_from(block)
    sizes_at = _STARTS_AT + _TIME_BYTES * count
    begin = sizes_at + _SIZE_BYTES * count
    view = memoryview(block)
    starts = [*view[_STARTS_AT:sizes_at].cast("q"), last]
    found: list[Version] = []
    for index, size in enumerate(view[sizes_at:begin].cast("I")):
        end = begin + size
        found.append(Version(block[begin + 1 : end] if size else None, starts[index], starts[index + 1]))
        begin = end
    return found


def _spliced(block: bytes, at: int, removed: int, value: bytes | None, start: int) -> bytes:
    """A block with a version in the place of none or of one."""
    last, first, count = _HEAD.unpack_from(block)
    sizes_at = _STARTS_AT + _TIME_BYTES * count
    values_at = sizes_at + _SIZE_BYTES * count
    start_at, size_at = _STARTS_AT + _TIME_BYTES * at, sizes_at + _SIZE_BYTES * at
    begin, size = _place(block, count, at)
    kept = b"" if value is None else _THERE + value
    return b"".join(
        (
            _HEAD.pack(last, first if at else start, count + 1 - removed),
            block[_STARTS_AT:start_at],
            _TIME.pack(start),
            block[start_at + _TIME_BYTES * removed : sizes_at],
            block[sizes_at:size_at],
            _SIZE.pack(len(kept)),
            block[size_at + _SIZE_BYTES * removed : values_at],
            block[values_at:begin],
            kept,
            block[begin + size if removed else begin :],
        )
    )


def _place(block: bytes, count: int, index: int) -> tuple[int, int]:
    """Where the value of a version begins, and its size; that of the version after the last is at the end."""
    sizes_at = _STARTS_AT + _TIME_BYTES * count
    values_at = sizes_at + _SIZE_BYTES * count
    sizes = memoryview(block)[sizes_at:values_at].cast("I")
    if index == count:
        return len(block), 0
    if index * 2 < count:
        return values_at + sum(sizes[:index]), sizes[index]
    return len(block) - sum(sizes[index:]), sizes[index]
