"""The size of one cache, and the part of it that the cache of the worker knows of."""

from __future__ import annotations

from pykstreams.state.interfaces.record_cache import RecordCache


class CacheSize:
    """So many bytes as Kafka Streams counts them: ``bytes`` now, ``reported`` when the worker's cache was told last.

    :param shared: the cache of the worker.
    :param entry_bytes: what an entry takes beyond its key, value and context.
    """

    __slots__ = ("bytes", "entry_bytes", "reported", "shared")

    def __init__(self, shared: RecordCache, entry_bytes: int) -> None:
        self.shared = shared
        self.entry_bytes = entry_bytes
        self.bytes = 0
        self.reported = 0

    def report(self) -> None:
        """Reports a new size to the worker's cache; only after a flush, as in ThreadCache: what a flush forwards meets
        caches that still count the entry being evicted (``test_downstream_cache_evicts_...``)."""
        self.shared.size_bytes += self.bytes - self.reported
        self.reported = self.bytes
