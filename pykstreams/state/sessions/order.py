"""How sessions are found, and in which order: one class for stores on disk, one for stores in memory.

On disk rows lie by segment, then by key, then by end and start (``RocksDBSessionStore``, 4.3.1). In memory they lie by
end, then by key, then by start with the latest first (``InMemorySessionStore``, 4.3.1), where an index of the sessions
of each key spares reading those of all others.

The rows of both come from ``top``, the highest layer of bytes, so that they show what a cache holds.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final, TypeAlias

from pykstreams.state.encoding.composed_keys import LAST_TIME, SessionKeySchema, number_of, prefix_of
from pykstreams.state.engines.ordered import merged
from pykstreams.state.engines.segments import SegmentedEngine
from pykstreams.state.interfaces.engine import BytesStore, Engine, Row, after
from pykstreams.state.layers.caching import MEASURED_PUTS, CachingStore
from pykstreams.state.sessions.end_index import EndIndex

Wanted: TypeAlias = Callable[[tuple[bytes, object]], bool]
"""A test of whether a row is wanted."""

_ScanSince: TypeAlias = Callable[[bytes, bytes, bytes, bool], Iterator[Row]]

_TIMES: Final = struct.Struct(">qq")
_SUFFIX: Final = _TIMES.size
_LAST_PREFIX: Final = prefix_of(LAST_TIME)
_FEW_SEGMENTS: Final = 8
_STALE: Final = 1024


class SessionOrder(ABC):
    """Finds the rows of a session store."""

    def __init__(
        self, engine: SegmentedEngine, top: BytesStore, cache: CachingStore | None, schema: SessionKeySchema
    ) -> None:
        self._engine = engine
        self._scan = top.scan
        self._scan_below = top.scan if cache is None else cache.below.scan
        self._cache = cache
        self._schema = schema

    @abstractmethod
    def noted(self, key: bytes, start: int, end: int, removed: bool) -> None:
        """Notes each session that is put or removed."""

    @abstractmethod
    def of_key(self, key: bytes, earliest_end: int, latest_start: int, reverse: bool) -> Iterator[Row]:
        """The sessions of a key that end and start no earlier and no later than this."""

    @abstractmethod
    def of_keys(
        self, lower: bytes | None, upper: bytes | None, earliest_end: int, latest_start: int, reverse: bool
    ) -> Iterator[Row]:
        """The same for all keys between two, both inclusive."""

    @abstractmethod
    def ended(self, earliest_end: int, latest_end: int) -> Iterator[Row]:
        """The sessions that end between two times, both inclusive."""

    def _with_cached(self, first: bytes | None, below: Iterator[Row], wanted: Wanted, reverse: bool) -> Iterator[Row]:
        """The wanted rows of the layers below the cache, merged with those that the cache has from ``first`` on.

        All that the cache has from there on counts as used. What is merged, and not only what is shown, has to be what
        is wanted: a cache over memory has the earliest start first, and the order of the two differs there.
        """
        found = filter(wanted, below)
        if self._cache is None:
            return found
        return merged(filter(wanted, self._cache.above(first, None, reverse)), found, reverse)


class SegmentOrder(SessionOrder):
    """Sessions on disk.

    While a cache is small it is read as Kafka Streams reads it, a segment after the other, so that the same entries
    count as used. A large one that has all sessions of a time is asked for those of the key only.

    :param index: the sessions by their end, where the store keeps such an index.
    """

    def __init__(
        self,
        engine: SegmentedEngine,
        top: BytesStore,
        cache: CachingStore | None,
        schema: SessionKeySchema,
        index: EndIndex | None,
    ) -> None:
        super().__init__(engine, top, cache, schema)
        self._index = index
        self._last_put = -1
        self._scan_since = _scanning(top) if cache is None else cache.scan_since

    def noted(self, key: bytes, start: int, end: int, removed: bool) -> None:
        if end > self._last_put:
            self._last_put = end

    def of_key(self, key: bytes, earliest_end: int, latest_start: int, reverse: bool) -> Iterator[Row]:
        earliest_end = max(earliest_end, 0)
        cache = self._cache
        if cache is None or cache.has_few or not cache.has_all_since(prefix_of(earliest_end)):
            yield from self._scanned(key, earliest_end, latest_start, reverse)
            return
        lower = self._schema.pack(key, 0, earliest_end)
        for composed, packed in cache.above_of_key(key, lower, _LAST_PREFIX, reverse):
            if packed is not None and _TIMES.unpack_from(composed, len(composed) - _SUFFIX)[1] <= latest_start:
                yield composed, packed

    def _scanned(self, key: bytes, earliest_end: int, latest_start: int, reverse: bool) -> Iterator[Row]:
        """The sessions of a key, segment by segment."""
        width, interval = len(key) + 8 + _SUFFIX, self._schema.prefix_ms
        for number in self._numbers(earliest_end, reverse):
            prefix, first = prefix_of(number), number * interval
            last = min(first + interval - 1, LAST_TIME)
            # Backwards, a cache is read from the start of the segment, as in Kafka Streams: all of that counts as used.
            lower = key + _TIMES.pack(first if reverse else max(earliest_end, first), 0)
            upper = after(key + _TIMES.pack(last, max(min(latest_start, last), 0)))
            for row in self._scan_since(prefix_of(max(earliest_end, first)), prefix + lower, prefix + upper, reverse):
                composed = row[0]
                if len(composed) == width:
                    end, start = _TIMES.unpack_from(composed, width - _SUFFIX)
                    if end >= earliest_end and start <= latest_start:
                        yield row

    def of_keys(
        self, lower: bytes | None, upper: bytes | None, earliest_end: int, latest_start: int, reverse: bool
    ) -> Iterator[Row]:
        numbers = self._kept_numbers(earliest_end)
        below = chain.from_iterable(
            self._scan_below(prefix_of(number) + (lower or b""), prefix_of(number + 1), reverse)
            for number in (reversed(numbers) if reverse else numbers)
        )
        return self._with_cached(_lowest(lower), below, _between(lower, upper, earliest_end, latest_start), reverse)

    def ended(self, earliest_end: int, latest_end: int) -> Iterator[Row]:
        # As in Kafka Streams, what is hidden from other reads is found here until its segment is dropped: windows are
        # emitted when they are closed, which may be just when they are old enough to be forgotten.
        if self._index is not None:
            first = self._engine.first_number * self._schema.prefix_ms
            yield from self._index.ended(max(earliest_end, first), latest_end)
            return
        found: list[Row] = []
        for number in self._numbers(earliest_end, False):
            for row in self._scan(prefix_of(number), prefix_of(number + 1), False):
                if earliest_end <= self._schema.time_of(row[0]) <= latest_end:
                    found.append(row)
        found.sort(key=lambda row: (row[0][-_SUFFIX:], row[0]))
        yield from found

    def _numbers(self, earliest_end: int, reverse: bool) -> range | list[int]:
        """The segments that may hold sessions with such an end."""
        numbers: range | list[int] = self._kept_numbers(earliest_end)
        if self._cache is not None:  # which may still know sessions that the engine has forgotten
            width = self._schema.prefix_ms
            first, last = max(earliest_end, 0) // width, max(self._last_put // width, self._engine.last_number)
            if last - first < _FEW_SEGMENTS:
                numbers = range(first, last + 1)
            else:
                cached = map(number_of, self._cache.prefixes(prefix_of(first), None))
                numbers = sorted({*cached, *numbers})
        return numbers[::-1] if reverse else numbers

    def _kept_numbers(self, earliest_end: int) -> range:
        """The segments of the engine that may hold sessions with such an end."""
        engine = self._engine
        return range(max(max(earliest_end, 0) // self._schema.prefix_ms, engine.first_number), engine.last_number + 1)


class TimeOrder(SessionOrder):
    """Sessions in memory.

    A small cache is read as Kafka Streams reads it, all of it from the earliest end on, so that the same entries
    count as used; a large one by the index only.
    """

    def __init__(
        self, engine: SegmentedEngine, top: BytesStore, cache: CachingStore | None, schema: SessionKeySchema
    ) -> None:
        super().__init__(engine, top, cache, schema)
        self._by_key: dict[bytes, list[tuple[int, int]]] = {}
        self._count = 0
        self._sweep_at = _STALE
        self._get = top.get if cache is None else cache.read

    def noted(self, key: bytes, start: int, end: int, removed: bool) -> None:
        session = end, -start
        known = self._by_key.get(key)
        if removed:
            if known is not None and _holds(known, session):
                self._forget(key, known, session)
        elif known is None:
            self._by_key[key] = [session]
            self._added()
        elif not _holds(known, session):
            insort(known, session)
            self._added()

    def of_key(self, key: bytes, earliest_end: int, latest_start: int, reverse: bool) -> Iterator[Row]:
        cache = self._cache
        if cache is not None and len(cache.keys) <= MEASURED_PUTS:
            first = self._schema.pack(key, 0, max(earliest_end, 0))
            below = self._scan_below(first, None, reverse)
            yield from self._with_cached(first, below, _between(key, key, earliest_end, latest_start), reverse)
            return
        known = self._by_key.get(key)
        if known is None:
            return
        wanted = [session for session in known[bisect_left(known, (earliest_end,)) :] if -session[1] <= latest_start]
        for end, minus_start in reversed(wanted) if reverse else wanted:
            composed = self._schema.pack(key, -minus_start, end)
            packed = self._get(composed)
            if packed is not None:
                yield composed, packed

    def of_keys(
        self, lower: bytes | None, upper: bytes | None, earliest_end: int, latest_start: int, reverse: bool
    ) -> Iterator[Row]:
        below = self._scan_below(prefix_of(max(earliest_end, 0)), None, reverse)
        return self._with_cached(_lowest(lower), below, _between(lower, upper, earliest_end, latest_start), reverse)

    def ended(self, earliest_end: int, latest_end: int) -> Iterator[Row]:
        return self._scan(prefix_of(max(earliest_end, 0)), prefix_of(min(latest_end, LAST_TIME - 1) + 1), False)

    def _added(self) -> None:
        self._count += 1
        if self._count > self._sweep_at:
            self._sweep()

    def _sweep(self) -> None:
        """Forgets the sessions that nobody can read any more."""
        shown_from, pack = self._engine.shown_from, self._schema.pack
        cached = frozenset[bytes]() if self._cache is None else self._cache.keys
        for key, known in list(self._by_key.items()):
            for session in known[: bisect_left(known, (shown_from,))]:
                if pack(key, -session[1], session[0]) not in cached:
                    self._forget(key, known, session)
        self._sweep_at = 2 * self._count + _STALE

    def _forget(self, key: bytes, known: list[tuple[int, int]], session: tuple[int, int]) -> None:
        del known[bisect_left(known, session)]
        self._count -= 1
        if not known:
            del self._by_key[key]


class InMemorySessions:
    """The layer over an engine in memory by which sessions of the same key and end come with the latest start first.

    Removing what is not there is logged, but does not move stream time on (``InMemorySessionStore.remove``, 4.3.1).

    :param logged: puts a changelog over a layer.
    """

    def __init__(self, engine: Engine, logged: Callable[[BytesStore], BytesStore]) -> None:
        self._engine = engine
        self.get = engine.get
        self.put = logged(engine).put
        self._put_nothing = logged(_Nothing()).put

    def remove(self, key: bytes) -> None:
        """Removes a session."""
        put = self._put_nothing if self._engine.get(key) is None else self.put
        put(key, None)

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        same: list[Row] = []
        for row in self._engine.scan(lower, upper, reverse):
            if same and same[0][0][:-8] != row[0][:-8]:
                yield from reversed(same)
                same.clear()
            same.append(row)
        yield from reversed(same)


class _Nothing:
    """A store that keeps nothing."""

    def get(self, key: bytes) -> bytes | None:
        return None

    def put(self, key: bytes, packed: bytes | None) -> None:
        """Forgets it."""

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        return iter(())


def _scanning(store: BytesStore) -> _ScanSince:
    """Returns the scan of a layer that has all rows, for one who passes over some of them."""
    scan = store.scan
    return lambda _, lower, upper, reverse: scan(lower, upper, reverse)


def _between(lower: bytes | None, upper: bytes | None, earliest_end: int, latest_start: int) -> Wanted:
    """Returns whether a row is one of the sessions of some keys and of some time."""

    def wanted(row: tuple[bytes, object]) -> bool:
        composed = row[0]
        key = composed[8:-_SUFFIX]
        if (lower is not None and key < lower) or (upper is not None and key > upper):
            return False
        end, start = _TIMES.unpack(composed[-_SUFFIX:])
        return bool(end >= earliest_end and start <= latest_start)

    return wanted


def _lowest(key: bytes | None) -> bytes | None:
    """Where the cache is read from for a range of keys; of the time it takes no notice (``CachingSessionStore``)."""
    return None if key is None else prefix_of(0) + key + bytes(_SUFFIX)


def _holds(known: list[tuple[int, int]], session: tuple[int, int]) -> bool:
    at = bisect_left(known, session)
    return at < len(known) and known[at] == session
