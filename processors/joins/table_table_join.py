"""Joins of two tables: each side's changes are joined with the other side's row, and a merger puts both together.

The side whose change comes reads the other table through its view, so the result of a change does not depend on which
of the two tables has a store. A side is ``optional`` where the join goes on without its row: none in an inner join, the
right one in a left join, both in an outer join (``KTableKTableInnerJoin``, ``KTableKTableLeftJoin``,
``KTableKTableRightJoin``, ``KTableKTableOuterJoin``, 4.3.1).

Invariant: the result of a key is the joiner's of both rows as they are now, with the larger of their timestamps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Change, Headers, ValueJoiner
from pykstreams.processors.drop_reasons import NULL_KEY_OF_ROW_TO_JOIN, OUT_OF_ORDER
from pykstreams.processors.process import Process
from pykstreams.processors.stores import table_rows
from pykstreams.processors.tables.table_forwarding import forwarder
from pykstreams.processors.tables.table_view import ReadRow, TableView
from pykstreams.state.interfaces.operator_stores import TableRows

K = TypeVar("K")
V1 = TypeVar("V1")
V2 = TypeVar("V2")
VR = TypeVar("VR")


@dataclass(frozen=True, slots=True)
class TableTableJoin(Generic[K, V1, V2, VR]):
    """Joins the changes of one side with the row of the other by ``joiner(this side's value, other side's value)``.

    ``None`` stands for a missing row of an optional side. A change is dropped without key, and so is one of a
    ``versioned`` table that is older than the newest one of its row. A change goes unnoticed where it has nothing to
    join with: the other side has no row and is not optional, or this side had and has none, either.
    """

    other: TableView[K, V2]
    joiner: ValueJoiner[V1 | None, V2 | None, VR | None]
    this_is_optional: bool
    other_is_optional: bool
    send_old_values: bool = False
    versioned: bool = False

    def build(self, context: OperatorContext) -> Process:
        read_other, joiner = self.other.build(context), self.joiner
        this_is_optional, other_is_optional = self.this_is_optional, self.other_is_optional
        send_old_values, versioned = self.send_old_values, self.versioned
        forward, fail, drop = context.current.following(context.forward), context.fail, context.drop

        def process(key: K, change: Change[V1], timestamp: int, headers: Headers) -> None:
            if key is None:
                drop(NULL_KEY_OF_ROW_TO_JOIN)
                return
            new, old, newest = change
            if versioned and not newest:
                drop(OUT_OF_ORDER)
                return
            joined = joined_old = None
            try:
                row = read_other(key)
                if row is None:
                    if not other_is_optional or (new is None and old is None):
                        return
                    other, time = None, timestamp
                    joins_nothing = False
                else:
                    other, other_time = row
                    time = timestamp if timestamp > other_time else other_time
                    joins_nothing = this_is_optional
                if new is not None or joins_nothing:
                    joined = joiner(new, other)
                if send_old_values and (old is not None or joins_nothing):
                    joined_old = joiner(old, other)
            except Exception as error:
                fail(error, key, change, timestamp, headers)
                return
            forward(key, (joined, joined_old, newest), time, headers)

        return process


@dataclass(frozen=True, slots=True)
class TableTableJoinMerger:
    """Forwards what both sides of a join give, and keeps it if the joined table has a store
    (``KTableKTableJoinMergeProcessor.process``, 4.3.1).
    """

    store: str | None = None
    send_old_values: bool = False

    @property
    def forwards_input(self) -> bool:
        return self.store is None and self.send_old_values

    def build(self, context: OperatorContext) -> Process:
        if self.store is None:
            return context.forward
        store: TableRows[object, object] = table_rows(context, self.store)
        put_row, emit, fail = store.put_row, forwarder(store, context, self.send_old_values), context.fail

        def process(key: object, change: Change[object], timestamp: int, headers: Headers) -> None:
            new, old, _ = change
            try:
                newest = put_row(key, new, timestamp)
            except Exception as error:
                fail(error, key, change, timestamp, headers)
                return
            if emit is not None:
                emit(key, new, old, timestamp, headers, newest)

        return process


@dataclass(frozen=True, slots=True)
class JoinedView(Generic[K, V1, V2, VR]):
    """A joined table without a store: each read joins the rows of both sides
    (``KTableKTableAbstractJoinValueGetterSupplier``, 4.3.1).
    """

    left: TableView[K, V1]
    right: TableView[K, V2]
    joiner: ValueJoiner[V1 | None, V2 | None, VR | None]
    left_is_optional: bool
    right_is_optional: bool

    @property
    def stores(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.left.stores, *self.right.stores)))

    def as_forwarded(self) -> JoinedView[K, V1, V2, VR]:
        return replace(self, left=self.left.as_forwarded(), right=self.right.as_forwarded())

    def build(self, context: OperatorContext) -> ReadRow[K, VR]:
        read_left, read_right = self.left.build(context), self.right.build(context)
        joiner = self.joiner
        left_is_optional, right_is_optional = self.left_is_optional, self.right_is_optional

        def read(key: K) -> tuple[VR, int] | None:
            left = read_left(key)
            if left is None and not left_is_optional:
                return None
            right = read_right(key)
            if right is None:
                if left is None or not right_is_optional:
                    return None
                value, time = joiner(left[0], None), left[1]
            elif left is None:
                value, time = joiner(None, right[0]), right[1]
            else:
                value, time = joiner(left[0], right[0]), max(left[1], right[1])
            return None if value is None else (value, time)

        return read
