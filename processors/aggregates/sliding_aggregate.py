"""Count, reduce and aggregate of a grouped stream in sliding windows.

A window is kept where its records change: for each record there is the window that ends with it (its left window) and
the one that begins right after it (its right window), once another record falls into that. Windows are those of
``time_difference`` and both bounds are inclusive. A record without key or value is dropped.

How a record at time t is added, d being the time difference::

    windows of the key that start in [t - 2d, t + 1], latest first

        starts at t + 1             the right window of t is there already
        ends after t                holds t: updated; the latest of them holds what comes after t
        ends at t                   the left window of t: updated
        ends before t               the first of these ends the search: its newest record is the one before t

    then made, where they are missing and not empty:
        the right window of the record before t, the left window of t, the right window of t

A record earlier than d is in the window [0, d] in place of a left window of its own, and closes no windows
(``KStreamSlidingWindowAggregate``, 4.3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import END_OF_TIME, Headers
from pykstreams.core.windows import EmitStrategy, SlidingWindows, ends_too_late, in_window
from pykstreams.processors.aggregates.missing_results import missing_result
from pykstreams.processors.aggregates.window_aggregate import Aggregation
from pykstreams.processors.aggregates.window_outlets import WindowOutlets, window_idle_time, window_outlets
from pykstreams.processors.drop_reasons import LATE_FOR_WINDOWS, NULL_TO_AGGREGATE
from pykstreams.processors.emit_on_close import Closed
from pykstreams.processors.process import Process
from pykstreams.processors.stores import window_rows
from pykstreams.state.interfaces.operator_stores import WindowRows

K = TypeVar("K")
V = TypeVar("V")
VA = TypeVar("VA")


@dataclass(frozen=True, slots=True)
class SlidingAggregate(Generic[K, V, VA]):
    """Keeps an aggregate per key and sliding window; ``late_child`` names the child that gets late records.

    After ``idle_ms`` without input windows close by the wall clock.
    """

    store: str
    windows: SlidingWindows
    aggregation: Aggregation[K, V, VA]
    send_old_values: bool = False
    emit_strategy: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE
    late_child: str | None = None
    idle_ms: int | None = None

    def build(self, context: OperatorContext) -> Process:
        store: WindowRows[K, VA] = window_rows(context, self.store)
        outlets = window_outlets(self, store, context, _closed(self.windows), store.rows_between)
        sliding = _Sliding(self.windows, self.aggregation, store, context, outlets)
        grace = self.windows.grace_period_ms
        open_ms = self.windows.time_difference_ms + grace + 1
        idle = window_idle_time(self, context, outlets.look, grace, open_ms)
        if idle is None:
            return sliding.process
        return idle.follow(sliding.process, lambda: sliding.observed, sliding.advance_to)


class _Sliding(Generic[K, V, VA]):
    """One position in one task. ``close`` is the end that a window must have reached to take records."""

    __slots__ = (
        "_aggregator",
        "_close",
        "_difference",
        "_drop",
        "_emit",
        "_emit_closed",
        "_fail",
        "_grace",
        "_initializer",
        "_last",
        "_late",
        "_missing",
        "_put_row",
        "_rows",
        "observed",
    )

    def __init__(
        self,
        windows: SlidingWindows,
        aggregation: Aggregation[K, V, VA],
        store: WindowRows[K, VA],
        context: OperatorContext,
        outlets: WindowOutlets,
    ) -> None:
        self._difference = windows.time_difference_ms
        self._last = END_OF_TIME - self._difference
        self._grace = windows.grace_period_ms
        self._initializer, self._aggregator = aggregation.initializer, aggregation.aggregator
        self._rows, self._put_row = store.rows, store.put_row
        self._emit, self._emit_closed, self._late, _ = outlets
        self._fail, self._drop = context.fail, context.drop
        self._missing = missing_result(aggregation.aggregator, context)
        self.observed = -1
        self._close = -1 - self._grace

    def process(self, key: K, value: V, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            self._drop(NULL_TO_AGGREGATE)
            return
        if timestamp > self.observed:
            self.observed = timestamp
            self._close = timestamp - self._grace
        if timestamp + self._difference < self._close:
            self._drop(LATE_FOR_WINDOWS)
            self._forward_late(key, value, timestamp, headers)
            return
        early = timestamp < self._difference
        if timestamp > self._last:
            self._fail(ends_too_late(timestamp), key, value, timestamp, headers)
            return
        try:
            taken = (self._add_early if early else self._add)(key, value, timestamp, headers)
        except Exception as error:
            self._fail(error, key, value, timestamp, headers)
            return
        if not taken:
            self._forward_late(key, value, timestamp, headers)
        if self._emit_closed is not None and not early:
            self._emit_closed(self._close, key, value, timestamp, headers)

    def advance_to(self, time: int) -> None:
        """Sets a later stream time."""
        if time > self.observed:
            self.observed = time
            self._close = time - self._grace

    def _forward_late(self, key: K, value: V, timestamp: int, headers: Headers) -> None:
        if self._late is not None:
            self._late(key, value, timestamp, headers)

    def _add(self, key: K, value: V, timestamp: int, headers: Headers) -> bool:
        """Adds a record that has a left window; tells whether any window took it."""
        difference = self._difference
        record = (key, value, timestamp, headers)
        before = left = right = None
        has_left = has_right = taken = False
        starts = set()
        for row in self._rows(key, max(0, timestamp - 2 * difference), timestamp + 1, True):
            start, _, newest = row
            starts.add(start)
            end = start + difference
            if start == timestamp + 1:
                has_right = True
            elif end > timestamp:
                if right is None:
                    right = row
                taken |= self._update(record, *row)
            elif end == timestamp:
                has_left = True
                taken |= self._update(record, *row)
                if newest >= timestamp:
                    return taken
                before = newest
            else:
                left, before = row, newest
                break
        if before is not None and before + 1 not in starts and before + 1 + difference >= timestamp:
            taken |= self._update(record, before + 1, self._initializer(), timestamp)
        if not has_left:
            joins = left is not None and before is not None and timestamp - difference <= before
            initial = left[1] if left is not None and joins else self._initializer()
            taken |= self._update(record, timestamp - difference, initial, timestamp)
        if not has_right and right is not None and right[2] > timestamp:
            self._open_right(key, right, timestamp, headers)
        return taken

    def _add_early(self, key: K, value: V, timestamp: int, headers: Headers) -> bool:
        """Adds a record whose left window would begin before the epoch; tells whether any window took it."""
        record = (key, value, timestamp, headers)
        combined = right = before = None
        has_right = taken = False
        starts = set()
        for row in self._rows(key, 0, timestamp + 1, False):
            start, _, newest = row
            starts.add(start)
            if start == 0:
                combined = row
                if newest < timestamp:
                    before = newest
            elif start <= timestamp:
                right = row
                taken |= self._update(record, *row)
            else:
                has_right = True
        if right is None and combined is not None and combined[2] > timestamp:
            right = combined
        if not has_right and right is not None and right[2] > timestamp:
            self._open_right(key, right, timestamp, headers)
        if before is not None and before + 1 not in starts:
            taken |= self._update(record, before + 1, self._initializer(), timestamp)
        if combined is None:
            combined = (0, self._initializer(), timestamp)
        return self._update(record, *combined) or taken

    def _update(self, record: tuple[K, V, int, Headers], start: int, old: VA, stored: int) -> bool:
        """Adds the record to a window that holds ``old``, unless it is closed; tells whether it was added."""
        key, value, timestamp, headers = record
        end = start + self._difference
        if end < self._close:
            self._drop(LATE_FOR_WINDOWS)
            return False
        new = self._aggregator(key, value, old)
        if new is None:
            self._missing()
        time = timestamp if old is None or timestamp > stored else stored
        self._put_row(key, start, new, time)
        if self._emit is not None:
            self._emit(in_window(key, start, end), new, old, time, headers, True)
        return True

    def _open_right(self, key: K, holds: tuple[int, VA, int], timestamp: int, headers: Headers) -> None:
        """Makes the window right after the record, with what a window holds that began by the record's time."""
        _, value, time = holds
        start = timestamp + 1
        self._put_row(key, start, value, time)
        if self._emit is not None:
            self._emit(in_window(key, start, start + self._difference), value, None, time, headers, True)


def _closed(windows: SlidingWindows) -> Closed:
    """Which windows to emit, by their starts; the end of a window is part of it."""
    difference = windows.time_difference_ms

    def closed(last: int | None, close_time: int) -> tuple[int, int] | None:
        upper = close_time - difference - 1
        if upper < 0:
            return None
        return (0 if last is None else max(0, last - difference)), upper

    return closed
