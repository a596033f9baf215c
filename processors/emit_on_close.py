"""Emits the results of windows once, when they are closed (``EmitStrategy.ON_WINDOW_CLOSE``).

A look for closed windows is taken after a record, at most once in an interval of wall-clock time. The close time up
to which was emitted is kept beside the committed offsets under the name of the store, so that a restarted task goes
on from there and emits nothing twice (``AbstractKStreamTimeWindowAggregateProcessor.maybeForwardFinalResult``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from pykstreams.core.metrics.built_in.tasks import FINAL_EMIT, FINAL_EMIT_LATENCY
from pykstreams.core.processor import OperatorContext
from pykstreams.core.settings.keys import EMIT_INTERVAL_MS, EMIT_INTERVAL_OF_WINDOWS
from pykstreams.core.types import Forward, Headers

Closed: TypeAlias = Callable[[int | None, int], tuple[int, int] | None]
"""(close time of the last emission, close time now) -> first and last time to read, ``None`` if nothing closed"""

ReadClosed: TypeAlias = Callable[[int, int], Iterable[tuple[object, object, int]]]
"""(first time, last time) -> windowed key, value and timestamp of each row"""

EmitClosed: TypeAlias = Callable[[int, object, object, int, Headers], None]
"""(close time now, then key, value, timestamp and headers of the record behind which to look)"""


LookForClosed: TypeAlias = Callable[[int, int], None]
"""(close time now, stream time); looks at once, without a record."""


class EmitterOfClosed(NamedTuple):
    """Forwards the results of closed windows."""

    behind_record: EmitClosed
    at_once: LookForClosed


def emitter_of_closed(
    context: OperatorContext, store: str, forward: Forward, closed: Closed, read: ReadClosed
) -> EmitterOfClosed:
    """Makes the functions that forward the results of closed windows; called once, while the operator is built.

    Results carry the time of their row and the headers of the record that closed them.
    """
    metadata, fail = context.metadata, context.fail
    now_ms = context.processing.current_system_time_ms
    interval = emit_interval_ms(context, EMIT_INTERVAL_OF_WINDOWS)
    forward = context.current.following(forward)
    note = _noting(context)
    next_look = 0
    last: int | None = None

    def take_up() -> None:
        nonlocal last
        last = metadata.get(store)

    def emit(close_time: int, key: object, value: object, timestamp: int, headers: Headers) -> None:
        nonlocal next_look
        now = now_ms()
        if now < next_look <= now + interval:  # later still: the clock was set back
            return
        next_look = now + interval
        look(close_time, key, value, timestamp, headers)

    def look(close_time: int, key: object, value: object, timestamp: int, headers: Headers) -> None:
        nonlocal last
        if last is not None and last >= close_time:
            return
        span = closed(last, close_time)
        if span is None:
            return
        began, emitted = now_ms(), 0
        try:
            for windowed, result, time in read(*span):
                forward(windowed, (result, None, True), time, headers)
                emitted += 1
        except Exception as error:
            fail(error, key, value, timestamp, headers)
            return
        if note is not None:
            note(emitted, now_ms() - began)
        last = close_time
        metadata.put(store, close_time)

    def at_once(close_time: int, time: int) -> None:
        look(close_time, None, None, time, ())

    context.on_init(take_up)
    return EmitterOfClosed(emit, at_once)


def _noting(context: OperatorContext) -> Callable[[int, int], None] | None:
    """Makes what notes how many results were emitted, and in how many ms; ``None`` where nobody wants to know."""
    metrics = context.processing.metrics
    if not metrics.records(FINAL_EMIT.level):
        return None
    tags = {"task_id": str(context.processing.task_id), "processor_node_id": context.node}
    counts, latencies = metrics.sensor(FINAL_EMIT, **tags), metrics.sensor(FINAL_EMIT_LATENCY, **tags)

    def note(emitted: int, latency_ms: int) -> None:
        if emitted:
            counts.record(emitted)
            latencies.record(latency_ms)

    return note


def emit_interval_ms(context: OperatorContext, setting: str) -> int:
    """The wall-clock time between two looks for closed windows, by that internal setting or else the default."""
    interval = context.processing.app_configs.get(setting, EMIT_INTERVAL_MS)
    return interval if isinstance(interval, int) else EMIT_INTERVAL_MS
