"""A timestamped key-value store seen as a plain one, so that tests need not take values apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, TypeVar, cast, overload

from pykstreams.core.record import KeyValue, ValueAndTimestamp
from pykstreams.state.interfaces.store import (
    KeyValueIterator,
    KeyValueStore,
    TimestampedKeyValueStore,
    TimestampedKeyValueStoreWithHeaders,
    ValueTimestampHeaders,
)
from pykstreams.testing.store_view import StoreView

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

Stamped: TypeAlias = ValueAndTimestamp[V] | ValueTimestampHeaders[V]

NO_TIMESTAMP = -1
"""The timestamp of a value that a test puts without one."""


class PlainValues(StoreView[KeyValueStore[K, Stamped[V]]], KeyValueStore[K, V]):
    """The store below without timestamps and headers (``KeyValueStoreFacade``, 4.3.1)."""

    def __init__(self, store: TimestampedKeyValueStore[K, V] | TimestampedKeyValueStoreWithHeaders[K, V]) -> None:
        super().__init__(cast("KeyValueStore[K, Stamped[V]]", store))  # it gets only values of the kind that it has
        self._headers = isinstance(store, TimestampedKeyValueStoreWithHeaders)
        self.get_row = store.get_row
        self.put_row = store.put_row
        self.take_row = store.take_row
        self.keep_row = store.keep_row

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: object = None) -> object:
        found = self._store.get(key)
        return default if found is None else found.value

    def put(self, key: K, value: V | None) -> None:
        self._store.put(key, self._stamped(value))

    def put_if_absent(self, key: K, value: V | None) -> V | None:
        return _value(self._store.put_if_absent(key, self._stamped(value)))

    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None:
        self._store.put_all((key, self._stamped(value)) for key, value in entries)

    def delete(self, key: K) -> V | None:
        return _value(self._store.delete(key))

    def range(self, lower: K | None = None, upper: K | None = None, *, reverse: bool = False) -> KeyValueIterator[K, V]:
        return self._plain(self._store.range(lower, upper, reverse=reverse))

    def all(self, *, reverse: bool = False) -> KeyValueIterator[K, V]:
        return self._plain(self._store.all(reverse=reverse))

    def prefix_scan(self, prefix: object, prefix_serializer: object) -> KeyValueIterator[K, V]:
        return self._plain(self._store.prefix_scan(prefix, prefix_serializer))

    def approximate_num_entries(self) -> int:
        return self._store.approximate_num_entries()

    def _stamped(self, value: V | None) -> Stamped[V] | None:
        if value is None:
            return None
        return ValueTimestampHeaders(value, NO_TIMESTAMP) if self._headers else ValueAndTimestamp(value, NO_TIMESTAMP)

    def _plain(self, rows: KeyValueIterator[K, Stamped[V]]) -> KeyValueIterator[K, V]:
        def row(key: K, value: Stamped[V]) -> KeyValue[K, V]:
            return KeyValue(key, value.value)

        return KeyValueIterator(rows, row, self.name)


def _value(found: Stamped[V] | None) -> V | None:
    return None if found is None else found.value
