"""A timestamped key-value store seen as a plain one, so that tests need not take values apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

from pykstreams.core.record import KeyValue, ValueAndTimestamp
from pykstreams.state.store import (
    ChangelogRow,
    FlushListener,
    KeyValueIterator,
    KeyValueStore,
    StoreContext,
    TimestampedKeyValueStore,
    TimestampedKeyValueStoreWithHeaders,
    ValueTimestampHeaders,
)

K = TypeVar("K")
V = TypeVar("V")

NO_TIMESTAMP = -1
"""The timestamp of a value that a test puts without one."""


class PlainValues(KeyValueStore[K, V]):
    """The store below without timestamps and headers (``KeyValueStoreFacade``, 4.3.1)."""

    def __init__(self, store: TimestampedKeyValueStore[K, V] | TimestampedKeyValueStoreWithHeaders[K, V]) -> None:
        self._store: KeyValueStore[K, Any] = store
        self._headers = isinstance(store, TimestampedKeyValueStoreWithHeaders)
        self.get_row = store.get_row
        self.put_row = store.put_row
        self.take_row = store.take_row
        self.keep_row = store.keep_row

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def persistent(self) -> bool:
        return self._store.persistent

    @property
    def is_open(self) -> bool:
        return self._store.is_open

    def init(self, context: StoreContext) -> None:
        self._store.init(context)

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        self._store.restore(rows)

    def end_restore(self) -> None:
        self._store.end_restore()

    def flush_cache(self) -> None:
        self._store.flush_cache()

    def commit(self, changelog_offset: int | None) -> None:
        self._store.commit(changelog_offset)

    def committed_offset(self) -> int | None:
        return self._store.committed_offset()

    def close(self) -> None:
        self._store.close()

    def on_flush(self, listener: FlushListener, send_old_values: bool) -> bool:
        return self._store.on_flush(listener, send_old_values)

    def get(self, key: K, default: Any = None) -> Any:
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

    def prefix_scan(self, prefix: Any, prefix_serializer: Any) -> KeyValueIterator[K, V]:
        return self._plain(self._store.prefix_scan(prefix, prefix_serializer))

    def approximate_num_entries(self) -> int:
        return self._store.approximate_num_entries()

    def _stamped(self, value: V | None) -> Any:
        if value is None:
            return None
        return ValueTimestampHeaders(value, NO_TIMESTAMP) if self._headers else ValueAndTimestamp(value, NO_TIMESTAMP)

    def _plain(self, rows: KeyValueIterator[K, Any]) -> KeyValueIterator[K, V]:
        def row(key: Any, value: Any) -> KeyValue[K, V]:
            return KeyValue(key, value.value)

        return KeyValueIterator(cast("Any", rows), row, self.name)


def _value(found: Any) -> Any:
    return None if found is None else found.value
