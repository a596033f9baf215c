"""A table made from records, and filter, map_values and to_stream of a table.

Below a table the value is a change ``(new, old, is the newest version of its key)``. ``send_old_values`` says
whether the old value is filled in; the DSL decides it, and sees to it that the parent sends old values where
an operator without a store needs them. ``store`` is the name of the store that keeps the table, ``None``
where none does: then the old value is computed from the parent's, else it is read from the store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Change, Headers, Predicate
from pykstreams.processors.drop_reasons import NULL_TABLE_KEY
from pykstreams.processors.process import Process
from pykstreams.processors.stores import table_rows
from pykstreams.processors.tables.table_forwarding import forwarder
from pykstreams.processors.tables.table_view import Compute, ComputedView, TableView
from pykstreams.processors.user_functions import UNAWAITED, not_a_decision
from pykstreams.state.interfaces.operator_stores import TableRows
from pykstreams.state.interfaces.versioned_store import VersionedKeyValueStore

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TableSource:
    """Reads records as a table: the last record of a key in *offset* order is its value, ``None`` deletes.

    A record without key is dropped. One that is older than the stored one still takes its place, unless the
    store is versioned, with a warning where the stored one is known, that is where old values are sent:
    reading the store for the warning alone would cost each record more than all the rest
    (``KTableSourceProcessor.process``, 4.3.1, reads it always, and warns of versioned tables, too).
    """

    store: str | None = None
    send_old_values: bool = False

    def build(self, context: OperatorContext) -> Process:
        if self.store is None:
            return _unstored_source(context)
        if self.send_old_values:
            return _source_with_old_values(self.store, context)
        return _source(self.store, context)


@dataclass(frozen=True, slots=True)
class TableFilter(Generic[K, V]):
    """Keeps the rows for which the predicate holds (``negate``: does not hold); other rows become deletions.

    Null values are not shown to the predicate. Where old values are known, a change from nothing to nothing
    is not forwarded: this is why the DSL sets ``send_old_values`` also for a parent that sends them anyway.
    Where the parent is ``versioned`` it is forwarded, since it may be older than the newest change of its row
    (``KTableFilterProcessor.process``, 4.3.1).
    """

    predicate: Predicate[K, V]
    negate: bool = False
    store: str | None = None
    send_old_values: bool = False
    versioned: bool = False

    def build(self, context: OperatorContext) -> Process:
        compute, skip_nothing = self._compute(), not self.versioned
        return _derived_table(compute, self.store, self.send_old_values, context, skip_nothing=skip_nothing)

    def view(self, parent: TableView[K, V]) -> TableView[K, V]:
        """The filtered table as it is read where it has no store."""
        return ComputedView(parent, self._compute())

    def _compute(self) -> Compute[K, V, V]:
        predicate, negate = self.predicate, self.negate

        def compute(key: K, value: V | None) -> V | None:
            if value is None:
                return None
            kept = predicate(key, value)
            if kept is not True and type(kept) in UNAWAITED:
                raise not_a_decision(predicate, kept)
            return value if bool(kept) is not negate else None

        return compute


@dataclass(frozen=True, slots=True)
class TableMapValues(Generic[K, V, VR]):
    """Maps the value of each row by ``mapper(value)``, or ``mapper(key, value)`` with ``with_key``.

    Null values are not shown to the mapper. Every change is forwarded, also one from nothing to nothing
    (``KTableMapValuesProcessor.process``, 4.3.1).
    """

    mapper: Callable[..., VR | None]
    with_key: bool = False
    store: str | None = None
    send_old_values: bool = False

    def build(self, context: OperatorContext) -> Process:
        return _derived_table(self._compute(), self.store, self.send_old_values, context, skip_nothing=False)

    def view(self, parent: TableView[K, V]) -> TableView[K, VR]:
        """The mapped table as it is read where it has no store."""
        return ComputedView(parent, self._compute())

    def _compute(self) -> Compute[K, V, VR]:
        mapper = self.mapper

        def by_value(key: K, value: V | None) -> VR | None:
            return None if value is None else mapper(value)

        def by_key_and_value(key: K, value: V | None) -> VR | None:
            return None if value is None else mapper(key, value)

        return by_key_and_value if self.with_key else by_value


@dataclass(frozen=True, slots=True)
class TableToStream:
    """Turns changes into records with the new value (``KTableImpl.toStream``, 4.3.1)."""

    forwards_new_values: ClassVar[bool] = True

    def build(self, context: OperatorContext) -> Process:
        forward = context.forward

        def process(key: object, change: Change[object], timestamp: int, headers: Headers) -> None:
            forward(key, change[0], timestamp, headers)

        return process


def _unstored_source(context: OperatorContext) -> Process:
    forward, drop = context.forward, context.drop

    def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
        if key is None:
            drop(NULL_TABLE_KEY)
            return
        forward(key, (value, None, True), timestamp, headers)

    return process


def _source(name: str, context: OperatorContext) -> Process:
    store: TableRows[object, object] = table_rows(context, name)
    put_row, emit = store.put_row, forwarder(store, context, False)
    before_put = store.before_put()
    fail, drop = context.fail, context.drop

    def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
        if key is None:
            drop(NULL_TABLE_KEY)
            return
        try:
            if before_put is not None:
                before_put(key)
            newest = put_row(key, value, timestamp)
        except Exception as error:
            fail(error, key, value, timestamp, headers)
            return
        if emit is not None:
            emit(key, value, None, timestamp, headers, newest)

    return process


def _source_with_old_values(name: str, context: OperatorContext) -> Process:
    store: TableRows[object, object] = table_rows(context, name)
    get_row, put_row, emit = store.get_row, store.put_row, forwarder(store, context, True)
    fail, drop = context.fail, context.drop
    versioned = isinstance(store, VersionedKeyValueStore)

    def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
        if key is None:
            drop(NULL_TABLE_KEY)
            return
        try:
            row = get_row(key)
            if row is None:
                old = None
            else:
                old, stored = row
                if timestamp < stored and not versioned:
                    _warn_out_of_order(name, context, timestamp, stored)
            newest = put_row(key, value, timestamp)
        except Exception as error:
            fail(error, key, value, timestamp, headers)
            return
        if emit is not None:
            emit(key, value, old, timestamp, headers, newest)

    return process


def _warn_out_of_order(store: str, context: OperatorContext, timestamp: int, stored: int) -> None:
    log.warning(
        "%s: table store %r takes a record of %d ms over one of %d ms (%s); "
        "let the records of a key be written in the order of their timestamps",
        context.node,
        store,
        timestamp,
        stored,
        context.processing.record_metadata,
    )


def _derived_table(
    compute: Compute[K, V, VR],
    store_name: str | None,
    send_old_values: bool,
    context: OperatorContext,
    *,
    skip_nothing: bool,
) -> Process:
    """A table whose rows are computed one by one from the rows of its parent."""
    if store_name is not None:
        return _stored(compute, store_name, send_old_values, context, skip_nothing)
    forward, fail, current = context.forward, context.fail, context.current

    def new_only(key: K, change: Change[V], timestamp: int, headers: Headers) -> None:
        try:
            new = compute(key, change[0])
        except Exception as error:
            fail(error, key, change, timestamp, headers)
            return
        forward(key, (new, None, change[2]), timestamp, headers)

    def new_and_old(key: K, change: Change[V], timestamp: int, headers: Headers) -> None:
        try:
            new_value, old_value, newest = change
            new = compute(key, new_value)
            old = compute(key, old_value)
        except Exception as error:
            fail(error, key, change, timestamp, headers)
            return
        if skip_nothing and new is None and old is None and not current.replayed:
            return
        forward(key, (new, old, newest), timestamp, headers)

    return new_and_old if send_old_values else new_only


def _stored(
    compute: Compute[K, V, VR],
    name: str,
    send_old_values: bool,
    context: OperatorContext,
    skip_nothing: bool,
) -> Process:
    store: TableRows[K, VR] = table_rows(context, name)
    get_row, put_row, emit = store.get_row, store.put_row, forwarder(store, context, send_old_values)
    fail, current = context.fail, context.current

    def new_only(key: K, change: Change[V], timestamp: int, headers: Headers) -> None:
        try:
            new = compute(key, change[0])
            newest = put_row(key, new, timestamp)
        except Exception as error:
            fail(error, key, change, timestamp, headers)
            return
        if emit is not None:
            emit(key, new, None, timestamp, headers, newest)

    def new_and_old(key: K, change: Change[V], timestamp: int, headers: Headers) -> None:
        try:
            new = compute(key, change[0])
            row = get_row(key)
            old = None if row is None else row[0]
            if skip_nothing and new is None and old is None and not current.replayed:
                return
            newest = put_row(key, new, timestamp)
        except Exception as error:
            fail(error, key, change, timestamp, headers)
            return
        if emit is not None:
            emit(key, new, old, timestamp, headers, newest)

    return new_and_old if send_old_values else new_only
