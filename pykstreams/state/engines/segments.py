"""Retention: an engine over an engine that forgets what has become too old.

Which times are shown, taken and dropped is decided in ``live_times``; what is dropped goes as one range with the next
commit. Observed stream time is not kept: after reopening it starts anew, from what is restored and put, as in Kafka
Streams.

Invariant: no read shows a row that was dropped, committed or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from functools import partial
from operator import itemgetter
from typing import Final, TypeAlias

from pykstreams.core.types import Headers
from pykstreams.state.encoding.composed_keys import KeySchema, number_of, prefix_of
from pykstreams.state.encoding.parts import PutParts
from pykstreams.state.engines.disk_form import other_form
from pykstreams.state.engines.engine_over import EngineOver
from pykstreams.state.engines.live_times import LiveTimes
from pykstreams.state.engines.refused_rows import RefusedRows
from pykstreams.state.interfaces.engine import Engine, Row, Write
from pykstreams.state.interfaces.store import StoreContext

ScanKey: TypeAlias = Callable[[bytes, int, int, bool], Iterator[Row]]
"""(user's key, first time, last time, reverse): the rows of a key, for engines in order of time that can tell."""

_key_of = itemgetter(0)
_BEFORE_TIME: Final = b""
"""A time below 0 as keys would have it: it sorts before all others."""


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


class SegmentedEngine(EngineOver):
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
        super().__init__(engine)
        self._schema = schema
        self._time_of, self._time_at = schema.time_of, schema.time_at
        self._times = LiveTimes(
            retention_ms,
            shown_ms=retention_ms if expiry is Expiry.AFTER_CLOSE else retention_ms - 1,
            segment_ms=None if expiry is Expiry.AT_ONCE else interval_ms,
        )
        self._name = name
        self._refused_by = partial(RefusedRows, name, retention_ms)
        self._get, self._put = engine.get, engine.put
        self.put_parts = self._parts_putter(getattr(engine, "put_parts", None))
        self._scan_key: ScanKey | None = getattr(engine, "scan_key", None)
        self.is_open = False
        self._compare_bytes()

    def _compare_bytes(self) -> None:
        """Keeps the times that each read and write compares as keys have them: big-endian, none before the first."""
        times = self._times
        shown_from, observed = times.shown_from, times.observed
        self._first_shown = prefix_of(shown_from) if shown_from >= 0 else _BEFORE_TIME
        self._first_taken = prefix_of(times.oldest)
        self._last_taken = taken = prefix_of(observed) if observed >= 0 else _BEFORE_TIME
        self._last_there = taken if times.newest == observed else prefix_of(times.newest)

    @property
    def observed_time(self) -> int:
        return self._times.observed

    @property
    def shown_from(self) -> int:
        """The lowest time that a row which is read may have."""
        return self._times.shown_from

    @property
    def last_there(self) -> bytes:
        """The highest time that a row may have, as keys have it; nothing when there is none."""
        return self._last_there

    @property
    def first_number(self) -> int:
        """The lowest prefix that a row may have."""
        return self._times.oldest // self._schema.prefix_ms

    @property
    def last_number(self) -> int:
        """The highest prefix that a row may have; -1 when there is none."""
        return self._times.newest // self._schema.prefix_ms

    def open(self, context: StoreContext) -> None:
        self._engine.open(context)
        self._get, self._put = self._engine.get, self._engine.put
        self._refused = self._refused_by(context)
        if self.is_open:  # the times are those of another task before, whose rows are still here
            return
        self.is_open = True
        self._times.reset()
        if self.persistent:
            self._find_kept(context)
        self._compare_bytes()

    def close(self) -> None:
        self.is_open = False
        super().close()

    def _find_kept(self, context: StoreContext) -> None:
        """Looks between which times the rows lie that were kept before."""
        oldest, newest = (next(self._engine.scan(None, None, reverse), None) for reverse in (False, True))
        if oldest is not None and newest is not None:
            width = self._schema.prefix_ms
            if any(number_of(key) != self._time_of(key) // width for key, _ in (oldest, newest)):
                self.close()
                folder = context.state_dir / "rocksdb" / self._name
                raise other_form(folder, self._name, context.task_id, "in another order than they are looked for")
            self._times.kept(number_of(oldest[0]) * width, (number_of(newest[0]) + 1) * width - 1)

    def get(self, key: bytes) -> bytes | None:
        return self._get(key) if self._first_shown <= key[self._time_at] <= self._last_there else None

    def put(self, key: bytes, packed: bytes | None) -> None:
        if self._first_taken <= key[self._time_at] <= self._last_taken or self._takes(self._time_of(key)):
            self._put(key, packed)

    def _parts_putter(self, put: PutParts | None) -> PutParts | None:
        """Makes ``put`` for rows in parts, where the engine below takes them so."""
        if put is None:
            return None
        time_at = self._time_at

        def put_parts(key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
            if self._first_taken <= key[time_at] <= self._last_taken or self._takes(self._time_of(key)):
                put(key, value, timestamp, headers)

        return put_parts

    def _takes(self, time: int) -> bool:
        """Makes room for a time outside of those that were put before; whether rows of it are still taken."""
        times = self._times
        if time > times.observed:
            self._advance(time)
        is_taken = times.put(time)
        if is_taken:
            self._compare_bytes()
        else:
            self._refused.refuse(time, times.observed)
        return is_taken

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        shown_from = self._times.shown_from
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
        times = self._times
        first = max(time_from, times.shown_from, times.oldest)
        last = min(time_to, times.newest)
        return iter(()) if self._scan_key is None or first > last else self._scan_key(key, first, last, reverse)

    def write(self, rows: Iterable[Write]) -> None:
        """Puts restored rows: the newest of all decides which are too old."""
        found = list(rows)
        if not found:
            return
        time_of = self._time_of
        row_times = [time_of(key) for key in map(_key_of, found)]
        self.advance(max(row_times))
        times, oldest = self._times, min(row_times)
        taken_from = times.taken_from
        if oldest < taken_from:
            found = [row for row, time in zip(found, row_times, strict=True) if time >= taken_from]
        times.put(max(oldest, taken_from))
        self._compare_bytes()
        self._engine.write(found)

    def advance(self, time: int) -> None:
        """Observes a time that was put elsewhere, and drops what is too old by it."""
        if time > self._times.observed:
            self._advance(time)
            self._compare_bytes()

    def _advance(self, time: int) -> None:
        dropped = self._times.advance(time)
        if dropped is not None:
            width = self._schema.prefix_ms
            self._engine.drop(prefix_of(dropped[0] // width), prefix_of(dropped[1] // width))
