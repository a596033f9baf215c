"""Interfaces of session stores: aggregates by key and session, found by key and time.

A session is a ``Windowed`` key; both ends of its window are inclusive, and the end decides how long it is kept. Which
sessions a key has is asked by time: ``find_sessions(key, earliest_session_end, latest_session_start)`` gives those that
end at or after the one and start at or before the other.

Sessions of several keys come in the order of the engine: by time in memory, by segment and then by key in RocksDB.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.core.types import Headers, Timestamp
from pykstreams.core.windows import Windowed
from pykstreams.state.interfaces.store import FlushListener, KeyValueIterator, TaskStore

K = TypeVar("K")
AGG = TypeVar("AGG")

Session: TypeAlias = tuple[int, int, Any]
"""(start, end, aggregate) of a session of a key"""


class AggregationWithHeaders(NamedTuple, Generic[AGG]):
    """An aggregate of a store with headers, with the headers of the record that set it."""

    aggregation: AGG
    headers: Headers = ()


class RawSession(NamedTuple):
    """A serialized session, as it is kept."""

    key: bytes
    start: int
    end: int
    value: bytes
    headers: Headers


class ReadOnlySessionStore(Protocol[K, AGG]):
    """The read-only interface of session stores."""

    def find_sessions(
        self, key: K, earliest_session_end: Timestamp, latest_session_start: Timestamp, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], AGG]:
        """The sessions of a key that end and start no earlier and no later than this, in order of time."""
        ...

    def find_sessions_range(
        self,
        key_from: K | None,
        key_to: K | None,
        earliest_session_end: Timestamp,
        latest_session_start: Timestamp,
        *,
        reverse: bool = False,
    ) -> KeyValueIterator[Windowed[K], AGG]:
        """The same for all keys between two, both inclusive; ``None`` is no bound."""
        ...

    def fetch_session(self, key: K, session_start: Timestamp, session_end: Timestamp) -> AGG | None:
        """The aggregate of one session."""
        ...

    def fetch(self, key: K, *, reverse: bool = False) -> KeyValueIterator[Windowed[K], AGG]:
        """Every session of a key, in order of time."""
        ...

    def fetch_range(
        self, key_from: K | None, key_to: K | None, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], AGG]:
        """Every session of the keys between two, both inclusive; ``None`` is no bound."""
        ...

    def __getitem__(self, session_key: Windowed[K]) -> AGG: ...
    def __contains__(self, session_key: object) -> bool: ...


class SessionStore(TaskStore, Generic[K, AGG]):
    """Aggregates by session; ``store[windowed]``, ``store[windowed] = aggregate``, ``del store[windowed]`` and
    ``windowed in store`` work, too.

    ``None`` is no key (``TypeError``); a ``None`` aggregate removes. A session whose end lies the retention or more
    before the latest end that was put cannot be read any more.

    Operators use ``sessions``, ``get_row``, ``put_row``, ``sessions_ended`` and ``on_flush``; see
    docs/internals/windows-and-joins.md.
    """

    sessions: Callable[[Any, int, int], list[Session]]
    get_row: Callable[[Any], tuple[Any, int] | None]
    put_row: Callable[[Any, int, int, Any], None]

    @abstractmethod
    def sessions_ended(self, earliest_end: int, latest_end: int) -> Iterator[tuple[Windowed[Any], Any, int]]:
        """The sessions of all keys that end between two times, both inclusive, in order of time, with their ends."""

    @abstractmethod
    def on_flush(self, listener: FlushListener, send_old_values: bool, sink: SerializedSink | None = None) -> bool:
        """Returns whether the store has a cache; then the listener is called, with a ``Windowed`` key, for what leaves
        it.
        """

    @abstractmethod
    def put(self, session_key: Windowed[K], aggregate: AGG | None) -> None:
        """Sets the aggregate of a session; ``None`` removes it."""

    @abstractmethod
    def remove(self, session_key: Windowed[K]) -> None:
        """Removes a session."""

    @abstractmethod
    def find_sessions(
        self, key: K, earliest_session_end: Timestamp, latest_session_start: Timestamp, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], AGG]:
        """The sessions of a key that end and start no earlier and no later than this, in order of time."""

    @abstractmethod
    def find_sessions_range(
        self,
        key_from: K | None,
        key_to: K | None,
        earliest_session_end: Timestamp,
        latest_session_start: Timestamp,
        *,
        reverse: bool = False,
    ) -> KeyValueIterator[Windowed[K], AGG]:
        """The same for all keys between two, both inclusive; ``None`` is no bound."""

    @abstractmethod
    def find_sessions_by_end(
        self, earliest_session_end: Timestamp, latest_session_end: Timestamp
    ) -> KeyValueIterator[Windowed[K], AGG]:
        """The sessions of all keys that end between two times, both inclusive, in order of time."""

    @abstractmethod
    def fetch_session(self, key: K, session_start: Timestamp, session_end: Timestamp) -> AGG | None:
        """The aggregate of one session."""

    @abstractmethod
    def fetch(self, key: K, *, reverse: bool = False) -> KeyValueIterator[Windowed[K], AGG]:
        """Every session of a key, in order of time."""

    @abstractmethod
    def fetch_range(
        self, key_from: K | None, key_to: K | None, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], AGG]:
        """Every session of the keys between two, both inclusive; ``None`` is no bound."""

    def __getitem__(self, session_key: Windowed[K]) -> AGG:
        aggregate = self._one(session_key)
        if aggregate is None:
            raise KeyError(session_key)
        return aggregate

    def __setitem__(self, session_key: Windowed[K], aggregate: AGG) -> None:
        self.put(session_key, aggregate)

    def __delitem__(self, session_key: Windowed[K]) -> None:
        if self._one(session_key) is None:
            raise KeyError(session_key)
        self.remove(session_key)

    def __contains__(self, session_key: object) -> bool:
        return self._one(cast("Windowed[K]", session_key)) is not None

    def _one(self, session_key: Windowed[K]) -> AGG | None:
        return self.fetch_session(session_key.key, session_key.window.start, session_key.window.end)


class SessionStoreWithHeaders(SessionStore[K, AggregationWithHeaders[AGG]]):
    """A session store whose aggregates carry the headers of the record that set them."""
