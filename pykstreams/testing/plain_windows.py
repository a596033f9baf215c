"""A timestamped window store seen as a plainer one, so that tests need not take values apart."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar, cast

from pykstreams.core.record import KeyValue, ValueAndTimestamp
from pykstreams.core.types import Timestamp
from pykstreams.core.windows import Windowed
from pykstreams.state.interfaces.store import KeyValueIterator, ValueTimestampHeaders
from pykstreams.state.interfaces.window_store import (
    TimestampedWindowStore,
    TimestampedWindowStoreWithHeaders,
    WindowStore,
    WindowStoreIterator,
)
from pykstreams.testing.plain_values import NO_TIMESTAMP, Stamped
from pykstreams.testing.store_view import StoreView

K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")
KW = TypeVar("KW")


class _WindowView(StoreView[WindowStore[K, W]], WindowStore[K, V], Generic[K, V, W]):
    """The base of both views; ``W`` is the type of values below."""

    def __init__(self, store: WindowStore[K, W]) -> None:
        super().__init__(store)
        self.get_row, self.put_row = store.get_row, store.put_row
        self.take_row, self.keep_row = store.take_row, store.keep_row
        self.rows, self.rows_between = store.rows, store.rows_between

    def put(self, key: K, value: V | None, window_start: Timestamp) -> None:
        self._store.put(key, None if value is None else self._whole(value), window_start)

    def fetch_one(self, key: K, window_start: Timestamp) -> V | None:
        found = self._store.fetch_one(key, window_start)
        return None if found is None else self._part(found)

    def fetch(
        self, key: K, time_from: Timestamp, time_to: Timestamp, *, reverse: bool = False
    ) -> WindowStoreIterator[V]:
        rows = self._store.fetch(key, time_from, time_to, reverse=reverse)
        return WindowStoreIterator(rows, self._row, self.name)

    def fetch_range(
        self,
        key_from: K | None,
        key_to: K | None,
        time_from: Timestamp,
        time_to: Timestamp,
        *,
        reverse: bool = False,
    ) -> KeyValueIterator[Windowed[K], V]:
        rows = self._store.fetch_range(key_from, key_to, time_from, time_to, reverse=reverse)
        return KeyValueIterator(rows, self._row, self.name)

    def fetch_all(
        self, time_from: Timestamp, time_to: Timestamp, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], V]:
        return KeyValueIterator(self._store.fetch_all(time_from, time_to, reverse=reverse), self._row, self.name)

    def all(self, *, reverse: bool = False) -> KeyValueIterator[Windowed[K], V]:
        return KeyValueIterator(self._store.all(reverse=reverse), self._row, self.name)

    def _row(self, key: KW, value: W) -> KeyValue[KW, V]:
        return KeyValue(key, self._part(value))

    @abstractmethod
    def _whole(self, value: V) -> W:
        """The value as the store below takes it."""

    @abstractmethod
    def _part(self, value: W) -> V:
        """The value as the view shows it."""


class PlainWindows(_WindowView[K, V, Stamped[V]]):
    """The store below without timestamps and headers (``WindowStoreFacade``, 4.3.1)."""

    def __init__(self, store: TimestampedWindowStore[K, V] | TimestampedWindowStoreWithHeaders[K, V]) -> None:
        super().__init__(cast("WindowStore[K, Stamped[V]]", store))  # it gets only values of the kind that it has
        self._headers = isinstance(store, TimestampedWindowStoreWithHeaders)

    def _whole(self, value: V) -> Stamped[V]:
        return ValueTimestampHeaders(value, NO_TIMESTAMP) if self._headers else ValueAndTimestamp(value, NO_TIMESTAMP)

    def _part(self, value: Stamped[V]) -> V:
        return value.value


class TimestampedWindows(_WindowView[K, ValueAndTimestamp[V], ValueTimestampHeaders[V]]):
    """The store below without headers (``TimestampedWindowStoreFacadeForHeaders``, 4.3.1)."""

    def __init__(self, store: TimestampedWindowStoreWithHeaders[K, V]) -> None:
        super().__init__(store)

    def _whole(self, value: ValueAndTimestamp[V]) -> ValueTimestampHeaders[V]:
        return ValueTimestampHeaders(*value)

    def _part(self, value: ValueTimestampHeaders[V]) -> ValueAndTimestamp[V]:
        return ValueAndTimestamp(value.value, value.timestamp)
