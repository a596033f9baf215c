"""Reads of a window store: which ranges of composed keys hold what is asked for, and in which order.

With segments, each is read by itself, and only those that there are; the engine knows its first and last, the cache
is asked for what it has beyond them. With time as the prefix one range holds everything between two times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, groupby
from typing import Final, TypeAlias, TypeVar

from pykstreams.state.encoding.composed_keys import (
    LAST_SEQUENCE,
    LAST_TIME,
    WINDOW_KEY_PART,
    WindowKeySchema,
    number_of,
    prefix_of,
)
from pykstreams.state.engines.ordered import merged
from pykstreams.state.engines.segments import SegmentedEngine
from pykstreams.state.interfaces.engine import BytesStore, Row, Write, after
from pykstreams.state.layers.caching import CachingStore
from pykstreams.state.windows.indexed_cache import IndexedCache

_FEW_SEGMENTS: Final = 8

_Packed = TypeVar("_Packed", bound=bytes | None)
_Scan: TypeAlias = Callable[[bytes, bytes, bool], Iterator[tuple[bytes, _Packed]]]


class WindowReads:
    """The reads of one open window store, from its highest layer.

    What a cache has is read beside what lies below it, entry by entry, and from the same places as in Kafka Streams
    (``CachingWindowStore``, ``TimeOrderedCachingWindowStore``, 4.3.1): whatever is read counts as used, wanted or not.

    :param interval_ms: how long a segment is.
    :param by_key: for a store in order of time, whether ``of_range`` goes by key in each segment, instead of by time.
    """

    def __init__(
        self,
        top: BytesStore,
        cache: CachingStore | None,
        engine: SegmentedEngine,
        schema: WindowKeySchema,
        interval_ms: int,
        *,
        by_key: bool = False,
    ) -> None:
        self._scan = top.scan
        self._scan_below = top.scan if cache is None else cache.below.scan
        self._cache = cache
        self._engine = engine
        self._schema = schema
        self._pack = schema.pack
        self._time_of = schema.time_of
        self._prefix_ms = schema.prefix_ms
        self._interval_ms = interval_ms
        self._goes_by_key = by_key

    def of_key(
        self, key: bytes, time_from: int, time_to: int, reverse: bool, *, like_range: bool = False
    ) -> Iterator[Row]:
        """The rows of a key, in order of time.

        With ``like_range`` a cache over memory is read as for a range of keys that has one key only.
        """
        time_from = max(time_from, 0)
        if time_to < time_from:
            return iter(())
        if self._prefix_ms == 1:
            return self._of_key_in_time(key, time_from, time_to, reverse, like_range)
        numbers = self._engine_numbers(time_from, time_to)
        below = self._of_key_in(numbers, self._scan_below, key, time_from, time_to, reverse)
        if self._cache is None:
            return below
        above = self._cached_by_segment(self._cache, self._cache.above, key, time_from, time_to, reverse)
        return merged(above, below, reverse)

    def of_all(self, time_from: int, time_to: int, reverse: bool) -> Iterator[Row]:
        """The rows of every key, in the order of the store."""
        time_from = max(time_from, 0)
        if time_to < time_from:
            return iter(())
        if self._prefix_ms > 1:
            numbers = self._engine_numbers(time_from, time_to)
            rows = self._by_segment(self._scan_below, numbers, None, None, time_from, time_to, reverse)
        else:
            rows = self._scan_below(prefix_of(time_from), _end(time_to), reverse)
        if self._cache is not None:
            rows = merged(self._cached_between(self._cache, time_from, time_to, reverse), rows, reverse)
        return rows if self._prefix_ms > 1 else _by_time_and_key(rows, reverse)

    def of_range(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int, reverse: bool
    ) -> Iterator[Row]:
        """The rows of the keys between two, both inclusive, in the order of the store."""
        time_from = max(time_from, 0)
        if time_to < time_from:
            return iter(())
        if self._prefix_ms > 1:
            numbers = self._engine_numbers(time_from, time_to)
            if self._cache is not None:
                numbers = sorted({*numbers, *self._cached_numbers(self._cache, time_from, time_to)})
            return self._by_segment(self._scan, numbers, key_from, key_to, time_from, time_to, reverse)
        rows = _of_keys(self._scan(prefix_of(time_from), _end(time_to), reverse), key_from, key_to)
        return self._by_key(rows, reverse) if self._goes_by_key else _by_time_and_key(rows, reverse)

    def _of_key_in_time(
        self, key: bytes, time_from: int, time_to: int, reverse: bool, like_range: bool
    ) -> Iterator[Row]:
        lower, upper = self._pack(key, time_from), after(self._pack(key, time_to, LAST_SEQUENCE))
        if not self._engine.finds_keys:
            return (row for row in self._scan(lower, upper, reverse) if row[0][WINDOW_KEY_PART] == key)
        below = self._engine.scan_key(key, time_from, time_to, reverse)
        if self._cache is None:
            return below
        cache, time_of = self._cache, self._time_of
        if isinstance(cache, IndexedCache):
            above = self._cached_by_segment(cache, cache.by_key, key, time_from, time_to, reverse)
        else:
            read_from = self._pack(key, 0) if like_range else lower
            cached = cache.above_of_key(key, read_from, upper, reverse)
            above = (row for row in cached if time_of(row[0]) >= time_from)
        return merged(above, below, reverse)

    def _cached_by_segment(
        self,
        cache: CachingStore,
        scan: _Scan[bytes | None],
        key: bytes,
        time_from: int,
        time_to: int,
        reverse: bool,
    ) -> Iterator[Write]:
        """The rows that a cache has of a key; backwards from the start of a segment, and not from the time wanted."""
        numbers, time_of = self._cached_numbers(cache, time_from, time_to), self._time_of
        if not reverse:
            return self._of_key_in(numbers, scan, key, time_from, time_to, False)
        start = time_from // self._interval_ms * self._interval_ms
        return (
            row for row in self._of_key_in(numbers, scan, key, start, time_to, True) if time_of(row[0]) >= time_from
        )

    def _of_key_in(
        self, numbers: Sequence[int], scan: _Scan[_Packed], key: bytes, time_from: int, time_to: int, reverse: bool
    ) -> Iterator[tuple[bytes, _Packed]]:
        """The rows of a key that a layer has in some segments, of which it reads one after the other."""
        lower, upper = key + self._pack(b"", time_from)[8:], after(key + self._pack(b"", time_to, LAST_SEQUENCE)[8:])
        width = 8 + len(key) + 12
        for number in reversed(numbers) if reverse else numbers:
            prefix = prefix_of(number)
            for row in scan(prefix + lower, prefix + upper, reverse):
                if len(row[0]) == width:
                    yield row

    def _cached_between(self, cache: CachingStore, time_from: int, time_to: int, reverse: bool) -> Iterator[Write]:
        """The rows that the cache has of all keys between two times, both inclusive.

        While there are few entries it is read as a whole, but for a store in order of time on disk only the segments
        in question, up to the first entry too many.
        """
        time_of, width, interval = self._time_of, self._prefix_ms, self._interval_ms
        by_time = width == 1 and self._engine.persistent
        first = last = None
        if by_time:
            first = prefix_of(time_from // interval * interval if reverse else time_from)
            last = _end(min(LAST_TIME, (time_to // interval + 1) * interval - 1))
        elif not cache.has_few:
            first, last = prefix_of(time_from // width), _end(time_to // width)
        for row in cache.above(first, last, reverse):
            time = time_of(row[0])
            if time_from <= time <= time_to:
                yield row
            elif by_time and (time < time_from) == reverse:
                return

    def _by_segment(
        self,
        scan: _Scan[bytes],
        numbers: Sequence[int],
        key_from: bytes | None,
        key_to: bytes | None,
        time_from: int,
        time_to: int,
        reverse: bool,
    ) -> Iterator[Row]:
        time_of = self._time_of
        beyond = None if key_to is None else after(self._last_up_to(key_to, min(time_to, LAST_TIME)))
        for number in reversed(numbers) if reverse else numbers:
            prefix = prefix_of(number)
            lower = prefix if key_from is None else prefix + key_from
            upper = prefix_of(number + 1) if beyond is None else prefix + beyond
            for row in _of_keys(scan(lower, upper, reverse), key_from, key_to):
                if time_from <= time_of(row[0]) <= time_to:
                    yield row

    def _last_up_to(self, key: bytes, time: int) -> bytes:
        """The last composed key, without its prefix, that a key up to this one may have at a time up to this one.

        It is not always of this key: a key with which it begins has its time where this one may have lower bytes.
        """
        suffix = self._pack(b"", time, LAST_SEQUENCE)[8:]
        return max(key[:length] + suffix for length in range(len(key) + 1))

    def _by_key(self, rows: Iterator[Row], reverse: bool) -> Iterator[Row]:
        """Sorts rows, which come by time, by key in each segment."""
        time_of, interval_ms = self._time_of, self._interval_ms
        segment: list[Row] = []
        number = -1
        for row in rows:
            its = time_of(row[0]) // interval_ms
            if its != number:
                yield from sorted(segment, key=_without_prefix, reverse=reverse)
                segment, number = [], its
            segment.append(row)
        yield from sorted(segment, key=_without_prefix, reverse=reverse)

    def _engine_numbers(self, time_from: int, time_to: int) -> Sequence[int]:
        """The segments between two times, in order, in which the engine may have rows."""
        engine, width = self._engine, self._prefix_ms
        return range(max(time_from // width, engine.first_number), min(time_to // width, engine.last_number) + 1)

    def _cached_numbers(self, cache: CachingStore, time_from: int, time_to: int) -> Sequence[int]:
        """The same for a cache, whose rows may be older or newer than those of the engine."""
        first, last = time_from // self._interval_ms, time_to // self._interval_ms
        if last - first < _FEW_SEGMENTS:
            return range(first, last + 1)
        return [number_of(each) for each in cache.prefixes(prefix_of(first), prefix_of(last + 1))]


def _of_keys(rows: Iterator[Row], key_from: bytes | None, key_to: bytes | None) -> Iterator[Row]:
    """The rows whose keys lie between two, both inclusive."""
    if key_from is None and key_to is None:
        return rows
    least = b"" if key_from is None else key_from
    if key_to is None:
        return (row for row in rows if row[0][8:-12] >= least)
    return (row for row in rows if least <= row[0][8:-12] <= key_to)


def _by_time_and_key(rows: Iterator[Row], reverse: bool) -> Iterator[Row]:
    """Puts rows of one time in order of their keys: composed keys are not where one key begins another.

    Forwards that takes a key with a zero byte, since times begin with one; what comes before the first of those is
    forwarded at once, so that nobody reads further than is wanted.
    """
    for _, group in groupby(rows, _prefix):
        if not reverse:
            for row in group:
                if 0 in row[0][WINDOW_KEY_PART]:
                    break
                yield row
            else:
                continue
            group = chain((row,), group)
        together = list(group)
        if len(together) > 1:
            together.sort(key=_key_and_sequence, reverse=reverse)
        yield from together


def _prefix(row: Row) -> bytes:
    return row[0][:8]


def _key_and_sequence(row: Row) -> bytes:
    return row[0][8:-12] + row[0][-4:]


def _end(number: int) -> bytes | None:
    """The end of the range that holds everything up to, and with, a segment, or a time."""
    return None if number >= LAST_TIME else prefix_of(number + 1)


def _without_prefix(row: Row) -> bytes:
    return row[0][8:]
