"""The times that rows of a store with retention may have, as observed stream time advances.

Observed stream time is the highest time that was put. What is older than it by the retention is hidden from every
read; what is refused, and dropped, depends on whether rows go segment by segment (``AbstractSegments``,
``AbstractRocksDBSegmentedBytesStore``) or one by one (``InMemoryWindowStore``, ``InMemorySessionStore``, 4.3.1).

Invariants: no row that can be read is older than ``oldest`` or newer than ``newest``; nothing older than
``taken_from``, which ``oldest`` never falls below, is taken.
"""

from __future__ import annotations

from typing import Final

from pykstreams.state.encoding.composed_keys import LAST_TIME

NO_TIME: Final = -1
"""Observed stream time before the first row."""

_DROPS_PER_RETENTION: Final = 8
"""How often rows without segments are dropped while stream time advances by the retention."""


class LiveTimes:
    """The bounds of what is shown, taken, there and dropped, in milliseconds.

    :param shown_ms: by how much a row that is shown may be older than the newest.
    :param segment_ms: how long a segment is, which is refused and dropped as a whole; ``None``: rows are refused as
        soon as they are hidden.
    """

    __slots__ = (
        "_dropped_before",
        "_dropped_ms",
        "_next_segment_at",
        "_retention_ms",
        "_segment_ms",
        "_shown_ms",
        "newest",
        "observed",
        "oldest",
        "shown_from",
        "taken_from",
    )

    def __init__(self, retention_ms: int, shown_ms: int, segment_ms: int | None) -> None:
        self._retention_ms = retention_ms
        self._shown_ms = shown_ms
        self._segment_ms = segment_ms
        self._dropped_ms = retention_ms // _DROPS_PER_RETENTION + 1 if segment_ms is None else 1
        self.reset()

    def reset(self) -> None:
        """Forgets every time."""
        self.observed = NO_TIME
        self.shown_from = NO_TIME - self._shown_ms
        self.taken_from = 0
        self.oldest, self.newest = LAST_TIME, NO_TIME
        self._dropped_before = 0
        self._next_segment_at = NO_TIME

    def kept(self, oldest: int, newest: int) -> None:
        """Notes the bounds of rows that were there before; they are no observed times."""
        self.oldest, self.newest = oldest, newest

    def put(self, time: int) -> bool:
        """Notes the time of a row, which is observed by now; returns whether the row is still taken."""
        if time < self.taken_from:
            return False
        if time < self.oldest:
            self.oldest = time
        return True

    def advance(self, time: int) -> tuple[int, int] | None:
        """Observes a time that is higher than all before; returns from when until before when rows are dropped."""
        self.observed = time
        if time > self.newest:
            self.newest = time
        self.shown_from = time - self._shown_ms
        if time < self._next_segment_at:  # true of most
            return None
        was_empty = self.oldest == LAST_TIME
        segment_ms = self._segment_ms
        if segment_ms is None:
            taken_from = self.shown_from
        else:
            taken_from = max(self.taken_from, (time - self._retention_ms) // segment_ms * segment_ms)
            self._next_segment_at = taken_from + segment_ms + self._retention_ms
        self.taken_from = taken_from
        if self.oldest < taken_from:
            self.oldest = taken_from
        if was_empty:
            self._dropped_before = max(taken_from, 0)
            return None
        dropped_from = self._dropped_before
        if taken_from - dropped_from < self._dropped_ms:
            return None
        self._dropped_before = taken_from
        return dropped_from, taken_from
