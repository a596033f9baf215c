"""A session store with headers seen as a plain one, so that tests need not take aggregates apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from pykstreams.core.record import KeyValue
from pykstreams.core.types import Timestamp
from pykstreams.core.windows import Windowed
from pykstreams.state.interfaces.session_store import AggregationWithHeaders, SessionStore, SessionStoreWithHeaders
from pykstreams.state.interfaces.store import KeyValueIterator
from pykstreams.testing.store_view import StoreView

K = TypeVar("K")
AGG = TypeVar("AGG")


class PlainSessions(StoreView[SessionStore[K, AggregationWithHeaders[AGG]]], SessionStore[K, AGG]):
    """The store below without headers (``SessionStoreFacade``, 4.3.1)."""

    def __init__(self, store: SessionStoreWithHeaders[K, AGG]) -> None:
        super().__init__(store)
        self.sessions, self.get_row, self.put_row = store.sessions, store.get_row, store.put_row

    def sessions_ended(self, earliest_end: int, latest_end: int) -> Iterator[tuple[Windowed[object], object, int]]:
        return self._store.sessions_ended(earliest_end, latest_end)

    def put(self, session_key: Windowed[K], aggregate: AGG | None) -> None:
        self._store.put(session_key, None if aggregate is None else AggregationWithHeaders(aggregate))

    def remove(self, session_key: Windowed[K]) -> None:
        self._store.remove(session_key)

    def find_sessions(
        self, key: K, earliest_session_end: Timestamp, latest_session_start: Timestamp, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], AGG]:
        return self._plain(self._store.find_sessions(key, earliest_session_end, latest_session_start, reverse=reverse))

    def find_sessions_range(
        self,
        key_from: K | None,
        key_to: K | None,
        earliest_session_end: Timestamp,
        latest_session_start: Timestamp,
        *,
        reverse: bool = False,
    ) -> KeyValueIterator[Windowed[K], AGG]:
        return self._plain(
            self._store.find_sessions_range(
                key_from, key_to, earliest_session_end, latest_session_start, reverse=reverse
            )
        )

    def find_sessions_by_end(
        self, earliest_session_end: Timestamp, latest_session_end: Timestamp
    ) -> KeyValueIterator[Windowed[K], AGG]:
        return self._plain(self._store.find_sessions_by_end(earliest_session_end, latest_session_end))

    def fetch_session(self, key: K, session_start: Timestamp, session_end: Timestamp) -> AGG | None:
        found = self._store.fetch_session(key, session_start, session_end)
        return None if found is None else found.aggregation

    def fetch(self, key: K, *, reverse: bool = False) -> KeyValueIterator[Windowed[K], AGG]:
        return self._plain(self._store.fetch(key, reverse=reverse))

    def fetch_range(
        self, key_from: K | None, key_to: K | None, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], AGG]:
        return self._plain(self._store.fetch_range(key_from, key_to, reverse=reverse))

    def _plain(
        self, rows: KeyValueIterator[Windowed[K], AggregationWithHeaders[AGG]]
    ) -> KeyValueIterator[Windowed[K], AGG]:
        def row(key: Windowed[K], value: AggregationWithHeaders[AGG]) -> KeyValue[Windowed[K], AGG]:
            return KeyValue(key, value.aggregation)

        return KeyValueIterator(rows, row, self.name)
