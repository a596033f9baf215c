"""Count, reduce and aggregate of a grouped stream in session windows.

A record without key is dropped; one without value is not: the aggregator sees ``None``. A record joins every session of
its key that lies within the gap of its time; these merge into one, which is late if it ended longer than the grace
period plus the gap before the time observed by this operator. Sessions that were merged are taken back, each by a
change to ``None``, before the merged one is forwarded; also the one that merely grew. The result carries the end of its
session as timestamp, and no headers (``KStreamSessionWindowAggregate``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import END_OF_TIME, Headers, Initializer, Reducer
from pykstreams.core.windows import EmitStrategy, SessionWindows, Window, Windowed
from pykstreams.processors.aggregates.missing_results import missing_result
from pykstreams.processors.aggregates.reducers import from_first
from pykstreams.processors.aggregates.window_outlets import window_idle_time, window_outlets
from pykstreams.processors.drop_reasons import LATE_FOR_WINDOWS, NULL_KEY_TO_AGGREGATE
from pykstreams.processors.process import Process
from pykstreams.processors.stores import session_rows
from pykstreams.state.interfaces.operator_stores import SessionRows

K = TypeVar("K")
V = TypeVar("V")
VA = TypeVar("VA")
K_contra = TypeVar("K_contra", contravariant=True)
V_contra = TypeVar("V_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class SessionAggregation(Generic[K_contra, V_contra, VA]):
    """How a session is aggregated: ``aggregator(key, value, aggregate)``, where the aggregate is that of
    ``initializer()`` and of all sessions that merge, joined by ``merger(key, aggregate, aggregate)``.
    """

    initializer: Initializer[VA]
    aggregator: Callable[[K_contra, V_contra, VA], VA | None]
    merger: Callable[[K_contra, VA, VA], VA]


COUNT_OF_SESSION: SessionAggregation[object, object, int] = SessionAggregation(
    lambda: 0, lambda key, value, count: count + 1, lambda key, count, other: count + other
)


def reducing_sessions(reducer: Reducer[V]) -> SessionAggregation[object, V, V | None]:
    """Returns the aggregation by ``reducer(aggregate, value)``, which also merges; the first value starts it."""

    def merge(key: object, aggregate: V | None, other: V) -> V | None:  # the other session is kept, and so has a value
        return other if aggregate is None else reducer(aggregate, other)

    return SessionAggregation(
        lambda: None, from_first(reducer), cast("Callable[[object, V | None, V | None], V | None]", merge)
    )


@dataclass(frozen=True, slots=True)
class SessionAggregate(Generic[K, V, VA]):
    """Keeps an aggregate per key and session. ``late_child`` names the child that gets late records.

    After ``idle_ms`` without input sessions close by the wall clock.
    """

    store: str
    windows: SessionWindows
    aggregation: SessionAggregation[K, V, VA]
    send_old_values: bool = False
    emit_strategy: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE
    late_child: str | None = None
    idle_ms: int | None = None

    def build(self, context: OperatorContext) -> Process:
        store: SessionRows[K, VA] = session_rows(context, self.store)
        emit, emit_closed, late, look = window_outlets(self, store, context, _closed, store.sessions_ended)
        sessions, put_row = store.sessions, store.put_row
        aggregation = self.aggregation
        initializer, aggregator, merger = aggregation.initializer, aggregation.aggregator, aggregation.merger
        gap = self.windows.inactivity_gap_ms
        grace = self.windows.grace_period_ms + gap
        idle = window_idle_time(self, context, look, grace, grace + 1)
        fail, drop, missing = context.fail, context.drop, missing_result(aggregator, context)
        observed, close = -1, -1 - grace

        def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
            nonlocal observed, close
            if key is None:
                drop(NULL_KEY_TO_AGGREGATE)
                return
            if timestamp > observed:
                observed = timestamp
                close = timestamp - grace
            start = end = timestamp
            try:
                aggregate = initializer()
                found = sessions(key, timestamp - gap, min(timestamp + gap, END_OF_TIME))
                for from_time, to_time, other in found:
                    aggregate = merger(key, aggregate, other)
                    start = min(start, from_time)
                    end = max(end, to_time)
                if end >= close:
                    if start != end:
                        for from_time, to_time, old in found:
                            put_row(key, from_time, to_time, None)
                            if emit is not None:
                                emit(Windowed(key, Window(from_time, to_time)), None, old, to_time, (), True)
                    new = aggregator(key, value, aggregate)
                    if new is None:
                        missing()
                    put_row(key, start, end, new)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            if end < close:
                drop(LATE_FOR_WINDOWS)
                if late is not None:
                    late(key, value, timestamp, headers)
            elif emit is not None:
                emit(Windowed(key, Window(start, end)), new, None, end, (), True)
            if emit_closed is not None:
                emit_closed(close, key, value, timestamp, headers)

        def advance_to(time: int) -> None:
            nonlocal observed, close
            if time > observed:
                observed = time
                close = time - grace

        return process if idle is None else idle.follow(process, lambda: observed, advance_to)


def _closed(last: int | None, close_time: int) -> tuple[int, int] | None:
    """Which sessions to emit, by their ends: those that end before the close time and did not before the one before."""
    first, latest = max(0, -1 if last is None else last), close_time - 1
    return (first, latest) if latest >= first else None
