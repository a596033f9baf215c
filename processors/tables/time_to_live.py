"""Removes the rows of a table some time after their timestamps. Beyond Kafka Streams.

A row is due when stream time of the task, or the wall clock, has come to its timestamp and the time to live. Then it
goes as by a record without value whose timestamp is that moment: out of the store, with a tombstone into the
changelog, and with a change for what is below.

An index that is not whole, since the table had no time to live before, is made of all rows before the first record.
That it is whole is committed beside the offsets.

Rows that are due are looked for when the first of them is, in the index beside the store, so many at a time; what is
left is worked off between the records that come. A record of a key whose row is due never meets that row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from pykstreams.core.processor import Cancellable, OperatorContext, OperatorSupplier, PunctuationType
from pykstreams.core.types import END_OF_TIME, Headers
from pykstreams.processors.drop_reasons import LATE_FOR_TIME_TO_LIVE
from pykstreams.processors.process import Process
from pykstreams.processors.stores import store_of_class, table_rows
from pykstreams.processors.tables.table_forwarding import forwarder
from pykstreams.state.buffers.expiry_index import Entry, ExpiryIndex
from pykstreams.state.interfaces.operator_stores import TableRows
from pykstreams.state.key_values.metered import MeteredKeyValueStore

_MOST: Final = 500
"""How many entries of the index are worked off at a time."""
_ONCE_MS: Final = 1
"""The interval of a schedule that is cancelled when it fires."""
_SOON: Final = -1
"""When the next look is taken where rows are due already."""


class RowsOfRecords(OperatorSupplier, Protocol):
    """An operator that makes the rows of a table out of records, each of its key."""

    @property
    def send_old_values(self) -> bool:
        """Whether its changes have old values."""
        ...


@dataclass(frozen=True, slots=True)
class ExpiringTable:
    """A table whose rows go by themselves.

    :param table: the operator that makes the rows; it is given the records as they come.
    :param store: the store of the rows, and ``index`` that of their times.
    :param takes_record_time: whether a row has the timestamp of its record, and not that of the newest one of its key.
    """

    table: RowsOfRecords
    store: str
    index: str
    time_to_live_ms: int
    clock: PunctuationType
    takes_record_time: bool

    def build(self, context: OperatorContext) -> Process:
        expiry = _Expiry(self, context)
        context.on_init(expiry.start)
        return expiry.process


class _Expiry:
    """The rows of one task."""

    __slots__ = (
        "_alarm",
        "_alarm_at",
        "_announces",
        "_complete",
        "_context",
        "_current",
        "_emit",
        "_forward",
        "_index",
        "_kept",
        "_now",
        "_plan",
        "_rows",
        "_table",
        "_time_to_live",
    )

    def __init__(self, plan: ExpiringTable, context: OperatorContext) -> None:
        self._plan = plan
        self._context = context
        self._current = context.current
        self._table = plan.table.build(context)
        self._rows: TableRows[object, object] = table_rows(context, plan.store)
        self._kept: MeteredKeyValueStore[object, object] = store_of_class(MeteredKeyValueStore, context, plan.store)
        self._index = store_of_class(ExpiryIndex, context, plan.index)
        self._emit = forwarder(self._rows, context, plan.table.send_old_values)
        self._forward = context.current.following(context.forward)
        self._time_to_live = plan.time_to_live_ms
        by_stream = plan.clock is PunctuationType.STREAM_TIME
        self._now: Callable[[], int] = context.stream_time if by_stream else context.processing.current_system_time_ms
        self._announces = not context.config.exactly_once
        self._alarm: Cancellable | None = None
        self._alarm_at: int | None = None
        self._complete = False

    def start(self) -> None:
        """Finds the rows that are there."""
        index = self._index
        index.begin(self._context.processing.current_system_time_ms())
        self._complete = index.first() is not None and self._context.metadata.get(self._plan.index) is not None
        if self._complete:
            self._set_alarm()
        elif next(self._kept.raw_rows(), None) is not None:
            self._set_alarm_soon()

    def process(self, key: object, value: object, timestamp: int, headers: Headers) -> None:
        """Takes a record; runs per record."""
        if key is not None:
            try:
                expired = self._make_way(key, value, timestamp, headers)
            except Exception as error:
                self._context.fail(error, key, value, timestamp, headers)
                return
            if expired:
                self._context.drop(LATE_FOR_TIME_TO_LIVE)
                return
        self._table(key, value, timestamp, headers)

    def _make_way(self, key: object, value: object, timestamp: int, headers: Headers) -> bool:
        """Removes the row of the key if it is due; returns whether the record itself would be."""
        if not self._complete:
            self._complete_index()
        last_due = self._now() - self._time_to_live
        row = self._rows.get_row(key)
        if row is not None and row[1] <= last_due:
            self._expire(key, row)
            row = None
        if value is None:
            return False
        takes_record_time = self._plan.takes_record_time
        if timestamp <= last_due and (row is None or takes_record_time):
            return True
        if row is None or (takes_record_time and timestamp < row[1]) or self._current.replayed:
            # of a row that is replayed, the changelogs may have the row and not the entry
            self._note(key, timestamp, headers)
        return False

    def _note(self, key: object, time: int, headers: Headers) -> None:
        self._index.note(key, time, headers)
        if self._alarm_at is None or time + self._time_to_live < self._alarm_at:
            self._set_alarm()

    def _expire(self, key: object, row: tuple[object, int]) -> None:
        value, time = row
        due = time + self._time_to_live
        before = self._current.raw
        self._current.raw = (None if before is None else before[0], due, ())
        try:
            self._rows.put_row(key, None, due)
            if self._emit is not None:
                self._emit(key, None, value, due, (), True)
        finally:
            self._current.raw = before

    def _set_alarm(self) -> None:
        """Sees to it that somebody looks when the first row is due; a row that is due after all time stays."""
        first = self._index.first()
        if first is None:
            return
        due = first + self._time_to_live
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._alarm_at = None
        if due <= self._now():
            self._set_alarm_soon()
        elif due <= END_OF_TIME:
            self._alarm_at = due
            self._alarm = self._context.processing.schedule(_ONCE_MS, self._plan.clock, self._ring, start_time=due)

    def _set_alarm_soon(self) -> None:
        self._alarm_at = _SOON
        self._alarm = self._context.processing.schedule(_ONCE_MS, PunctuationType.WALL_CLOCK_TIME, self._ring)

    def _complete_index(self) -> None:
        index, name, metadata = self._index, self._plan.index, self._context.metadata
        if index.first() is None or metadata.get(name) is None:  # else another operator over the same store has done it
            for key, _, time, _ in self._kept.raw_rows():
                index.note_bytes(key, time or 0)
            metadata.put(name, 1)
        self._complete = True
        self._set_alarm()

    def _ring(self, now: int) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._alarm_at = None
        if not self._complete:
            self._complete_index()
            return
        last_due, index = self._now() - self._time_to_live, self._index
        try:
            for entry in index.until(last_due, _MOST) if last_due >= 0 else ():
                index.work_off(entry)
                self._work_off(entry, last_due)
        finally:
            self._set_alarm()

    def _work_off(self, entry: Entry, last_due: int) -> None:
        row = self._rows.get_row(entry.key)
        if row is None:
            if entry.before and self._announces:  # the deletion may be in the changelog, and have gone no further
                due = entry.time + self._time_to_live
                self._forward(entry.key, (None, None, True), due, ())
        elif row[1] <= last_due:
            self._expire(entry.key, row)
        else:
            self._index.note(entry.key, row[1], ())
