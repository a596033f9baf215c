"""Re-keying of a table for a group, and aggregate and reduce of a grouped table.

A row that changes leaves the group it was in and joins the one it is in now: the old value is subtracted,
then the new one is added. Both may travel in one change where the group's key stays the same, else as two
changes, the one with the old value first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from pykstreams.core.errors import StreamsError
from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Change, Headers, Initializer, KeyValueMapper
from pykstreams.processors.aggregates.missing_results import missing_result
from pykstreams.processors.process import Process
from pykstreams.processors.same_key import is_same_key
from pykstreams.processors.stores import table_rows
from pykstreams.processors.tables.table_forwarding import forwarder
from pykstreams.processors.user_functions import NO_PAIR, not_a_pair
from pykstreams.state.interfaces.operator_stores import TableRows

K = TypeVar("K")
V = TypeVar("V")
VA = TypeVar("VA")


@dataclass(frozen=True, slots=True)
class TableRepartitionMap(Generic[K, V]):
    """Maps old and new row of a change by ``selector(key, value)``, a pair or ``None``, and sends both on.

    The selector does not see null values. A pair that is missing, or whose key or value is null, is left out.
    If both are there under equal keys, one change carries both; else the old row goes first, as a change to
    nothing, then the new one, as a change from nothing. Keys of different types are never equal (``1`` and
    ``True`` have different bytes). A null key is an error of this node. A change of a ``versioned`` table that is older
    than the newest one of its row is not part of the group and left out
    (``KTableRepartitionMap.KTableMapProcessor.process``, 4.3.1).
    """

    selector: KeyValueMapper[K, V, tuple[object, object] | None]
    versioned: bool = False

    def build(self, context: OperatorContext) -> Process:
        selector, forward, fail = self.selector, context.forward, context.fail
        versioned = self.versioned

        def select(key: K, value: V | None) -> tuple[object, object]:
            """The pair for a value; with ``None`` inside where it is to be left out."""
            if value is None:
                return _NO_PAIR
            pair = selector(key, value)
            if pair is None:
                return _NO_PAIR
            try:
                selected_key, selected_value = pair
            except (TypeError, ValueError):
                raise not_a_pair(selector, pair) from None
            if type(pair) is not tuple and isinstance(pair, NO_PAIR):
                raise not_a_pair(selector, pair)
            return _NO_PAIR if selected_key is None else (selected_key, selected_value)

        def process(key: K, change: Change[V], timestamp: int, headers: Headers) -> None:
            try:
                if key is None:
                    raise StreamsError("the key of a row to group is null; rows of a table must have a key")
                new_value, old_value, newest = change
                if versioned and not newest:
                    return
                new_key, new = select(key, new_value)
                old_key, old = select(key, old_value)
                together = new is not None and old is not None and is_same_key(new_key, old_key)
            except Exception as error:
                fail(error, key, change, timestamp, headers)
                return
            if together:
                forward(old_key, (new, old, newest), timestamp, headers)
                return
            if old is not None:
                forward(old_key, (None, old, newest), timestamp, headers)
            if new is not None:
                forward(new_key, (new, None, newest), timestamp, headers)

        return process


_NO_PAIR: Final = (None, None)


@dataclass(frozen=True, slots=True)
class TableAggregate(Generic[K, V, VA]):
    """Keeps ``subtractor(key, old value, aggregate)`` and then ``adder(key, new value, aggregate)`` a group.

    Nothing is subtracted from a group that has no aggregate. ``initializer()`` is what is added to where
    there is none; a subtractor that returns ``None`` empties the group. The timestamp is the larger of record
    and stored one where either function ran. A null key is an error of this node
    (``KTableAggregateProcessor.process``, 4.3.1).
    """

    store: str
    initializer: Initializer[VA]
    adder: Callable[[K, V, VA], VA | None]
    subtractor: Callable[[K, V, VA], VA | None]
    send_old_values: bool = False

    def build(self, context: OperatorContext) -> Process:
        store: TableRows[K, VA] = table_rows(context, self.store)
        get_row, put_row = store.get_row, store.put_row
        emit = forwarder(store, context, self.send_old_values)
        initializer, adder, subtractor = self.initializer, self.adder, self.subtractor
        nothing_added, nothing_left = missing_result(adder, context), missing_result(subtractor, context)
        fail = context.fail
        name = self.store

        def process(key: K, change: Change[V], timestamp: int, headers: Headers) -> None:
            try:
                if key is None:
                    raise _null_group(name)
                added, removed, _ = change
                row = get_row(key)
                time = timestamp
                if row is None:
                    old = new = None
                else:
                    old, stored = row
                    new = old if removed is None else subtractor(key, removed, old)
                    if new is None:
                        nothing_left()
                    if stored > timestamp and not (added is None and removed is None):
                        time = stored
                if added is not None:
                    new = adder(key, added, initializer() if new is None else new)
                    if new is None:
                        nothing_added()
                newest = put_row(key, new, time)
            except Exception as error:
                fail(error, key, change, timestamp, headers)
                return
            if emit is not None:
                emit(key, new, old, time, headers, newest)

        return process


@dataclass(frozen=True, slots=True)
class TableReduce(Generic[V]):
    """Keeps, per group, ``subtractor(aggregate, old value)`` and then ``adder(aggregate, new value)``.

    Where there is no aggregate the new value is it. Timestamp: the larger of record and stored one where a
    function ran, else the record's. A null key is an error of this node (``KTableReduceProcessor.process``,
    4.3.1).
    """

    store: str
    adder: Callable[[V, V], V | None]
    subtractor: Callable[[V, V], V | None]
    send_old_values: bool = False

    def build(self, context: OperatorContext) -> Process:
        store: TableRows[object, V] = table_rows(context, self.store)
        get_row, put_row = store.get_row, store.put_row
        emit = forwarder(store, context, self.send_old_values)
        adder, subtractor, fail = self.adder, self.subtractor, context.fail
        nothing_added, nothing_left = missing_result(adder, context), missing_result(subtractor, context)
        name = self.store

        def process(key: object, change: Change[V], timestamp: int, headers: Headers) -> None:
            try:
                if key is None:
                    raise _null_group(name)
                added, removed, _ = change
                row = get_row(key)
                time = timestamp
                if row is None:
                    old = None
                    new = added
                else:
                    new, stored = row
                    old = new
                    later = timestamp if timestamp > stored else stored
                    if removed is not None:
                        new = subtractor(new, removed)
                        if new is None:
                            nothing_left()
                        time = later
                    if added is not None:
                        if new is None:
                            new = added
                        else:
                            new = adder(new, added)
                            if new is None:
                                nothing_added()
                            time = later
                newest = put_row(key, new, time)
            except Exception as error:
                fail(error, key, change, timestamp, headers)
                return
            if emit is not None:
                emit(key, new, old, time, headers, newest)

        return process


def _null_group(store: str) -> StreamsError:
    return StreamsError(f"the key of a group is null (store {store!r}); a selector must give every row a key")
