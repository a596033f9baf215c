"""The rows below a cache, of which some are known not to be there.

Invariant: no row below has a later time than the latest of those that were there when the store was opened, and of
those that were evicted since; where keys have no time nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pykstreams.state.interfaces.engine import BytesStore, Row

_ANY_TIME: Final = b"\xff" * 8


class RowsBelow:
    """The reads of what a cache does not have.

    :param time_at: where keys have the time of their window, big-endian.
    """

    __slots__ = ("_below", "_last_time", "_time_at")

    def __init__(self, below: BytesStore, time_at: slice | None) -> None:
        self._below = below
        self._time_at = time_at
        self._last_time = _ANY_TIME

    def know(self, last_time: bytes) -> None:
        """Notes the latest time there is; for a cache that has nothing yet."""
        self._last_time = last_time

    def note_eviction(self, key: bytes) -> None:
        """Notes a row that has left the cache."""
        if self._time_at is not None:
            self._last_time = max(self._last_time, key[self._time_at])

    def get(self, key: bytes) -> bytes | None:
        """Reads a row that the cache does not have."""
        if self._time_at is not None and key[self._time_at] > self._last_time:
            return None
        return self._below.get(key)

    def none_since(self, time: bytes) -> bool:
        """Whether no row is from a time, as keys have it, or later."""
        return time > self._last_time

    def scan_since(self, time: bytes, lower: bytes, upper: bytes, reverse: bool) -> Iterator[Row]:
        """Scans for one who passes over rows from before a time."""
        return iter(()) if self.none_since(time) else self._below.scan(lower, upper, reverse)
