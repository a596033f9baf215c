"""The budget that the caches of all stores of a worker share: the bytes they hold, and the bytes they may hold.

Any thread may set ``max_bytes`` (``ThreadCache.resize``, 4.3.1). Caches that hold more from then on evict at their next
put; the worker has them do it at its next turn, in case there is none.
"""

from __future__ import annotations


class RecordCache:
    """How many bytes the caches of a worker hold together, and how many they may."""

    __slots__ = ("__weakref__", "max_bytes", "size_bytes")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.size_bytes = 0

    @property
    def is_too_full(self) -> bool:
        """Whether the caches hold more than they may; only after ``max_bytes`` was lowered."""
        return self.size_bytes > self.max_bytes
