"""Suppression: a table whose changes wait in a buffer, so that fewer, or only final ones, go on.

A change waits until the stream time that this operator has seen is past its place in the buffer by ``wait_ms``; its
place is its timestamp, or the end of its window. A change of a key that waits already takes the place of the one
before it. What goes on carries the timestamp, headers and origin of the last change, the old value that this last
change had, and counts as the newest of its key (``KTableSuppressProcessorSupplier``, 4.3.1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

from pykstreams.core.errors import StreamsError
from pykstreams.core.metrics import Sensor
from pykstreams.core.metrics.built_in.tasks import SUPPRESSION_EMIT
from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Change, Forward, Headers
from pykstreams.processors.drop_reasons import CLOSED_WINDOW
from pykstreams.processors.idle_time import idle_time
from pykstreams.processors.process import Process
from pykstreams.processors.stores import store_of_class
from pykstreams.processors.tables.table_view import ReadRow, TableView
from pykstreams.state.buffers.suppression_buffer import NOT_BUFFERED, Emit, SuppressionBuffer
from pykstreams.state.encoding.record_context import RawContext
from pykstreams.state.layers.changelogging import record_being_processed

K = TypeVar("K")
V = TypeVar("V")

_NO_TIMESTAMP = -1


@dataclass(frozen=True, slots=True)
class TableSuppress:
    """Holds changes back in the buffer ``store``.

    With ``final`` the key is windowed and waits for the end of its window, and a deletion does not go on: nothing of
    its window went on before. When there is more in the buffer than it may hold, the first changes go on early, or,
    with ``shut_down_when_full``, this node fails; the change that was too much is then in the buffer already.

    After ``idle_ms`` without input changes go on by the wall clock. A change of a window whose result has gone on by it
    is dropped.
    """

    store: str
    wait_ms: int
    final: bool = False
    max_records: int | None = None
    max_bytes: int | None = None
    shut_down_when_full: bool = False
    idle_ms: int | None = None
    takes_back: ClassVar = True
    """Changelogs stay behind: a change that leaves the buffer is not forgotten before it was delivered."""

    def build(self, context: OperatorContext) -> Process:
        buffer = store_of_class(SuppressionBuffer, context, self.store)
        current, fail, emit = context.current, context.fail, self._emit(context)
        store, wait_ms, final = self.store, self.wait_ms, self.final
        max_records, max_bytes, shuts_down = self.max_records, self.max_bytes, self.shut_down_when_full
        limited = max_records is not None or max_bytes is not None
        drops_late, drop = final and self.idle_ms is not None, context.drop
        put, evict_until, evict_first = buffer.put, buffer.evict_until, buffer.evict_first
        stream_time = _NO_TIMESTAMP

        def is_full() -> bool:
            return (max_records is not None and buffer.record_count > max_records) or (
                max_bytes is not None and buffer.size_bytes > max_bytes
            )

        def process(key: Any, change: Change[object], timestamp: int, headers: Headers) -> None:
            nonlocal stream_time
            if timestamp > stream_time:
                stream_time = timestamp
            if drops_late and key.window.end <= stream_time - wait_ms:
                drop(CLOSED_WINDOW)
                return
            try:
                raw = record_being_processed(current, store)
                put(key.window.end if final else raw[1], key, change, raw)
                expired = stream_time - wait_ms
                if buffer.min_time <= expired:
                    evict_until(expired, emit)
                if limited and is_full():
                    if shuts_down:
                        raise self._full(context.node, buffer)
                    while is_full():
                        evict_first(emit)
            except Exception as error:
                fail(error, key, change, timestamp, headers)

        def evict(time: int) -> None:
            try:
                evict_until(time - wait_ms, emit)
            except Exception as error:
                fail(error, None, None, time, ())

        def advance_to(time: int) -> None:
            nonlocal stream_time
            stream_time = max(stream_time, time)

        def last_of(time: int) -> int:
            return max(time, buffer.max_time() + wait_ms) if buffer.record_count else time

        idle = idle_time(context, self.idle_ms, last_of, evict)
        return process if idle is None else idle.follow(process, lambda: stream_time, advance_to)

    def _emit(self, context: OperatorContext) -> Emit:
        """Makes the callable that forwards a change from the buffer as part of the record that put it."""
        current, forward, final = context.current, context.forward, self.final
        metrics = context.processing.metrics
        if metrics.records(SUPPRESSION_EMIT.level):
            tags = {"task_id": str(context.processing.task_id), "processor_node_id": context.node}
            forward = _counted(forward, metrics.sensor(SUPPRESSION_EMIT, **tags))

        def emit(key: object, change: Change[object], raw: RawContext) -> None:
            if final and change[0] is None:
                return
            saved = current.raw
            current.raw = raw
            try:
                forward(key, change, raw[1], raw[2])
            finally:
                current.raw = saved

        return emit

    def _full(self, node: str, buffer: SuppressionBuffer) -> StreamsError:
        early = "" if self.final else " or let it emit early (when_full=BufferFullStrategy.EMIT_EARLY),"
        return StreamsError(
            f"{node} exceeded what its buffer may hold: {buffer.record_count} records ({_limit(self.max_records)}) and "
            f"{buffer.size_bytes} bytes ({_limit(self.max_bytes)}); give its BufferConfig room for what waits,{early} "
            "or suppress for a shorter time"
        )


@dataclass(frozen=True, slots=True)
class SuppressedView(Generic[K, V]):
    """A suppressed table as others read it: what it had before a change that still waits, else what its parent has.

    When a prior value was set is not known; its timestamp is -1 (``KTableSuppressProcessorSupplier.view``, 4.3.1).
    """

    parent: TableView[K, V]
    store: str

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store, *self.parent.stores)

    def as_forwarded(self) -> SuppressedView[K, V]:
        return replace(self, parent=self.parent.as_forwarded())

    def build(self, context: OperatorContext) -> ReadRow[K, V]:
        read_parent = self.parent.build(context)
        buffer = store_of_class(SuppressionBuffer, context, self.store)
        prior_value = buffer.prior_value

        def read(key: K) -> tuple[V, int] | None:
            value = prior_value(key)
            if value is NOT_BUFFERED:
                return read_parent(key)
            return None if value is None else (value, _NO_TIMESTAMP)

        return read


def _limit(limit: int | None) -> str:
    return "no limit" if limit is None else f"at most {limit}"


def _counted(forward: Forward, emitted: Sensor) -> Forward:
    def forward_and_count(key: object, value: object, timestamp: int, headers: Headers) -> None:
        forward(key, value, timestamp, headers)
        emitted.record()

    return forward_and_count
