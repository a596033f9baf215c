"""``statestore.cache.max.bytes`` shared out equally among the threads of a process (``resizeThreadCache``, 4.3.1).

Invariant: after ``share_among`` what all caches may hold together is no more than the setting, but for what a thread
still holds that has not taken its next turn.
"""

from __future__ import annotations

import threading
from weakref import WeakSet

from pykstreams.state.interfaces.record_cache import RecordCache


class CacheShares:
    """The record caches of one process, one a thread; any thread may call.

    :param total_bytes: ``statestore.cache.max.bytes``.
    :param has_global: whether the thread of the global stores has a share, too.
    """

    def __init__(self, total_bytes: int, *, has_global: bool) -> None:
        self._total_bytes = total_bytes
        self._has_global = has_global
        self._lock = threading.Lock()
        self._caches: WeakSet[RecordCache] = WeakSet()
        self._share_bytes = total_bytes

    def new(self) -> RecordCache:
        """Makes the cache of a thread; its size follows from now on."""
        with self._lock:
            cache = RecordCache(self._share_bytes)
            self._caches.add(cache)
        return cache

    def share_among(self, workers: int) -> None:
        """Hands each thread its share, for so many workers; what holds more evicts at its thread's next turn."""
        threads = workers + 1 if workers and self._has_global else max(1, workers)
        with self._lock:
            self._share_bytes = self._total_bytes // threads
            for cache in self._caches:
                cache.max_bytes = self._share_bytes
