"""Reads of a window store: which ranges of composed keys hold what is asked for, and in which order.

With segments, each is read by itself, and only those that there are; the engine knows its first and last, the cache
is asked for what it has beyond them. With time as the prefix one range holds everything between two times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from pykstreams.state.caching import CachingStore
from pykstreams.state.composed_keys import (
    LAST_SEQUENCE,
    LAST_TIME,
    WINDOW_KEY_PART,
    WindowKeySchema,
    number_of,
    prefix_of,
)
from pykstreams.state.engine import BytesStore, Row, after
from pykstreams.state.ordered import merged
from pykstreams.state.segments import SegmentedEngine

_ABOVE_EVERY_SUFFIX: Final = b"\xff" * 12


class WindowReads:
    """The reads of one open window store, from its highest layer.

    :param by_key_ms: for a store in order of time, how long a segment is in which ``of_range`` goes by key; ``None``
        where it goes by time, too.
    """

    def __init__(
        self,
        top: BytesStore,
        cache: CachingStore | None,
        engine: SegmentedEngine,
        schema: WindowKeySchema,
        by_key_ms: int | None = None,
    ) -> None:
        self._scan = top.scan
        self._cache = cache
        self._engine = engine
        self._schema = schema
        self._pack = schema.pack
        self._time_of = schema.time_of
        self._prefix_ms = schema.prefix_ms
        self._by_key_ms = by_key_ms

    def of_key(self, key: bytes, time_from: int, time_to: int, reverse: bool) -> Iterator[Row]:
        """The rows of a key, in order of time."""
        time_from = max(time_from, 0)
        if time_to < time_from:
            return iter(())
        if self._prefix_ms == 1:
            return self._of_key_in_time(key, time_from, time_to, reverse)
        numbers = self._numbers(time_from, time_to)
        if len(numbers) == 1:
            return self._of_key_in(numbers[0], key, time_from, time_to, reverse)
        ordered = reversed(numbers) if reverse else numbers
        return (row for number in ordered for row in self._of_key_in(number, key, time_from, time_to, reverse))

    def of_all(self, time_from: int, time_to: int, reverse: bool) -> Iterator[Row]:
        """The rows of every key, in the order of the store."""
        time_from = max(time_from, 0)
        if time_to < time_from:
            return iter(())
        if self._prefix_ms > 1:
            return self._by_segment(None, None, time_from, time_to, reverse)
        return _by_time_and_key(self._scan(prefix_of(time_from), _end(time_to), reverse), reverse)

    def of_range(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int, reverse: bool
    ) -> Iterator[Row]:
        """The rows of the keys between two, both inclusive, in the order of the store."""
        time_from = max(time_from, 0)
        if time_to < time_from:
            return iter(())
        if self._prefix_ms > 1:
            return self._by_segment(key_from, key_to, time_from, time_to, reverse)
        rows = _of_keys(self._scan(prefix_of(time_from), _end(time_to), reverse), key_from, key_to)
        if self._by_key_ms is not None:
            return self._by_key(rows, self._by_key_ms, reverse)
        return _by_time_and_key(rows, reverse)

    def _of_key_in_time(self, key: bytes, time_from: int, time_to: int, reverse: bool) -> Iterator[Row]:
        # The range is no wider than it must be: what a cache has in it counts as used, as in Kafka Streams.
        lower, upper = self._pack(key, time_from), after(self._pack(key, time_to, LAST_SEQUENCE))
        if not self._engine.finds_keys:
            return (row for row in self._scan(lower, upper, reverse) if row[0][WINDOW_KEY_PART] == key)
        below = self._engine.scan_key(key, time_from, time_to, reverse)
        above = None if self._cache is None else self._cache.above_of_key(key, lower, upper, reverse)
        return merged(above, below, reverse) if above else below

    def _of_key_in(self, number: int, key: bytes, time_from: int, time_to: int, reverse: bool) -> Iterator[Row]:
        beginning = prefix_of(number) + key
        lower = self._pack(key, time_from)[-12:]
        upper = self._pack(key, time_to, LAST_SEQUENCE)[-12:]
        width = len(beginning) + 12
        rows = self._scan(beginning + lower, after(beginning + upper), reverse)
        return (row for row in rows if len(row[0]) == width)

    def _by_segment(
        self, key_from: bytes | None, key_to: bytes | None, time_from: int, time_to: int, reverse: bool
    ) -> Iterator[Row]:
        numbers: Iterable[int] = self._numbers(time_from, time_to)
        if reverse:
            numbers = reversed(list(numbers))
        time_of = self._time_of
        for number in numbers:
            prefix = prefix_of(number)
            lower = prefix if key_from is None else prefix + key_from
            upper = prefix_of(number + 1) if key_to is None else prefix + key_to + _ABOVE_EVERY_SUFFIX
            for row in _of_keys(self._scan(lower, upper, reverse), key_from, key_to):
                if time_from <= time_of(row[0]) <= time_to:
                    yield row

    def _by_key(self, rows: Iterator[Row], interval_ms: int, reverse: bool) -> Iterator[Row]:
        """Sorts rows, which come by time, by key in each segment."""
        time_of = self._time_of
        segment: list[Row] = []
        number = -1
        for row in rows:
            its = time_of(row[0]) // interval_ms
            if its != number:
                yield from sorted(segment, key=_without_prefix, reverse=reverse)
                segment, number = [], its
            segment.append(row)
        yield from sorted(segment, key=_without_prefix, reverse=reverse)

    def _numbers(self, time_from: int, time_to: int) -> list[int]:
        """The segments between two times, in order, in which there may be rows."""
        engine, cache = self._engine, self._cache
        first, last = time_from // self._prefix_ms, time_to // self._prefix_ms
        here = range(max(first, engine.first_number), min(last, engine.last_number) + 1)
        if cache is None:
            return list(here)
        if not here:
            return [number_of(each) for each in cache.prefixes(prefix_of(first), prefix_of(last + 1))]
        below = cache.prefixes(prefix_of(first), prefix_of(here.start)) if first < here.start else []
        above = cache.prefixes(prefix_of(here.stop), prefix_of(last + 1)) if here.stop <= last else []
        return [*map(number_of, below), *here, *map(number_of, above)]


def _of_keys(rows: Iterator[Row], key_from: bytes | None, key_to: bytes | None) -> Iterator[Row]:
    """The rows whose keys lie between two, both inclusive."""
    if key_from is None and key_to is None:
        return rows
    least = b"" if key_from is None else key_from
    if key_to is None:
        return (row for row in rows if row[0][8:-12] >= least)
    return (row for row in rows if least <= row[0][8:-12] <= key_to)


def _by_time_and_key(rows: Iterator[Row], reverse: bool) -> Iterator[Row]:
    """Puts rows of one time in order of their keys: composed keys are not where one key begins another."""
    for _, group in groupby(rows, _prefix):
        together = list(group)
        if len(together) > 1:
            together.sort(key=_key_and_sequence, reverse=reverse)
        yield from together


def _prefix(row: Row) -> bytes:
    return row[0][:8]


def _key_and_sequence(row: Row) -> bytes:
    return row[0][8:-12] + row[0][-4:]


def _end(time_to: int) -> bytes | None:
    """The end of the range that holds everything up to, and with, a time."""
    return None if time_to >= LAST_TIME else prefix_of(time_to + 1)


def _without_prefix(row: Row) -> bytes:
    return row[0][8:]
