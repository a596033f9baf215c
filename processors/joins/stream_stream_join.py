"""Join of two streams inside a window of time: each record is joined with those of the other side that came before it.

``KeepForJoin`` writes the records of one side to that side's window store, which keeps several records of a key and
time apart; ``StreamStreamJoin`` reads the store of the other side. In left and outer joins a record without a partner
waits in a store that both sides share, ordered by time, until its window is closed (KAFKA-10847). Records of either
side look for windows that have closed, at most once in an interval of wall-clock time.

Invariant: a record that waits has had no result yet. Only a record behind the others, whose window lies before the
newest record of both sides, does not wait for a partner that is later still: it is joined with ``None`` at once.

Source: ``KStreamJoinWindow``, ``KStreamKStreamJoin`` and its two sides, ``KStreamKStreamSelfJoin``, 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from pykstreams.core.processor import OperatorContext
from pykstreams.core.settings.keys import EMIT_INTERVAL_OF_JOINS
from pykstreams.core.types import END_OF_TIME, Headers
from pykstreams.processors.emit_on_close import emit_interval_ms
from pykstreams.processors.idle_time import idle_time
from pykstreams.processors.process import Process
from pykstreams.processors.stores import join_window_rows, store_of_class
from pykstreams.state.buffers.waiting import WaitingRecords
from pykstreams.state.interfaces.operator_stores import JoinWindowRows

Joiner: TypeAlias = Callable[[object, object, object], object]
"""(key, value of this side, value of the other side) -> the result."""

Row: TypeAlias = tuple[int, object, int]
"""(time, value, timestamp)"""

ReadRows: TypeAlias = Callable[[object, int, int], Iterable[Row]]
"""(key, first time, last time) -> the rows of the key, both times included"""

_NULL = "the key or the value of a record to join is null"


@dataclass(frozen=True, slots=True)
class KeepForJoin:
    """Forwards each record to the join, then keeps it for later records of the other side; not those without key."""

    store: str
    forwards_input: ClassVar = True

    def build(self, context: OperatorContext) -> Process:
        store: JoinWindowRows[object, object] = join_window_rows(context, self.store)
        put_row = store.put_row
        forward, fail = context.forward, context.fail

        def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
            forward(key, value, timestamp, headers)
            if key is None:
                return
            try:
                put_row(key, timestamp, value, timestamp, headers)
            except Exception as error:
                fail(error, key, value, timestamp, headers)

        return process


@dataclass(frozen=True, slots=True)
class StreamStreamJoin:
    """One side of the join: gives the joiner's result for each record of the other side inside the window.

    A result has the headers of the record that brought it about and the larger of both timestamps. Records without
    value are dropped, and so are those without key, unless this side is ``outer``: they are joined with ``None`` at
    once.

    :param other_store: keeps the records of the other side.
    :param waiting_store: keeps what waits for a partner, in left and outer joins, for both sides.
    :param left: whether this is the left side.
    :param outer: whether records of this side have a result without a partner.
    :param before_ms, after_ms: how much earlier and later than a record of the left side one of the right side may be.
    :param with_key: the joiner gets (key, left, right) instead of (left, right).
    :param idle_ms: after so long without input windows close by the wall clock; the left side sees to it.
    """

    other_store: str
    waiting_store: str | None
    joiner: Callable[..., object]
    left: bool
    outer: bool
    before_ms: int
    after_ms: int
    grace_ms: int
    with_key: bool = False
    idle_ms: int | None = None

    @property
    def takes_back(self) -> bool:
        """Changelogs stay behind where records wait: none is forgotten before its result was delivered."""
        return self.waiting_store is not None

    def build(self, context: OperatorContext) -> Process:
        if self.waiting_store is None:
            return self._inner(context)
        return self._with_waiting(context, store_of_class(WaitingRecords, context, self.waiting_store))

    def _bounds(self) -> tuple[int, int]:
        """How far the other side's records may lie before and after a record of this side."""
        return (self.before_ms, self.after_ms) if self.left else (self.after_ms, self.before_ms)

    def _inner(self, context: OperatorContext) -> Process:
        store: JoinWindowRows[object, object] = join_window_rows(context, self.other_store)
        near = _near(store.rows, *self._bounds())
        join = _this_side_first(self.joiner, self.with_key, self.left)
        forward = context.current.following(context.forward)
        fail, drop = context.fail, context.drop

        def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                drop(_NULL)
                return
            try:
                for time, other, _ in near(key, timestamp):
                    result = join(key, value, other)
                    forward(key, result, timestamp if timestamp > time else time, headers)
            except Exception as error:
                fail(error, key, value, timestamp, headers)

        return process

    def _with_waiting(self, context: OperatorContext, waiting: WaitingRecords) -> Process:
        before, after = self._bounds()
        store: JoinWindowRows[object, object] = join_window_rows(context, self.other_store)
        near = _near(store.rows, before, after)
        left, outer = self.left, self.outer
        join = _this_side_first(self.joiner, self.with_key, left)
        progress = waiting.progress
        add, discard = waiting.add, waiting.discard
        emit_closed = self._closed_windows(context, waiting, join)
        forward = context.current.following(context.forward)
        fail, drop = context.fail, context.drop

        def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
            if timestamp > progress.stream_time:
                progress.stream_time = timestamp
            try:
                if value is None or (key is None and not outer):
                    drop(_NULL)
                    return
                if key is None:
                    forward(key, join(key, value, None), timestamp, headers)
                    return
                if timestamp == progress.stream_time:
                    emit_closed(headers)
                alone = outer
                for time, other, _ in near(key, timestamp):
                    alone = False
                    discard(key, time, not left)
                    result = join(key, value, other)
                    forward(key, result, timestamp if timestamp > time else time, headers)
                if not alone:
                    return
                if max(0, timestamp + after) < progress.stream_time:
                    forward(key, join(key, value, None), timestamp, headers)
                    return
                progress.note(timestamp)
                add(key, timestamp, left, value)
            except Exception as error:
                fail(error, key, value, timestamp, headers)

        return self._with_idle_time(context, waiting, process, emit_closed)

    def _with_idle_time(
        self,
        context: OperatorContext,
        waiting: WaitingRecords,
        process: Process,
        emit_closed: Callable[[Headers], None],
    ) -> Process:
        """Lets the time of both sides go on while there is no input, where that is wanted."""
        progress, fail = waiting.progress, context.fail
        open_ms = max(self.before_ms, self.after_ms, 0) + max(self.grace_ms, 0) + 1

        def emit(time: int) -> None:
            progress.next_look = 0  # this look is not one of a record
            progress.earliest = 0  # what is known of it may be later than what waits
            try:
                emit_closed(())
            except Exception as error:
                fail(error, None, None, time, ())

        def advance_to(time: int) -> None:
            progress.stream_time = max(progress.stream_time, time)

        idle = idle_time(
            context, self.idle_ms, lambda time: time + open_ms, emit, looks=self.left, shared=self.waiting_store
        )
        return process if idle is None else idle.follow(process, lambda: progress.stream_time, advance_to)

    def _closed_windows(
        self, context: OperatorContext, waiting: WaitingRecords, join: Joiner
    ) -> Callable[[Headers], None]:
        """Makes what gives the results of records whose window has closed without a partner."""
        left, grace = self.left, self.grace_ms
        progress = waiting.progress
        look_ahead = self._bounds()[1] + grace
        closes_after = {True: self.after_ms + grace, False: self.before_ms + grace}
        interval = emit_interval_ms(context, EMIT_INTERVAL_OF_JOINS)
        now_ms = context.processing.current_system_time_ms
        scan, remove = waiting.scan, waiting.remove
        forward = context.current.following(context.forward)

        def emit_closed(headers: Headers) -> None:
            stream_time = progress.stream_time
            if not progress.may_have_closed(look_ahead):
                return
            now = now_ms()
            if now < progress.next_look <= now + interval:  # later still: the clock was set back
                return
            progress.next_look = now + interval
            progress.earliest = None
            last: bytes | None = None
            open_sides: set[bool] = set()
            for raw, time, of_left, key, value in scan():
                progress.earliest = time
                if len(open_sides) == 2:
                    break
                if time + closes_after[of_left] >= stream_time:
                    open_sides.add(of_left)
                    continue
                result = join(key, value, None) if of_left == left else join(key, None, value)
                forward(key, result, time, headers)
                # only when all records of a key and time are out: removing takes all of them
                if last is not None and last != raw:
                    remove(last)
                last = raw
            if last is not None:
                remove(last)

        return emit_closed


