"""Join of a stream with a table: each record of the stream is joined with the row that the table has at that moment,
or, if the table is versioned, with the row that it had at the time of the record.

Records of the table change it and give no results. The table may be one of the task's own or a global one: the operator
reads it through its view. With grace, records of the stream wait in a buffer until the stream time of the buffer is
past their time by the grace, so that late records of the table are seen
(``KStreamKTableJoinProcessor.process``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Headers, KeyValueMapper
from pykstreams.processors.process import Process
from pykstreams.processors.stores import store_of_class
from pykstreams.processors.tables.table_view import ReadRow, ReadRowAsOf, TableView, history_of, reader_as_of
from pykstreams.state.buffers.join_buffer import JoinBuffer
from pykstreams.state.encoding.record_context import RawContext
from pykstreams.state.layers.changelogging import record_being_processed

K = TypeVar("K")
V = TypeVar("V")
KO = TypeVar("KO")
VO = TypeVar("VO")


@dataclass(frozen=True, slots=True)
class StreamTableJoin(Generic[K, V, KO, VO]):
    """Forwards ``joiner(value, table value)``, or ``joiner(key, value, table value)`` with ``with_key``.

    ``key_selector(key, value)`` gives the key to look up, without one the record's own. A record without value is
    dropped, and so is one without the key to look up, unless ``left``. Where the table has no row there is no
    result, or with ``left`` one for the table value ``None``. Key, timestamp and headers are the record's. ``buffer``
    is the store in which records wait; one that is too late to wait is joined at once. ``drops_expired`` drops a record
    where the history of the table has expired, so that it cannot be told whether there was a row at that time.
    """

    view: TableView[KO, VO]
    joiner: Callable[..., object]
    left: bool
    with_key: bool = False
    key_selector: KeyValueMapper[K, V, KO] | None = None
    buffer: str | None = None
    drops_expired: bool = False

    @property
    def takes_back(self) -> bool:
        """Changelogs stay behind where records wait: none is forgotten before its result was delivered."""
        return self.buffer is not None

    def build(self, context: OperatorContext) -> Process:
        if self.key_selector is not None:
            return self._by_selected_key(self.key_selector, self.view.build(context), context)
        read_as_of: ReadRowAsOf[KO, VO | None] | None = reader_as_of(self.view, context)
        if read_as_of is None:
            return self._with_current_row(self.view.build(context), context)
        if self.drops_expired:
            read_as_of = _known_rows(self.view, context)
        join = self._with_row_of_that_time(read_as_of, context)
        return join if self.buffer is None else self._after_grace(self.buffer, join, context)

    def _with_current_row(self, read: ReadRow[KO, VO], context: OperatorContext) -> Process:
        joiner, left, with_key = self.joiner, self.left, self.with_key
        forward, fail, drop = context.forward, context.fail, context.drop

        def process(key: KO, value: object, timestamp: int, headers: Headers) -> None:
            if value is None or (key is None and not left):
                drop(_NULL)
                return
            try:
                row = None if key is None else read(key)
                if row is None and not left:
                    return
                other = None if row is None else row[0]
                joined = joiner(key, value, other) if with_key else joiner(value, other)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            forward(key, joined, timestamp, headers)

        return process

    def _with_row_of_that_time(self, read: ReadRowAsOf[KO, VO | None], context: OperatorContext) -> Process:
        joiner, left, with_key = self.joiner, self.left, self.with_key
        forward, fail, drop = context.forward, context.fail, context.drop
        drops_expired = self.drops_expired

        def process(key: KO, value: object, timestamp: int, headers: Headers) -> None:
            if value is None or (key is None and not left):
                drop(_NULL)
                return
            try:
                row = None if key is None else read(key, timestamp)
                if row is None and drops_expired and key is not None:
                    drop(_HISTORY_EXPIRED)
                    return
                other = None if row is None else row[0]
                if other is None and not left:
                    return
                joined = joiner(key, value, other) if with_key else joiner(value, other)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            forward(key, joined, timestamp, headers)

        return process

    def _after_grace(self, store: str, join: Process, context: OperatorContext) -> Process:
        buffer = store_of_class(JoinBuffer, context, store)
        current, left = context.current, self.left
        fail, drop = context.fail, context.drop

        def emit(key: object, value: object, raw: RawContext) -> None:
            saved = current.raw
            current.raw = raw
            try:
                join(key, value, raw[1], raw[2])
            finally:
                current.raw = saved

        def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
            if value is None or (key is None and not left):
                drop(_NULL)
                return
            try:
                _, record_time, record_headers = raw = record_being_processed(current, store)
                if (record_time, record_headers) != (timestamp, headers):
                    raw = (raw[0], timestamp, headers)
                if buffer.put(key, value, raw):
                    buffer.evict(emit)
                else:
                    join(key, value, timestamp, headers)
            except Exception as error:
                fail(error, key, value, timestamp, headers)

        return process

    def _by_selected_key(
        self, selector: KeyValueMapper[K, V, KO], read: ReadRow[KO, VO], context: OperatorContext
    ) -> Process:
        joiner, left, with_key = self.joiner, self.left, self.with_key
        forward, fail, drop = context.forward, context.fail, context.drop

        def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
            try:
                selected = selector(key, value)
                if value is None or (selected is None and not left):
                    drop(_NULL)
                    return
                row = None if selected is None else read(selected)
                if row is None and not left:
                    return
                other = None if row is None else row[0]
                joined = joiner(key, value, other) if with_key else joiner(value, other)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            forward(key, joined, timestamp, headers)

        return process


def _known_rows(view: TableView[KO, VO], context: OperatorContext) -> ReadRowAsOf[KO, VO | None]:
    """Reads a row as of a time, with the value ``None`` for none; ``None`` where its history has expired."""
    read_history = history_of(view, context).between

    def read(key: KO, time: int) -> tuple[VO | None, int] | None:
        found = read_history(key, time, time)
        return (found[-1][1], found[-1][0]) if found else None

    return read


_NULL = "the value of a record, or the key to join it by, is null"
_HISTORY_EXPIRED = (
    "the history of the table at the time of the record has expired; give its store a longer history retention if such "
    "records matter"
)
