"""The cache of a window store in order of time that can be read by key, too (``TimeOrderedCachingWindowStore``, 4.3.1).

Beside the entry of each row there is one without a value whose key is ``segment (8) | key | start (8) | sequence (4)``.
Both are written, used and dropped on their own, and count on their own, as in Kafka Streams: so a full cache may write
a row twice, once for each of them.

Invariant: a row whose entry is here, but whose index entry is not, has been written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pykstreams.core.processor import CurrentRecord
from pykstreams.state.encoding.composed_keys import PREFIX_BYTES, number_of, prefix_of
from pykstreams.state.encoding.record_context import context_bytes
from pykstreams.state.engines.ordered import OrderedKeys
from pykstreams.state.interfaces.engine import BytesStore, Write
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.state.layers.cache_entries import CacheEntry
from pykstreams.state.layers.cache_flush import Forward, Straight, WriteThrough
from pykstreams.state.layers.caching import NODE_BYTES, CachingStore

_CONTEXT_BYTES: Final = context_bytes(None)  # that of an index entry has neither topic nor headers


class _IndexEntry(CacheEntry):
    """Stands for the row ``row``."""

    __slots__ = ("row",)

    def __init__(self, key: bytes, row: bytes) -> None:
        super().__init__(key)
        self.row = row
        self.packed = b""


class IndexedCache(CachingStore):
    """The cache of one store, above its other layers.

    :param extra_bytes: what each of the two entries takes in Kafka Streams beyond its key, value and context.
    :param interval_ms: how long a segment of the index is.
    """

    def __init__(
        self,
        below: BytesStore,
        cache: RecordCache,
        current: CurrentRecord,
        encode: Callable[[object, int], bytes | None],
        *,
        extra_bytes: int,
        interval_ms: int,
    ) -> None:
        super().__init__(below, cache, current, encode, keeps_reads=False, extra_bytes=extra_bytes)
        self._leave = self._each_row_once(self._leave)
        self._interval = interval_ms
        self._index_bytes = NODE_BYTES + extra_bytes + _CONTEXT_BYTES
        self._index: dict[bytes, _IndexEntry] = {}
        self._index_keys = OrderedKeys(self._index)

    def on_flush(self, forward: Forward, send_old_values: bool, straight: Straight | None = None) -> None:
        super().on_flush(forward, send_old_values, straight)
        self._leave = self._each_row_once(self._leave)

    def keeper(self) -> Callable[[CacheEntry, object, int], None]:
        def keep(entry: CacheEntry, value: object, timestamp: int) -> None:
            self.keep(entry.key, value, timestamp)

        return keep

    def new_keeper(self) -> Callable[[bytes, object, int], None]:
        return self.keep

    def by_key(self, lower: bytes, upper: bytes, reverse: bool) -> Iterator[Write]:
        """The rows that the cache has and whose index entries lie between two, in the order of those; deletes, too."""
        index, next_tick = self._index, self._next_tick
        for key in self._index_keys.between(lower, upper, reverse):
            entry = index.get(key)
            if entry is not None:
                entry.tick = next_tick()
            row = self._row_of(key)
            yield row, self.read(row)

    def prefixes(self, lower: bytes, upper: bytes | None) -> list[bytes]:
        """The segments of the index."""
        return self._index_keys.prefixes(lower, upper)

    def close(self) -> None:
        self._index.clear()
        self._index_keys.clear()
        super().close()

    def _row_of(self, key: bytes) -> bytes:
        return key[-12:-4] + key[PREFIX_BYTES:]

    def _written(self, entry: CacheEntry, content_bytes: int) -> None:
        super()._written(entry, content_bytes)  # it may have to go at once: then there is an index entry alone
        row = entry.key
        key = prefix_of(number_of(row) // self._interval) + row[PREFIX_BYTES:]
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = _IndexEntry(key, row)
            found.size = len(key) + self._index_bytes
            self._size.bytes += found.size
            self._index_keys.add(key)
        found.tick = self._next_tick()
        found.dirty = True
        self._dirty.append(found)
        self._settle_size()

    def _remove(self, entry: CacheEntry) -> None:
        if not isinstance(entry, _IndexEntry):
            super()._remove(entry)
            return
        self._size.bytes -= entry.size
        entry.live = False
        del self._index[entry.key]
        self._index_keys.discard(entry.key)

    def _take_back(self, entries: list[CacheEntry]) -> None:
        super()._take_back(entries)
        for entry in entries:
            if not isinstance(entry, _IndexEntry):
                continue
            row = self._entries.get(entry.row)
            if row is None or not row.dirty:
                continue
            if not entry.live:
                entry.live = True
                self._index[entry.key] = entry
                self._index_keys.add(entry.key)
                self._size.bytes += entry.size
            entry.dirty = True
            self._dirty.append(entry)

    def _every_entry(self) -> Iterable[CacheEntry]:
        return *self._entries.values(), *self._index.values()

    def _each_row_once(self, leave: WriteThrough) -> WriteThrough:
        """Wraps a way out of the cache: a row takes it for the first of its entries."""

        def write_through(entries: list[CacheEntry]) -> None:
            rows: dict[bytes, CacheEntry] = {}
            for entry in entries:
                if not isinstance(entry, _IndexEntry):
                    rows.setdefault(entry.key, entry)
                elif entry.row not in rows:
                    row = self._entries.get(entry.row)
                    if row is not None:
                        row.tick = self._next_tick()
                        rows[entry.row] = row
            leave(list(rows.values()))

        return write_through
