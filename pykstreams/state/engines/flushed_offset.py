"""Which of the offsets that were written to a store have reached the disk.

RocksDB does not tell, but it tells how many entries its write buffers hold, and they leave in their order: with ``n``
of ``m`` offsets still in there, the first ``m - n`` are on disk. Which offset that was is noted whenever somebody asks.
"""

from __future__ import annotations

from typing import Final

_MOST_NOTES: Final = 256


class FlushedOffset:
    """The last offset that is known to be on disk since the store was opened."""

    def __init__(self) -> None:
        self._written = 0
        self._last: int | None = None
        self._notes: list[tuple[int, int]] = []
        self._flushed: int | None = None

    def write(self, offset: int) -> None:
        """Counts an offset that was written."""
        self._written += 1
        self._last = offset

    def flush(self) -> None:
        """Notes that everything is on disk."""
        self._flushed = self._last
        self._written = 0
        self._notes.clear()

    def known(self, waiting: int) -> int | None:
        """The offset on disk, or a lower one, while so many written offsets are not; ``None``: not known."""
        if self._last is not None and (not self._notes or self._notes[-1][0] < self._written):
            self._notes.append((self._written, self._last))
        flushed = self._written - waiting
        left = [note for note in self._notes if note[0] > flushed]
        if len(left) < len(self._notes):
            self._flushed = self._notes[-len(left) - 1][1]
        if len(left) > _MOST_NOTES:
            del left[1::2]
        self._notes = left
        return self._flushed
