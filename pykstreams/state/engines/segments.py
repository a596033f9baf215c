"""Retention: an engine over an engine that forgets what has become too old.

Observed stream time is the highest time that was put. What is older than it by the retention is hidden from every
read; in segments it is refused only when its whole segment is, and segments go as a whole (``AbstractSegments``,
``AbstractRocksDBSegmentedBytesStore``), while ``Expiry.AT_ONCE`` refuses what is hidden (``InMemoryWindowStore``,
``InMemorySessionStore``, 4.3.1). What is dropped goes as one range with the next commit.

Observed stream time is not kept: after reopening it starts anew, from what is restored and put, as in Kafka Streams.

Invariants: no read shows a row that was dropped, committed or not; no row that can be read is older than ``_oldest``,
and nothing older than ``_taken_from``, which that one never falls below, is taken.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from operator import itemgetter
from typing import Final, TypeAlias

from pykstreams.core.metrics import Counter
from pykstreams.state.encoding.composed_keys import LAST_TIME, KeySchema, number_of, prefix_of
from pykstreams.state.interfaces.engine import Engine, Row, Write
from pykstreams.state.interfaces.store import StoreContext

log = logging.getLogger(__name__)

NO_TIME: Final = -1
"""Observed stream time before the first row."""

ScanKey: TypeAlias = Callable[[bytes, int, int, bool], Iterator[Row]]
"""(user's key, first time, last time, reverse): the rows of a key, for engines in order of time that can tell."""

_key_of = itemgetter(0)


class Expiry(Enum):
    """When a row is too old to be read, and when it is too old to be put."""

    AT_ONCE = "at once"
    """Rows are refused as soon as they are hidden, as by the stores in memory."""

    BY_SEGMENT = "by segment"
    """Rows are refused when their whole segment is hidden."""

    AFTER_CLOSE = "after close"
    """By segment; a row that is exactly as old as the retention is not hidden yet, as it must be where windows are
    emitted on close (``AbstractDualSchemaRocksDBSegmentedBytesStore.getActualFrom``, 4.3.1).
    """


class SegmentedEngine:
    """Rows with composed keys, for a time.

    :param retention_ms: how long after its time a row can be read.
    :param interval_ms: how long a segment is.
    """

    def __init__(
        self,
        engine: Engine,
        schema: KeySchema,
        retention_ms: int,
        interval_ms: int,
        name: str,
        expiry: Expiry,
    ) -> None:
        self._engine = engine
        self._schema = schema
        self._time_of, self._time_at = schema.time_of, schema.time_at
        self._retention = retention_ms
        self._shown = retention_ms if expiry is Expiry.AFTER_CLOSE else retention_ms - 1
        self._interval = interval_ms
        self._exact = expiry is Expiry.AT_ONCE
        self._name = name
        self._get, self._put = engine.get, engine.put
        self._scan_key: ScanKey | None = getattr(engine, "scan_key", None)
        self._dropped_at_once = retention_ms // 8 + 1 if self._exact else 1
        self.persistent = engine.persistent
        self.end_restore = engine.end_restore
        self.commit = engine.commit
        self.committed_offset = engine.committed_offset
        self.approximate_num_entries = engine.approximate_num_entries
        self.close = engine.close
        self._forget()

    def _forget(self) -> None:
        self.observed_time = NO_TIME
        self.shown_from = NO_TIME - self._shown
        self._taken_from = 0
        self._dropped_before = 0
        self._oldest = LAST_TIME  # no row is older, apart from what was dropped
        self._kept_before = NO_TIME  # no row that was there when it was opened is newer
        self._compare_bytes()

    def _compare_bytes(self) -> None:
        """Keeps the times that each read and write compares as keys have them: big-endian, none before the first."""
        self._first_shown = _in_key(self.shown_from)
        self._last_there = _in_key(max(self.observed_time, self._kept_before))
        self._first_taken, self._last_taken = _in_key(self._oldest), _in_key(self.observed_time)

    @property
    def uncommitted_bytes(self) -> int:
        return self._engine.uncommitted_bytes

    @property
    def last_there(self) -> bytes:
        """The highest time that a row may have, as keys have it; nothing when there is none."""
        return self._last_there

    @property
    def first_number(self) -> int:
        """The lowest prefix that a row may have."""
        return max(self._oldest, self._taken_from) // self._schema.prefix_ms

    @property
    def last_number(self) -> int:
        """The highest prefix that a row may have; -1 when there is none."""
        return max(self.observed_time, self._kept_before) // self._schema.prefix_ms

    def open(self, context: StoreContext) -> None:
        self._engine.open(context)
        self._get, self._put = self._engine.get, self._engine.put
        self._forget()
        self._refused: Counter = context.metrics.counter(
            "dropped-records-total", "stream-task-metrics", task_id=str(context.task_id)
        )
        self._warned = False
        self._task_id = context.task_id
        if self.persistent:
            self._find_kept()

    def _find_kept(self) -> None:
        """Looks between which times the rows lie that were kept before."""
        oldest, newest = (next(self._engine.scan(None, None, reverse), None) for reverse in (False, True))
        if oldest is not None and newest is not None:
            width = self._schema.prefix_ms
            self._oldest, self._kept_before = number_of(oldest[0]) * width, (number_of(newest[0]) + 1) * width - 1
            self._compare_bytes()

    def get(self, key: bytes) -> bytes | None:
        return self._get(key) if self._first_shown <= key[self._time_at] <= self._last_there else None

    def put(self, key: bytes, packed: bytes | None) -> None:
        if self._first_taken <= key[self._time_at] <= self._last_taken or self._takes(self._time_of(key)):
            self._put(key, packed)

    def _takes(self, time: int) -> bool:
        """Makes room for a time outside of those that were put before; whether rows of it are still taken."""
        if time > self.observed_time:
            self._advance(time)
        if time < self._taken_from:
            self._refuse(time)
            return False
        if time < self._oldest:
            self._oldest = time
            self._compare_bytes()
        return True

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        shown_from = self.shown_from
        if shown_from <= 0:
            return self._engine.scan(lower, upper, reverse)
        width = self._schema.prefix_ms
        first = prefix_of(shown_from // width)
        if lower is None or lower < first:
            lower = first
        found = self._engine.scan(lower, upper, reverse)
        if width == 1 or number_of(lower) > shown_from // width:
            return found
        time_of = self._time_of
        return (row for row in found if time_of(row[0]) >= shown_from)

    @property
    def finds_keys(self) -> bool:
        """Whether the engine below can look rows in order of time up by the user's key in them."""
        return self._scan_key is not None

    def scan_key(self, key: bytes, time_from: int, time_to: int, reverse: bool) -> Iterator[Row]:
        """The rows of a user's key between two times, both inclusive, in order of time, if it ``finds_keys``."""
        first = max(time_from, self.shown_from, self._oldest)
        last = min(time_to, max(self.observed_time, self._kept_before))
        return iter(()) if self._scan_key is None or first > last else self._scan_key(key, first, last, reverse)

    def write(self, rows: Iterable[Write]) -> None:
        """Takes restored rows: the newest of all decides which are too old."""
        found = list(rows)
        if not found:
            return
        time_of = self._time_of
        times = [time_of(key) for key in map(_key_of, found)]
        newest = max(times)
        if newest > self.observed_time:
            self._advance(newest)
        oldest, taken_from = min(times), self._taken_from
        self._oldest = max(min(self._oldest, oldest), taken_from)
        self._compare_bytes()
        if oldest < taken_from:
            found = [row for row, time in zip(found, times, strict=True) if time >= taken_from]
        self._engine.write(found)

    def drop(self, lower: bytes, upper: bytes) -> None:
        self._engine.drop(lower, upper)

    def advance(self, time: int) -> None:
        """Hears of a time that was put elsewhere, and drops what is too old by it."""
        if time > self.observed_time:
            self._advance(time)

    def _advance(self, time: int) -> None:
        is_empty = self._oldest == LAST_TIME
        self.observed_time = time
        self.shown_from = time - self._shown
        if self._exact:
            self._taken_from = self.shown_from
        else:
            self._taken_from = max(self._taken_from, (time - self._retention) // self._interval * self._interval)
        self._oldest = max(self._oldest, self._taken_from)
        if is_empty:
            self._dropped_before = max(self._taken_from, 0)
        elif self._taken_from - self._dropped_before >= self._dropped_at_once:
            width = self._schema.prefix_ms
            self._engine.drop(prefix_of(self._dropped_before // width), prefix_of(self._taken_from // width))
            self._dropped_before = self._taken_from
        self._compare_bytes()

    def _refuse(self, time: int) -> None:
        self._refused.add()
        if self._warned:
            return
        self._warned = True
        log.warning(
            "store %r of task %s drops rows that are older than its retention of %d ms: the first has the time %d, "
            "when the newest has %d. Give the store a longer retention if such rows matter",
            self._name,
            self._task_id,
            self._retention,
            time,
            self.observed_time,
        )


def _in_key(time: int) -> bytes:
    """A time as keys have it; nothing, which sorts before every time, where it is negative."""
    return prefix_of(time) if time >= 0 else b""
