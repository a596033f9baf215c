"""A timestamped key-value store seen as a plain one, so that tests need not take values apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, cast

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

NO_TIMESTAMP = -1
"""The timestamp of a value that a test puts without one."""


class PlainValues(StoreView, KeyValueStore[K, V]):
    """The store below without timestamps and headers (``KeyValueStoreFacade``, 4.3.1)."""

    def __init__(self, store: TimestampedKeyValueStore[K, V] | TimestampedKeyValueStoreWithHeaders[K, V]) -> None:
        super().__init__(store)
        self._headers = isinstance(store, TimestampedKeyValueStoreWithHeaders)
        self.get_row = store.get_row
        self.put_row = store.put_row
        self.take_row = store.take_row
        self.keep_row = store.keep_row

    def get(self, key: K, default: object = None) -> Any:
        found = self._store.get(key)
        return default if found is None else found.value

    def put(self, key: K, value: V | None) -> None:
        self._store.put(key, self._stamped(value))

    def put_if_absent(self, key: K, value: V | None) -> V | None:
        return cast("V | None", _value(self._store.put_if_absent(key, self._stamped(value))))

    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None:
        self._store.put_all((key, self._stamped(value)) for key, value in entries)

    def delete(self, key: K) -> V | None:
        return cast("V | None", _value(self._store.delete(key)))

    def range(self, lower: K | None = None, upper: K | None = None, *, reverse: bool = False) -> KeyValueIterator[K, V]:
        return self._plain(self._store.range(lower, upper, reverse=reverse))

    def all(self, *, reverse: bool = False) -> KeyValueIterator[K, V]:
        return self._plain(self._store.all(reverse=reverse))

    def prefix_scan(self, prefix: object, prefix_serializer: object) -> KeyValueIterator[K, V]:
        return self._plain(self._store.prefix_scan(prefix, prefix_serializer))

    def approximate_num_entries(self) -> int:
        return int(self._store.approximate_num_entries())

    def _stamped(self, value: V | None) -> object:
        if value is None:
            return None
        return ValueTimestampHeaders(value, NO_TIMESTAMP) if self._headers else ValueAndTimestamp(value, NO_TIMESTAMP)

    def _plain(self, rows: KeyValueIterator[K, object]) -> KeyValueIterator[K, V]:
        def row(key: Any, value: Any) -> KeyValue[K, V]:
            return KeyValue(key, value.value)

        return KeyValueIterator(cast("Any", rows), row, self.name)


def _value(found: Any) -> Any:
    return None if found is None else found.value