@dataclass(frozen=True, slots=True)
class StreamSelfJoin:
    """Joins a stream with itself over one store; results and their order are those of an inner join.

    A record older than ``retention_ms`` is not joined with itself (``KStreamKStreamSelfJoin``, 4.3.1).
    """

    store: str
    joiner: Callable[..., object]
    before_ms: int
    after_ms: int
    retention_ms: int
    with_key: bool = False

    def build(self, context: OperatorContext) -> Process:
        store: JoinWindowRows[object, object] = join_window_rows(context, self.store)
        rows = store.rows
        join = _this_side_first(self.joiner, self.with_key, True)
        retention = self.retention_ms
        near_as_left, near_as_right = (
            _near(rows, self.before_ms, self.after_ms),
            _near(rows, self.after_ms, self.before_ms),
        )
        forward = context.current.following(context.forward)
        fail, drop = context.fail, context.drop
        stream_time = -1

        def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
            nonlocal stream_time
            if key is None or value is None:
                drop(_NULL)
                return
            try:
                with_itself = join(key, value, value)
                stream_time = max(stream_time, timestamp)
                itself_is_due = timestamp > stream_time - retention + 1
                for time, other, _ in near_as_left(key, timestamp):
                    forward(key, join(key, value, other), max(timestamp, time), headers)
                for time, other, _ in near_as_right(key, timestamp):
                    if time > timestamp and itself_is_due:
                        itself_is_due = False
                        forward(key, with_itself, timestamp, headers)
                    forward(key, join(key, other, value), max(timestamp, time), headers)
                if itself_is_due:
                    forward(key, with_itself, timestamp, headers)
            except Exception as error:
                fail(error, key, value, timestamp, headers)

        return process


def _near(rows: ReadRows, before: int, after: int) -> Callable[[object, int], Iterable[Row]]:
    """Makes the reader of the records that a record may be joined with, as far as there are timestamps."""

    def near(key: object, timestamp: int) -> Iterable[Row]:
        first = max(0, timestamp - before)
        return () if first > END_OF_TIME else rows(key, first, min(max(0, timestamp + after), END_OF_TIME))

    return near


def _this_side_first(joiner: Callable[..., object], with_key: bool, left: bool) -> Joiner:
    """The user's joiner, called with the key, this side's value and the other side's."""
    if with_key:
        return joiner if left else lambda key, this, other: joiner(key, other, this)
    if left:
        return lambda key, this, other: joiner(this, other)
    return lambda key, this, other: joiner(other, this)
