"""Count, reduce and aggregate of a grouped stream, without windows.

A record without key or value is dropped. The result carries the larger of the record's timestamp and the
stored one. ``None`` as the result deletes the key: the next record of that key starts afresh. The store is
read and written inside ``try`` like the user's functions, as all of them are part of this node's work
(``KStreamAggregate``, ``KStreamReduce``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Headers, Initializer
from pykstreams.processors.aggregates.missing_results import missing_result
from pykstreams.processors.drop_reasons import NULL_TO_AGGREGATE
from pykstreams.processors.process import Process
from pykstreams.processors.stores import table_rows
from pykstreams.processors.tables.table_forwarding import forwarder
from pykstreams.state.interfaces.operator_stores import OwnedRows, TableRows

K = TypeVar("K")
V = TypeVar("V")
VA = TypeVar("VA")
Get = TypeVar("Get")
Put = TypeVar("Put")


@dataclass(frozen=True, slots=True)
class StreamAggregate(Generic[K, V, VA]):
    """Keeps ``aggregator(key, value, aggregate)`` per key, starting from ``initializer()``.

    Where old values are sent, the old value of a new key is what ``initializer`` gave, unless a cache stands
    between (``KStreamAggregateProcessor.process``, 4.3.1).
    """

    store: str
    initializer: Initializer[VA]
    aggregator: Callable[[K, V, VA], VA | None]
    send_old_values: bool = False

    def build(self, context: OperatorContext) -> Process:
        store: TableRows[K, VA] = table_rows(context, self.store)
        get_row, put_row = owned_rows(store, context, self.send_old_values)
        emit = forwarder(store, context, self.send_old_values)
        initializer, aggregator = self.initializer, self.aggregator
        fail, drop, missing = context.fail, context.drop, missing_result(aggregator, context)

        def process(key: K, value: V, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                drop(NULL_TO_AGGREGATE)
                return
            try:
                row = get_row(key)
                if row is None:
                    old = initializer()
                    time = timestamp
                else:
                    old, stored = row
                    time = timestamp if timestamp > stored else stored
                new = aggregator(key, value, old)
                if new is None:
                    missing()
                newest = put_row(key, new, time)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            if emit is not None:
                emit(key, new, old, time, headers, newest)

        return process


@dataclass(frozen=True, slots=True)
class StreamReduce(Generic[V]):
    """Keeps ``reducer(aggregate, value)`` per key, starting from the first value
    (``KStreamReduceProcessor.process``, 4.3.1).
    """

    store: str
    reducer: Callable[[V, V], V | None]
    send_old_values: bool = False

    def build(self, context: OperatorContext) -> Process:
        store: TableRows[object, V] = table_rows(context, self.store)
        get_row, put_row = owned_rows(store, context, self.send_old_values)
        emit = forwarder(store, context, self.send_old_values)
        reducer, fail, drop = self.reducer, context.fail, context.drop
        missing = missing_result(reducer, context)

        def process(key: object, value: V, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                drop(NULL_TO_AGGREGATE)
                return
            try:
                row = get_row(key)
                if row is None:
                    old = None
                    new: V | None = value
                    time = timestamp
                else:
                    old, stored = row
                    new = reducer(old, value)
                    if new is None:
                        missing()
                    time = timestamp if timestamp > stored else stored
                newest = put_row(key, new, time)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            if emit is not None:
                emit(key, new, old, time, headers, newest)

        return process


@dataclass(frozen=True, slots=True)
class StreamCount:
    """Counts the records of each key: ``StreamAggregate`` from 0 by 1, without the calls
    (``KGroupedStreamImpl.count``, 4.3.1).
    """

    store: str
    send_old_values: bool = False

    def build(self, context: OperatorContext) -> Process:
        store: TableRows[object, int] = table_rows(context, self.store)
        get_row, put_row = store.get_row, store.put_row
        emit = forwarder(store, context, self.send_old_values)
        fail, drop = context.fail, context.drop

        def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
            if key is None or value is None:
                drop(NULL_TO_AGGREGATE)
                return
            try:
                row = get_row(key)
                if row is None:
                    old = 0
                    time = timestamp
                else:
                    old, stored = row
                    time = timestamp if timestamp > stored else stored
                new = old + 1
                newest = put_row(key, new, time)
            except Exception as error:
                fail(error, key, value, timestamp, headers)
                return
            if emit is not None:
                emit(key, new, old, time, headers, newest)

        return process


def owned_rows(store: OwnedRows[Get, Put], context: OperatorContext, send_old_values: bool) -> tuple[Get, Put]:
    """Returns reader and writer of rows whose values only the operator sees: a cache may keep the objects as they are.

    Not where the old value is wanted, nor where the task could go on after an aggregate was left half changed.
    """
    if send_old_values or not context.failures_are_final:
        return store.get_row, store.put_row
    return store.take_row, store.keep_row
