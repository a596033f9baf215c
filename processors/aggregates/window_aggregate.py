"""Count, reduce and aggregate of a grouped stream in tumbling, hopping, unlimited and users' own windows.

A record without key is dropped; one without value is not: the aggregator sees ``None``. A window takes records until
the time observed by this operator has passed its end by the grace period. The result of a window carries the largest
timestamp of its records; ``None`` as the result deletes it (``KStreamWindowAggregate``, 4.3.1).

The windows of a record are computed with plain numbers; a ``Windowed`` key is made only for what is forwarded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar, cast

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Forward, Headers, Initializer, Reducer
from pykstreams.core.windows import EmitStrategy, TimeWindows, Window, Windowed, Windows, ends_too_late, in_window
from pykstreams.processors.aggregates.missing_results import missing_result
from pykstreams.processors.aggregates.reducers import from_first
from pykstreams.processors.aggregates.stream_aggregate import owned_rows
from pykstreams.processors.aggregates.window_outlets import window_idle_time, window_outlets
from pykstreams.processors.drop_reasons import LATE_FOR_WINDOWS, NULL_KEY_TO_AGGREGATE
from pykstreams.processors.emit_on_close import Closed, EmitClosed
from pykstreams.processors.idle_time import IdleTime
from pykstreams.processors.process import Process
from pykstreams.processors.stores import window_rows
from pykstreams.processors.tables.table_forwarding import Emit
from pykstreams.processors.tables.table_view import ReadRow
from pykstreams.state.interfaces.operator_stores import WindowRows

K = TypeVar("K")
V = TypeVar("V")
VA = TypeVar("VA")
K_contra = TypeVar("K_contra", contravariant=True)
V_contra = TypeVar("V_contra", contravariant=True)

AddToWindow: TypeAlias = Callable[[K, V, int, Headers, int, int], bool]
"""(key, value, timestamp, headers, start, end of the window); false where the record failed and must end here"""


@dataclass(frozen=True, slots=True)
class Aggregation(Generic[K_contra, V_contra, VA]):
    """How a window is aggregated: ``aggregator(key, value, aggregate)`` from ``initializer()``."""

    initializer: Initializer[VA]
    aggregator: Callable[[K_contra, V_contra, VA], VA | None]


COUNT: Aggregation[object, object, int] = Aggregation(lambda: 0, lambda key, value, count: count + 1)


def reducing(reducer: Reducer[V]) -> Aggregation[object, V, V | None]:
    """Returns the aggregation by ``reducer(aggregate, value)``, which the first value starts."""
    return Aggregation(lambda: None, from_first(reducer))


@dataclass(frozen=True, slots=True)
class WindowAggregate(Generic[K, V, VA]):
    """Keeps an aggregate per key and window.

    ``late_child`` names the child that gets late records. After ``idle_ms`` without input windows close by the wall
    clock. Only windows that end can be emitted on close; the DSL checks it.
    """

    store: str
    windows: Windows[Window]
    aggregation: Aggregation[K, V, VA]
    send_old_values: bool = False
    emit_strategy: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE
    late_child: str | None = None
    idle_ms: int | None = None

    def build(self, context: OperatorContext) -> Process:
        store: WindowRows[K, VA] = window_rows(context, self.store)
        windows = self.windows
        advance = windows.advance_ms if isinstance(windows, TimeWindows) else 1
        closed = _closed(windows.size_ms, advance)
        emit, emit_closed, late, look = window_outlets(self, store, context, closed, store.rows_between)
        grace = windows.grace_period_ms
        idle = window_idle_time(self, context, look, grace, windows.size_ms + grace)
        add = _adder(self.aggregation, store, context, emit, self.send_old_values)
        if isinstance(windows, TimeWindows):
            if windows.advance_ms == windows.size_ms:
                return _tumbling(windows, add, context, late, emit_closed, idle)
            return _hopping(windows, add, context, late, emit_closed, idle)
        return _in_any_windows(windows, add, context, late, emit_closed, idle)


@dataclass(frozen=True, slots=True)
class WindowedView:
    """A windowed table as it is read by windowed keys (``KStreamWindowAggregateValueGetter``, 4.3.1)."""

    store: str
    forwarded: bool = False

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)

    def as_forwarded(self) -> WindowedView:
        return replace(self, forwarded=True)

    def build(self, context: OperatorContext) -> ReadRow[Windowed[K], VA]:
        store: WindowRows[K, VA] = window_rows(context, self.store)
        get_row = store.reader_below_cache() if self.forwarded else store.get_row

        def read(windowed: Windowed[K]) -> tuple[VA, int] | None:
            return get_row(windowed.key, windowed.window.start)

        return read


def _adder(
    aggregation: Aggregation[K, V, VA],
    store: WindowRows[K, VA],
    context: OperatorContext,
    emit: Emit | None,
    send_old_values: bool,
) -> AddToWindow[K, V]:
    """Makes the function that brings one window of a record up to date."""
    if aggregation is COUNT:
        return _counter(cast("WindowRows[K, int]", store), context, emit)  # its aggregates are numbers
    initializer, aggregator, fail = aggregation.initializer, aggregation.aggregator, context.fail
    get_row, put_row = owned_rows(store, context, send_old_values)
    missing = missing_result(aggregator, context)

    def add(key: K, value: V, timestamp: int, headers: Headers, start: int, end: int) -> bool:
        try:
            row = get_row(key, start)
            if row is None:
                old = initializer()
                time = timestamp
            else:
                old, stored = row
                time = timestamp if timestamp > stored else stored
            new = aggregator(key, value, old)
            if new is None:
                missing()
            put_row(key, start, new, time)
        except Exception as error:
            fail(error, key, value, timestamp, headers)
            return False
        if emit is not None:
            emit(in_window(key, start, end), new, old, time, headers, True)
        return True

    return add


def _counter(store: WindowRows[K, int], context: OperatorContext, emit: Emit | None) -> AddToWindow[K, V]:
    """Makes the function that counts a record in one window: that of ``_adder`` for ``COUNT``, without the calls."""
    get_row, put_row = store.take_row, store.keep_row  # nobody can change a number
    fail = context.fail

    def add(key: K, value: V, timestamp: int, headers: Headers, start: int, end: int) -> bool:
        try:
            row = get_row(key, start)
            if row is None:
                old = 0
                time = timestamp
            else:
                old, stored = row
                time = timestamp if timestamp > stored else stored
            new = old + 1
            put_row(key, start, new, time)
        except Exception as error:
            fail(error, key, value, timestamp, headers)
            return False
        if emit is not None:
            emit(in_window(key, start, end), new, old, time, headers, True)
        return True

    return add


def _tumbling(
    windows: TimeWindows,
    add: AddToWindow[K, V],
    context: OperatorContext,
    late: Forward | None,
    emit_closed: EmitClosed | None,
    idle: IdleTime | None,
) -> Process:
    """One window a record."""
    size, grace, last = windows.size_ms, windows.grace_period_ms, windows.last_timestamp
    drop, fail = context.drop, context.fail
    observed, close = -1, -1 - grace

    def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
        nonlocal observed, close
        if key is None:
            drop(NULL_KEY_TO_AGGREGATE)
            return
        if timestamp > observed:
            observed = timestamp
            close = timestamp - grace
        if timestamp > last:
            fail(ends_too_late(timestamp), key, value, timestamp, headers)
            return
        start = timestamp - timestamp % size
        end = start + size
        if end > close:
            if not add(key, value, timestamp, headers, start, end):
                return
        else:
            drop(LATE_FOR_WINDOWS)
            if late is not None:
                late(key, value, timestamp, headers)
        if emit_closed is not None:
            emit_closed(close, key, value, timestamp, headers)

    def advance_to(time: int) -> None:
        nonlocal observed, close
        if time > observed:
            observed = time
            close = time - grace

    return process if idle is None else idle.follow(process, lambda: observed, advance_to)


def _hopping(
    windows: TimeWindows,
    add: AddToWindow[K, V],
    context: OperatorContext,
    late: Forward | None,
    emit_closed: EmitClosed | None,
    idle: IdleTime | None,
) -> Process:
    """Several windows a record; each that is closed already counts as a dropped record."""
    size, advance, grace = windows.size_ms, windows.advance_ms, windows.grace_period_ms
    before, last = advance - size, windows.last_timestamp
    drop, fail = context.drop, context.fail
    observed, close = -1, -1 - grace

    def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
        nonlocal observed, close
        if key is None:
            drop(NULL_KEY_TO_AGGREGATE)
            return
        if timestamp > observed:
            observed = timestamp
            close = timestamp - grace
        if timestamp > last:
            fail(ends_too_late(timestamp), key, value, timestamp, headers)
            return
        first = timestamp + before
        first = first - first % advance if first > 0 else 0
        taken = False
        for start in range(first, timestamp + 1, advance):
            end = start + size
            if end > close:
                if not add(key, value, timestamp, headers, start, end):
                    return
                taken = True
            else:
                drop(LATE_FOR_WINDOWS)
        if late is not None and not taken:
            late(key, value, timestamp, headers)
        if emit_closed is not None:
            emit_closed(close, key, value, timestamp, headers)

    def advance_to(time: int) -> None:
        nonlocal observed, close
        if time > observed:
            observed = time
            close = time - grace

    return process if idle is None else idle.follow(process, lambda: observed, advance_to)


def _in_any_windows(
    windows: Windows[Window],
    add: AddToWindow[K, V],
    context: OperatorContext,
    late: Forward | None,
    emit_closed: EmitClosed | None,
    idle: IdleTime | None,
) -> Process:
    """Windows that say themselves which they are; a record may fall into none, and is then passed over."""
    size = windows.size_ms
    windows_for, grace, drop, fail = windows.windows_for, windows.grace_period_ms, context.drop, context.fail
    observed = -1

    def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
        nonlocal observed
        if key is None:
            drop(NULL_KEY_TO_AGGREGATE)
            return
        if timestamp > observed:
            observed = timestamp
        close = observed - grace
        try:
            matched = windows_for(timestamp)
        except Exception as error:
            fail(error, key, value, timestamp, headers)
            return
        taken = not matched
        for start, window in matched.items():
            if emit_closed is not None and window.end - start != size:
                fail(_of_another_size(window, size), key, value, timestamp, headers)
                return
            if window.end > close:
                if not add(key, value, timestamp, headers, start, window.end):
                    return
                taken = True
            else:
                drop(LATE_FOR_WINDOWS)
        if late is not None and not taken:
            late(key, value, timestamp, headers)
        if emit_closed is not None:
            emit_closed(close, key, value, timestamp, headers)

    def advance_to(time: int) -> None:
        nonlocal observed
        observed = max(observed, time)

    return process if idle is None else idle.follow(process, lambda: observed, advance_to)


def _of_another_size(window: Window, size: int) -> ValueError:
    return ValueError(
        f"{window!r} is not of the {size} ms that size_ms of its windows says; windows that are emitted on close are "
        "found in the store by their start and that size, so windows_for must give windows of just this size"
    )


def _closed(size: int, advance: int) -> Closed:
    """Which windows to emit, by their starts: those that end by the close time and did not by the one before."""

    def first_and_last(timestamp: int) -> tuple[int, int]:
        return max(0, timestamp - size + advance) // advance, timestamp // advance

    def closed(last: int | None, close_time: int) -> tuple[int, int] | None:
        upper = close_time - size
        if upper < 0:
            return None
        if last is None:
            return 0, upper
        before = max(0, last - size)
        return None if first_and_last(upper) == first_and_last(before) else (before + 1, upper)

    return closed
