"""The record cache: a write-back LRU shared by the stores of a worker.

Sizes, evictions and the order of flushes are those of ``ThreadCache``, ``NamedCache`` and ``CachingKeyValueStore``,
4.3.1, so that a cache of the same size forwards at the same record:

- a flush writes the entries in the order of their last put, so a key that is put again moves to the end;
- an eviction takes the entry that was used longest ago, of the cache that is put to; if it is dirty it is written
  first, and every other dirty entry of that cache after it;
- an entry without a value that had none below either is not forwarded.

An entry may hold an object instead of its bytes until it is flushed. Its size is then not known: the first
``MEASURED_PUTS`` values of a cache are serialized when they are put and counted exactly as in Kafka Streams, later
ones are taken to be as large as the average of every ``SAMPLE_EVERY``-th, which is measured. So short runs evict
exactly as Kafka Streams does, and long ones about.

Invariant: an object in an entry is what the next reader would get by deserializing; who may change objects gets them
by ``take_row`` of ``rows``, or gets copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, KeysView
from itertools import count
from typing import Final

from pykstreams.core.processor import CurrentRecord
from pykstreams.state.encoding.record_context import context_bytes
from pykstreams.state.engines.ordered import merged
from pykstreams.state.interfaces.engine import BytesStore, Row, Write
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.state.layers.cache_entries import UNSET, CacheEntry, NoteContext, note_message, note_place
from pykstreams.state.layers.cache_flush import Forward, Straight, forwarding
from pykstreams.state.layers.cache_size import CacheSize
from pykstreams.state.layers.cached_keys import CachedKeys
from pykstreams.state.layers.rows_below import RowsBelow
from pykstreams.state.layers.use_order import UseOrder
from pykstreams.state.layers.value_sizes import ValueSizes
from pykstreams.state.metrics.store_metrics import StoreMetrics

MEASURED_PUTS: Final = 1000
SAMPLE_EVERY: Final = 61
"""A prime: reads count, too, so that puts may come at every second or fourth tick only."""
FEW_ENTRIES: Final = 300

NODE_BYTES: Final = 24 + 1  # three references of the list node, and the dirty flag (NamedCache.LRUNode, LRUCacheEntry)
_CLEAN_CONTEXT_BYTES: Final = context_bytes(None)


class CachingStore:
    """The cache of one store, above its other layers.

    :param keeps_reads: whether it takes in what it reads from below; caches of windows and sessions do not
        (``CachingWindowStore.fetch``, ``CachingSessionStore.fetchSession``, 4.3.1).
    :param key_part: which bytes of a key are the user's key, where it is asked for all rows of one of those at a time.
    :param extra_bytes: what an entry takes in Kafka Streams beyond its key, value and context.
    :param time_at: where keys have the time of their window, big-endian, so that rows which cannot be below are not
        looked for there (``RowsBelow``).
    """

    def __init__(
        self,
        below: BytesStore,
        cache: RecordCache,
        current: CurrentRecord,
        encode: Callable[[object, int], bytes | None],
        *,
        keeps_reads: bool = True,
        extra_bytes: int = 0,
        key_part: slice | None = None,
        time_at: slice | None = None,
    ) -> None:
        self.below = below
        self._rows_below = RowsBelow(below, time_at)
        self._current = current
        self._encode = encode
        self._note: NoteContext = note_message if current.keeps_messages else note_place
        self._keeps_reads = keeps_reads
        self._leave = forwarding(below, current, encode, None)
        self._send_old_values = False
        self._entries: dict[bytes, CacheEntry] = {}
        self._keys = CachedKeys(self._entries, key_part)
        self._dirty: list[CacheEntry] = []  # one for each put; the last one of an entry counts
        self._use_order = UseOrder()
        self._next_tick = count(1).__next__
        self._sizes = ValueSizes(MEASURED_PUTS, SAMPLE_EVERY)
        self._replaced = 0
        self._size = CacheSize(cache, NODE_BYTES + extra_bytes)
        self._metrics: StoreMetrics | None = None

    def on_flush(self, forward: Forward, send_old_values: bool, straight: Straight | None = None) -> None:
        """Sets who gets what leaves the cache; who wants old values makes the cache keep bytes only.

        :param straight: the way that is taken in place of ``forward`` where it can be.
        """
        self._leave = forwarding(self.below, self._current, self._encode, forward, send_old_values=send_old_values)
        if straight is not None:
            self._leave = straight(self.below, self._current, self._encode, self._leave)
        self._send_old_values = send_old_values
        if send_old_values:
            self._sizes.measure_all()

    def serialize_at_once(self) -> None:
        """Serializes each value when it is put: one that cannot be is an error of the record that it came with."""
        self._sizes.measure_all()

    def knows_below(self, last_time: bytes) -> None:
        """Notes the latest time of what is below, as keys have it; for a cache that has nothing yet."""
        self._rows_below.know(last_time)

    @property
    def get_below(self) -> Callable[[bytes], bytes | None]:
        """Reads a row that the cache does not have."""
        return self._rows_below.get

    @property
    def size_bytes(self) -> int:
        """The size of this cache, as Kafka Streams counts it."""
        return self._size.bytes

    def entry(self, key: bytes) -> CacheEntry | None:
        """The entry of a key, which is read from below where the cache has none and keeps what it reads."""
        found = self._entries.get(key)
        if found is not None:
            found.tick = self._next_tick()
            return found
        if not self._keeps_reads:
            return None
        packed = self.below.get(key)
        if packed is None:
            return None
        found = CacheEntry(key)
        found.packed = packed
        found.size = len(key) + self._size.entry_bytes + _CLEAN_CONTEXT_BYTES + len(packed)
        self._insert(found)
        self._settle_size()
        return found

    def get(self, key: bytes) -> bytes | None:
        found = self.entry(key)
        if found is not None:
            return self.packed(found)
        return None if self._keeps_reads else self._rows_below.get(key)

    def replaces(self, key: bytes) -> None:
        """Notes that a row is about to be replaced: among the first it is read, and may evict another one.

        Table sources of Kafka Streams read each row before they write it (``KTableSource``, 4.3.1).
        """
        if self._replaced < MEASURED_PUTS:
            self._replaced += 1
            self.entry(key)

    def read(self, key: bytes) -> bytes | None:
        """Reads as ``get`` does, without keeping what had to be read from below."""
        found = self._entries.get(key)
        if found is None:
            return self._rows_below.get(key)
        found.tick = self._next_tick()
        return self.packed(found)

    @property
    def keys(self) -> KeysView[bytes]:
        """The keys of all entries, those of deletes too."""
        return self._entries.keys()

    @property
    def has_few(self) -> bool:
        """Whether there are so few entries that they may all be read where Kafka Streams does."""
        return len(self._entries) <= FEW_ENTRIES

    def packed(self, entry: CacheEntry) -> bytes | None:
        """The bytes of an entry, which are made when they are first asked for."""
        packed: bytes | None = entry.packed
        if packed is UNSET:
            packed = entry.packed = self._encode(entry.value, entry.timestamp)
        return packed

    def put(self, key: bytes, packed: bytes | None) -> None:
        entry = self._entry_to_write(key)
        entry.value, entry.packed = UNSET, packed
        self._written(entry, context_bytes(self._current.raw) + (0 if packed is None else len(packed)))

    def finder(self) -> Callable[[bytes], CacheEntry | None]:
        """Makes the function that gives what ``entry`` gives, in a shorter way for keys that the cache has."""
        in_cache, next_tick, entry = self._entries.get, self._next_tick, self.entry

        def find(key: bytes) -> CacheEntry | None:
            found = in_cache(key)
            if found is None:
                return entry(key)
            found.tick = next_tick()
            return found

        def find_here(key: bytes) -> CacheEntry | None:
            found = in_cache(key)
            if found is not None:
                found.tick = next_tick()
            return found

        found = find if self._keeps_reads else find_here
        return found if self._metrics is None else self._metrics.counted(found)

    def count_hits(self, metrics: StoreMetrics) -> None:
        """Counts which reads the cache can answer, those by what was made before excepted."""
        metrics.count_hits(self._entries)
        self._metrics = metrics
        for method in ("get", "read"):
            setattr(self, method, metrics.counted(getattr(self, method)))

    @property
    def cached(self) -> Callable[[bytes], CacheEntry | None]:
        """Returns the entry of a key that the cache has, without using it."""
        return self._entries.get

    def keeper(self) -> Callable[[CacheEntry, object, int], None]:
        """Makes the function that puts an object (never ``None``) into an entry that the cache has; see ``keep``."""
        dirty, current, next_tick, note = self._dirty, self._current, self._next_tick, self._note
        sizes, cache = self._sizes, self._size.shared

        def keep(entry: CacheEntry, value: object, timestamp: int) -> None:
            tick = next_tick()
            is_sample = not tick % SAMPLE_EVERY
            if is_sample or sizes.measures or entry.packed is None:
                self._keep(entry.key, value, timestamp, is_sample)
                return
            entry.value = value
            entry.packed = UNSET
            entry.timestamp = timestamp
            note(entry, current.raw)
            entry.dirty = True
            entry.tick = tick
            dirty.append(entry)
            if cache.size_bytes > cache.max_bytes:
                self._evict()

        return keep

    def new_keeper(self) -> Callable[[bytes, object, int], None]:
        """Makes the function that puts an object (never ``None``) for a key that the cache does not have.

        It does what ``keep`` does, in a shorter way.
        """
        dirty, current, next_tick, note = self._dirty, self._current, self._next_tick, self._note
        entries, keys, by_key = self._entries, self._keys.in_order, self._keys.by_key
        sizes, own = self._sizes, self._size
        cache, entry_bytes = own.shared, own.entry_bytes
        new_entry = CacheEntry.__new__  # half the time of the constructor

        def keep_new(key: bytes, value: object, timestamp: int) -> None:
            tick = next_tick()
            is_sample = not tick % SAMPLE_EVERY
            if is_sample or sizes.measures:
                self._keep(key, value, timestamp, is_sample)
                return
            size = len(key) + entry_bytes + int(sizes.average)
            entries[key] = entry = new_entry(CacheEntry)
            entry.key = key
            entry.value = value
            entry.packed = UNSET
            entry.timestamp = timestamp
            entry.message = None
            note(entry, current.raw)
            entry.dirty = entry.live = True
            entry.size = size
            entry.tick = tick
            if keys.awake:
                keys.add(key)
            if by_key is not None:
                by_key.add(key)
            dirty.append(entry)
            own.bytes = total = own.bytes + size
            cache.size_bytes += total - own.reported
            own.reported = total
            if cache.size_bytes > cache.max_bytes:
                self._evict()

        return keep_new

    def keep(self, key: bytes, value: object, timestamp: int) -> None:
        """Puts an object (never ``None``), to be serialized at the flush; at once where bytes or sizes are wanted."""
        self._keep(key, value, timestamp, not self._next_tick() % SAMPLE_EVERY)

    def _keep(self, key: bytes, value: object, timestamp: int, is_sample: bool) -> None:
        packed: bytes | None = UNSET
        sizes = self._sizes
        content_bytes = int(sizes.average)
        if is_sample or sizes.measures:
            packed = self._encode(value, timestamp)
            content_bytes = context_bytes(self._current.raw) + (0 if packed is None else len(packed))
            if self._send_old_values or packed is None:
                value = UNSET
            sizes.note(content_bytes)
        entry = self._entry_to_write(key)
        entry.value, entry.packed, entry.timestamp = value, packed, timestamp
        self._written(entry, content_bytes)

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        return self._over(self.below.scan(lower, upper, reverse), lower, upper, reverse)

    def has_all_since(self, time: bytes) -> bool:
        """Whether no row below is from a time, as keys have it, or later, that is not here as well."""
        return self._rows_below.none_since(time)

    def scan_since(self, time: bytes, lower: bytes, upper: bytes, reverse: bool) -> Iterator[Row]:
        """Scans for one who passes over rows from before a time, as keys have it: what is below may be left out."""
        return self._over(self._rows_below.scan_since(time, lower, upper, reverse), lower, upper, reverse)

    def above(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Write]:
        """The cached part of a scan, deletes too, as it is when it is read."""
        return self._read(self._keys.in_order.between(lower, upper, reverse))

    def above_of_key(self, key: bytes, lower: bytes, upper: bytes, reverse: bool) -> Iterator[Write]:
        """The cached rows of a user's key in a range, deletes too.

        While there are few entries, all in the range count as used, as in Kafka Streams; later those of the key only.
        """
        index = self._keys.index()
        if self.has_few:
            part = index.part
            return (row for row in self.above(lower, upper, reverse) if row[0][part] == key)
        return self._read(index.of(key, lower, upper, reverse))

    def _over(self, below: Iterator[Row], lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        """Puts the cached part of a scan over the part below."""
        entries, packed = self._entries, self.packed
        above = [(key, packed(entries[key])) for key in self._keys.in_order.between(lower, upper, reverse)]
        return merged(self._used(above), below, reverse) if above else below

    def _used(self, rows: list[Write]) -> Iterator[Write]:
        """Hands rows out; an entry counts as used when its row is, and not before (``MemoryLRUCacheBytesIterator``)."""
        entries, next_tick = self._entries, self._next_tick
        for row in rows:
            entry = entries.get(row[0])
            if entry is not None:
                entry.tick = next_tick()
            yield row

    def _read(self, keys: list[bytes]) -> Iterator[Write]:
        """The same for rows as they are then. Kafka Streams loses those that have left the cache since it has begun."""
        for key in keys:
            yield key, self.read(key)

    def prefixes(self, lower: bytes, upper: bytes | None) -> list[bytes]:
        """The beginnings of the keys from ``lower`` up to, and without, ``upper``: so many bytes as ``lower`` has."""
        return self._keys.in_order.prefixes(lower, upper)

    def flush(self) -> None:
        """Writes and forwards every dirty entry; they stay in the cache."""
        self._flush(None)
        self._size.report()

    def evict_eldest(self) -> bool:
        """Removes the entry that was used longest ago, with every dirty entry if it is dirty; false without one."""
        entry = self._use_order.take_eldest(self._every_entry, self._next_tick)
        if entry is None:
            return False
        self._remove(entry)
        self._rows_below.note_eviction(entry.key)
        if entry.dirty:
            self._flush(entry)
        self._size.report()
        return True

    def close(self) -> None:
        """Forgets everything, dirty entries too."""
        self._entries.clear()
        self._keys.clear()
        self._dirty.clear()
        self._use_order.clear()
        self._size.bytes = 0
        self._size.report()

    def _entry_to_write(self, key: bytes) -> CacheEntry:
        entry = self._entries.get(key)
        return CacheEntry(key) if entry is None else entry

    def _written(self, entry: CacheEntry, content_bytes: int) -> None:
        self._size.bytes -= entry.size
        entry.size = len(entry.key) + self._size.entry_bytes + content_bytes
        self._note(entry, self._current.raw)
        entry.dirty = True
        self._dirty.append(entry)
        self._insert(entry)
        if len(self._dirty) > 8 * len(self._entries) + MEASURED_PUTS:
            self._forget_repeated_puts()
        self._settle_size()

    def _insert(self, entry: CacheEntry) -> None:
        entry.tick = self._next_tick()
        self._size.bytes += entry.size
        if entry.key not in self._entries:
            self._entries[entry.key] = entry
            self._keys.add(entry.key)

    def _remove(self, entry: CacheEntry) -> None:
        self._size.bytes -= entry.size
        entry.live = False
        del self._entries[entry.key]
        self._keys.discard(entry.key)

    def _settle_size(self) -> None:
        size = self._size
        size.report()
        if size.shared.size_bytes > size.shared.max_bytes:
            self._evict()

    def _evict(self) -> None:
        cache = self._size.shared
        while cache.size_bytes > cache.max_bytes and self.evict_eldest():
            continue

    def _every_entry(self) -> Iterable[CacheEntry]:
        return self._entries.values()

    def _forget_repeated_puts(self) -> None:
        self._dirty[:] = last = self._dirty_in_order()
        for entry in last:
            entry.dirty = True

    def _dirty_in_order(self) -> list[CacheEntry]:
        """The dirty entries by their last put; marks them clean."""
        found: list[CacheEntry] = []
        for entry in reversed(self._dirty):
            if entry.dirty:
                entry.dirty = False
                found.append(entry)
        found.reverse()
        return found

    def _flush(self, evicted: CacheEntry | None) -> None:
        if evicted is not None:
            evicted.dirty = False
        entries = self._dirty_in_order()
        self._dirty.clear()  # before anything is forwarded: what is forwarded may come back here
        leaving = entries if evicted is None else [evicted, *entries]
        try:
            self._leave(leaving)
        except Exception:
            self._take_back(leaving)
            raise
        for entry in entries:
            if entry.packed is None and entry.live and not entry.dirty:
                self._remove(entry)

    def _take_back(self, entries: list[CacheEntry]) -> None:
        """Makes those dirty again that a flush which failed has not written: they still have their contexts."""
        left = [entry for entry in entries if entry.headers is not None]
        for entry in left:
            entry.dirty = True
            if not entry.live and entry.key not in self._entries:
                entry.live = True
                self._insert(entry)
        self._dirty[:0] = left
