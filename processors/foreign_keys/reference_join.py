"""Joins of repartitioned rows with the rows that they refer to.

Two operators in one task give the changes of the result: ``JoinRepartitioned`` looks up the row that a repartitioned
one refers to, ``JoinReferred`` scans the repartitioned rows that refer to a changed one. Behind them a merger puts both
together.

Invariant: a result row is the joiner's of the two rows as both have been forwarded, with the larger of their
timestamps. The referred row is therefore read as its table last forwarded it, without what a cache still holds back:
the change that the cache forwards later brings the results that belong to it, with old values that were really sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from pykstreams.core.errors import SerdeError
from pykstreams.core.processor import OperatorContext
from pykstreams.core.shown_values import shown
from pykstreams.core.types import Change, Headers, ValueJoiner
from pykstreams.processors.drop_reasons import NULL_KEY_OF_ROW_TO_JOIN, OUT_OF_ORDER
from pykstreams.processors.foreign_keys.referred_row_check import ReferredRowCheck
from pykstreams.processors.foreign_keys.repartitioned_rows import MakeKey, OfKey, RepartitionedKeys
from pykstreams.processors.process import Process
from pykstreams.processors.stores import key_value_rows
from pykstreams.processors.tables.table_view import ReadRow, TableView
from pykstreams.state.interfaces.operator_stores import KeyValueRows

V = TypeVar("V")
VO = TypeVar("VO")

_Joined: TypeAlias = tuple[object, object, object]
"""The key of a result, its value and its old value."""


@dataclass(frozen=True, slots=True)
class ReferenceJoin(Generic[V, VO]):
    """The two sides of a join: the repartitioned rows of a store with those of the referred table.

    :param joiner: ``joiner(referred value, left value)``; ``None`` from it is no row.
    :param keeps_unmatched: whether a row that refers to a missing one is joined with ``None``.
    :param keeps_unreferred: whether a row that nobody refers to is joined with ``None``, under ``make(its key, None)``.
        Such a result goes before the first row that refers to it is joined, and comes back after the last has gone.
    """

    store: str
    referred: TableView[object, VO]
    joiner: ValueJoiner[VO | None, V | None, object]
    keys: RepartitionedKeys
    keeps_unmatched: bool = False
    keeps_unreferred: bool = False

    @property
    def stores(self) -> tuple[str, ...]:
        """All that is read: the repartitioned rows and the referred table."""
        return (self.store, *self.referred.stores)

    def read_referred(self, context: OperatorContext) -> ReadRow[object, VO]:
        """Makes the reader of referred rows as their table forwarded them last; to what is null nothing refers."""
        read = self.referred.as_forwarded().build(context)
        return lambda key: None if key is None else read(key)


@dataclass(frozen=True, slots=True)
class JoinRepartitioned(Generic[V, VO]):
    """Joins a changed repartitioned row with the row that it refers to."""

    join: ReferenceJoin[V, VO]
    send_old_values: bool = False

    def build(self, context: OperatorContext) -> Process:
        join, send_old_values = self.join, self.send_old_values
        read, joiner, keys, keeps_unmatched = join.read_referred(context), join.joiner, join.keys, join.keeps_unmatched
        foreign_key, result = keys.foreign_key, keys.result or _same
        current = context.current
        forward, fail = current.following(context.forward), context.fail
        unreferred = _Unreferred.of(join, context) if join.keeps_unreferred else None
        replay = self._replay(context, read, unreferred)

        def process(key: object, change: Change[V], timestamp: int, headers: Headers) -> None:
            if current.replayed:
                replay(key, change, timestamp, headers)
                return
            new, old, newest = change
            joined = joined_old = lone = None
            first = last = False
            try:
                referred = foreign_key(key)
                row = read(referred)
                if row is None:
                    if not keeps_unmatched:
                        return
                    other, time = None, timestamp
                else:
                    other, other_time = row
                    time = timestamp if timestamp > other_time else other_time
                    if unreferred is not None and (new is None or old is None):
                        alone = unreferred.would_be(referred, key)
                        first, last = alone and old is None, alone and new is None
                if new is not None:
                    joined = joiner(other, new)
                if send_old_values and old is not None:
                    joined_old = joiner(other, old)
                result_key = result(key)
                if unreferred is not None and (first or last):
                    lone = unreferred.joined(referred, other)
            except Exception as error:
                fail(error, key, change, timestamp, headers)
                return
            if first and lone is not None:
                forward(lone[0], (None, lone[1] if send_old_values else None, True), time, headers)
            forward(result_key, (joined, joined_old, newest), time, headers)
            if last and lone is not None:
                forward(lone[0], (lone[1], None, True), time, headers)

        return process

    def _replay(
        self, context: OperatorContext, read: ReadRow[object, VO], unreferred: _Unreferred[V, VO] | None
    ) -> Process:
        """Makes the callable for a row that may have been processed before."""
        keys, joiner, send_old_values = self.join.keys, self.join.joiner, self.send_old_values
        keeps_unmatched = self.join.keeps_unmatched
        foreign_key, result = keys.foreign_key, keys.result or _same
        forward, fail = context.current.following(context.forward), context.fail

        def replay(key: object, change: Change[V], timestamp: int, headers: Headers) -> None:
            """Forwards the result as it is now, and that of the referred row: what was sent before may be anything."""
            new, old, newest = change
            joined = joined_old = lone = None
            try:
                referred = foreign_key(key)
                row = read(referred)
                other, other_time = (None, timestamp) if row is None else row
                if row is not None or keeps_unmatched:
                    joined = None if new is None else joiner(other, new)
                    joined_old = joiner(other, old) if send_old_values and old is not None else None
                result_key = result(key)
                if unreferred is not None and referred is not None:
                    lone = unreferred.now(referred, row)
            except Exception as error:
                fail(error, key, change, timestamp, headers)
                return
            time = timestamp if timestamp > other_time else other_time
            forward(result_key, (joined, joined_old, newest), time, headers)
            if lone is not None:
                forward(lone[0], (lone[1], None, True), time, headers)

        return replay


@dataclass(frozen=True, slots=True)
class JoinReferred(Generic[V, VO]):
    """Joins a changed row with all repartitioned rows that refer to it.

    Where one of them cannot be read or joined, and the processing exception handler goes on, the others are joined
    nevertheless. A replayed change from nothing to nothing is one, too: it may have been a deletion that was stored and
    not sent.
    """

    join: ReferenceJoin[V, VO]
    send_old_values: bool = False
    check: ReferredRowCheck | None = None

    def build(self, context: OperatorContext) -> Process:
        join, send_old_values = self.join, self.send_old_values
        look = None if self.check is None else self.check.build(context)
        keeps_unreferred = join.keeps_unreferred
        store: KeyValueRows[object, V] = key_value_rows(context, join.store)
        scan = store.rows_by_prefix(join.keys.prefix_serializer)
        join_row, unreferred = _row_joiner(join, send_old_values), _lone_row_joiner(join, send_old_values)
        current = context.current
        forward, fail, drop = current.following(context.forward), context.fail, context.drop

        def process(key: object, change: Change[VO], timestamp: int, headers: Headers) -> None:
            nonlocal look
            if key is None:
                drop(NULL_KEY_OF_ROW_TO_JOIN)
                return
            new, old, newest = change
            if not newest:
                drop(OUT_OF_ORDER)
                return
            if new is None and old is None and not current.replayed:
                return
            found = False
            try:
                if look is not None and not look(key):
                    look = None
                rows = scan(key)
            except Exception as error:
                fail(error, key, change, timestamp, headers)
                return
            while True:
                try:
                    row = next(rows, None)
                    if row is None:
                        break
                    found = True
                    result_key, joined, joined_old = join_row(key, new, old, row)
                except Exception as error:
                    found = True  # a row that cannot be read refers to it, too
                    fail(error, key, change, timestamp, headers)
                    continue
                time = row[2] if row[2] > timestamp else timestamp
                forward(result_key, (joined, joined_old, True), time, headers)
            if not keeps_unreferred or (found and not current.replayed):
                return
            try:
                result_key, joined, joined_old = unreferred(key, None if found else new, old)
            except Exception as error:
                fail(error, key, change, timestamp, headers)
                return
            forward(result_key, (joined, joined_old, True), timestamp, headers)

        return process


def _row_joiner(
    join: ReferenceJoin[V, VO], send_old_values: bool
) -> Callable[[object, VO | None, VO | None, tuple[object, V, int]], _Joined]:
    """Makes the function that joins a changed row with one that refers to it."""
    keys, joiner, keeps_unmatched = join.keys, join.joiner, join.keeps_unmatched
    foreign_key, result, checked = keys.foreign_key, keys.result or _same, keys.checked

    def join_row(key: object, new: VO | None, old: VO | None, row: tuple[object, V, int]) -> _Joined:
        repartitioned_key, value, _ = row
        if checked and foreign_key(repartitioned_key) != key:
            raise _found_too_much(key, repartitioned_key)
        joined = joined_old = None
        if new is not None or keeps_unmatched:
            joined = joiner(new, value)
        if send_old_values and (old is not None or keeps_unmatched):
            joined_old = joiner(old, value)
        return result(repartitioned_key), joined, joined_old

    return join_row


def _lone_row_joiner(
    join: ReferenceJoin[V, VO], send_old_values: bool
) -> Callable[[object, VO | None, VO | None], _Joined]:
    """Makes the function that joins a changed row that nobody refers to with nothing."""
    joiner, make, result = join.joiner, join.keys.make, join.keys.result or _same

    def unreferred(key: object, new: VO | None, old: VO | None) -> _Joined:
        joined = None if new is None else joiner(new, None)
        joined_old = joiner(old, None) if send_old_values and old is not None else None
        return result(make(key, None)), joined, joined_old

    return unreferred


@dataclass(frozen=True, slots=True)
class ReferenceJoinView(Generic[V, VO]):
    """A result without a store: each read looks up the repartitioned row by the full key, and the row it refers to."""

    join: ReferenceJoin[V, VO]

    @property
    def stores(self) -> tuple[str, ...]:
        return self.join.stores

    def as_forwarded(self) -> ReferenceJoinView[V, VO]:
        return self

    def build(self, context: OperatorContext) -> ReadRow[object, object]:
        join = self.join
        keys, joiner, keeps_unmatched = join.keys, join.joiner, join.keeps_unmatched
        repartitioned: Callable[[object], Any] = keys.repartitioned or _same  # to a CombinedKey where it is taken apart
        foreign_key = keys.foreign_key
        read = join.read_referred(context)
        keeps_unreferred = join.keeps_unreferred
        store: KeyValueRows[object, V] = key_value_rows(context, join.store)
        scan, get_repartitioned = store.rows_by_prefix(keys.prefix_serializer), store.get_row

        def read_result(key: object) -> tuple[object, int] | None:
            repartitioned_key = repartitioned(key)
            referred = foreign_key(repartitioned_key)
            if keeps_unreferred and repartitioned_key.suffix is None:
                row = read(referred)
                if row is None or next(iter(scan(referred)), None) is not None:
                    return None
                return _row(joiner(row[0], None), row[1])
            own = get_repartitioned(repartitioned_key)
            if own is None:
                return None
            row = read(referred)
            if row is None:
                return _row(joiner(None, own[0]), own[1]) if keeps_unmatched else None
            return _row(joiner(row[0], own[0]), max(row[1], own[1]))

        return read_result


@dataclass(frozen=True, slots=True)
class _Unreferred(Generic[V, VO]):
    """The result of a row that nobody refers to, as ``JoinRepartitioned`` takes it back and brings it back."""

    scan: Callable[[object], Iterator[tuple[object, V, int]]]
    make: MakeKey
    result: OfKey
    joiner: ValueJoiner[VO | None, V | None, object]

    @classmethod
    def of(cls, join: ReferenceJoin[V, VO], context: OperatorContext) -> _Unreferred[V, VO]:
        keys = join.keys
        store: KeyValueRows[object, V] = key_value_rows(context, join.store)
        scan = store.rows_by_prefix(keys.prefix_serializer)
        return cls(scan, keys.make, keys.result or _same, join.joiner)

    def would_be(self, referred: object, key: object) -> bool:
        """Whether no row but the one of this key refers to it."""
        return all(row[0] == key for row in self.scan(referred))

    def joined(self, referred: object, value: VO | None) -> tuple[object, object]:
        """Key and value of the result."""
        return self.result(self.make(referred, None)), self.joiner(value, None)

    def now(self, referred: object, row: tuple[VO, int] | None) -> tuple[object, object]:
        """Key of the result, and its value as it is to be now; ``None`` where there is none."""
        key = self.result(self.make(referred, None))
        if row is None or next(iter(self.scan(referred)), None) is not None:
            return key, None
        return key, self.joiner(row[0], None)


def _same(key: object) -> object:
    return key


def _row(value: object, time: int) -> tuple[object, int] | None:
    return None if value is None else (value, time)


def _found_too_much(foreign_key: object, key: object) -> SerdeError:
    return SerdeError(
        f"the bytes of the partial key {shown(foreign_key)} are also what the key {shown(key)} starts with, which has "
        "another partial key; bytes of a partial key must end where no longer one can go on, behind its length or a "
        "delimiter; test the serde with pykstreams.testing.assert_prefix_serde"
    )
