"""The budget that the caches of all stores of a worker share: the bytes they hold, and the bytes they may hold."""

from __future__ import annotations


class RecordCache:
    """How many bytes the caches of a worker hold together, and how many they may."""

    __slots__ = ("max_bytes", "size_bytes")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.size_bytes = 0
