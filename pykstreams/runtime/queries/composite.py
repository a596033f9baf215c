"""Read-only stores over the tasks of all partitions of this process (``CompositeReadOnlyKeyValueStore`` ..., 4.3.1).

Each read finds the stores anew, since tasks come and go. A key is looked for in one partition after the other; rows of
several keys come partition by partition, in the order of the store within each, and each partition as it is when it is
its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, cast, overload

from pykstreams.core.record import KeyValue
from pykstreams.core.types import Timestamp, timestamp_ms
from pykstreams.core.windows import Windowed
from pykstreams.runtime.queries.local_store import LocalStore
from pykstreams.serdes.base import bind_serializer
from pykstreams.state.interfaces.store import KeyValueIterator
from pykstreams.state.interfaces.versioned_store import (
    NO_SPAN,
    ResultOrder,
    VersionedRecord,
    VersionedRecordIterator,
    time_span,
)
from pykstreams.state.interfaces.window_store import WindowStoreIterator
from pykstreams.state.layers.rows import null_key
from pykstreams.state.queries.answers import shown_rows
from pykstreams.state.queries.values import Shown

K = TypeVar("K")
V = TypeVar("V")
AGG = TypeVar("AGG")


class _Composite:
    """The base of the composites of all kinds."""

    def __init__(self, stores: Callable[[], Sequence[LocalStore]], name: str, shown: Callable[[object], Shown]) -> None:
        self._stores = stores
        self._name = name
        self._shown = shown

    def _one(self, key: object, action: Callable[[Any], object]) -> Any:
        """The first value that a partition has."""
        self._check_key(key)

        def read(store: object) -> object:
            found = action(store)
            return None if found is None else self._shown(store)(found)

        for store in self._stores():
            found = store.read(read)
            if found is not None:
                return found
        return None

    def _rows_of(self, key: object, action: Callable[[Any], Any]) -> object:
        """The rows of a key from the first partition that has any."""
        self._check_key(key)
        rows = None
        for store in self._stores():
            if rows is not None:
                rows.close()
            rows = store.read(lambda one: shown_rows(action(one), self._shown(one), self._name))
            try:
                rows.peek_next_key()
            except StopIteration:
                continue
            break
        return rows

    def _rows(self, action: Callable[[Any], Any]) -> KeyValueIterator[Any, Any]:
        """The rows of all partitions; the first one is opened now."""
        return KeyValueIterator(
            _Chain(self._stores(), lambda one: shown_rows(action(one), self._shown(one), self._name)),
            KeyValue,
            self._name,
        )

    def _check_key(self, key: object) -> None:
        if key is None:
            raise null_key(self._name)


class CompositeKeyValueStore(_Composite, Generic[K, V]):
    """A ``ReadOnlyKeyValueStore``."""

    def get(self, key: K, default: object = None) -> Any:
        found = self._one(key, lambda store: store.peek(key))
        return default if found is None else found

    def range(self, lower: K | None = None, upper: K | None = None, *, reverse: bool = False) -> KeyValueIterator[K, V]:
        return self._rows(lambda store: store.range(lower, upper, reverse=reverse))

    def all(self, *, reverse: bool = False) -> KeyValueIterator[K, V]:
        return self._rows(lambda store: store.all(reverse=reverse))

    def prefix_scan(self, prefix: object, prefix_serializer: object) -> KeyValueIterator[K, V]:
        bind_serializer(prefix_serializer, self._name)  # what is no serializer is refused before anything is read
        return self._rows(lambda store: store.prefix_scan(prefix, prefix_serializer))

    def approximate_num_entries(self) -> int:
        return sum(store.read(lambda one: int(one.approximate_num_entries())) for store in self._stores())

    def __getitem__(self, key: K) -> V:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return cast("V", value)

    def __contains__(self, key: object) -> bool:
        return self.get(cast("K", key)) is not None


class CompositeVersionedStore(_Composite, Generic[K, V]):
    """A ``ReadOnlyVersionedKeyValueStore``."""

    @overload
    def get(self, key: K, as_of: Timestamp | None = None) -> VersionedRecord[V] | None: ...
    @overload
    def get(
        self, key: K, time_from: Timestamp | None, /, time_to: Timestamp | None, order: ResultOrder = ...
    ) -> VersionedRecordIterator[V]: ...
    @overload
    def get(
        self, key: K, *, time_from: Timestamp | None, time_to: Timestamp | None, order: ResultOrder = ...
    ) -> VersionedRecordIterator[V]: ...
    def get(
        self,
        key: K,
        as_of: Timestamp | None = None,
        time_to: object = NO_SPAN,
        order: ResultOrder = ResultOrder.ANY,
        *,
        time_from: object = NO_SPAN,
    ) -> object:
        if time_to is NO_SPAN and time_from is NO_SPAN:
            time = None if as_of is None else timestamp_ms(as_of, "as_of")
            return self._one(key, lambda store: store.get(key, time))
        self._check_key(key)
        span = time_span(self._name, as_of, time_from, time_to)
        versions: list[VersionedRecord[V]] = []
        for store in self._stores():
            versions = list(store.read(lambda one: one.get(key, *span, order)))
            if versions:
                break
        return VersionedRecordIterator(iter(versions), self._name)

    def __getitem__(self, key: K) -> V:
        record = self.get(key)
        if record is None:
            raise KeyError(key)
        return record.value

    def __contains__(self, key: object) -> bool:
        return self.get(cast("K", key)) is not None


class CompositeWindowStore(_Composite, Generic[K, V]):
    """A ``ReadOnlyWindowStore``."""

    def fetch_one(self, key: K, window_start: Timestamp) -> V | None:
        return cast("V | None", self._one(key, lambda store: store.fetch_one(key, window_start)))

    def fetch(
        self, key: K, time_from: Timestamp, time_to: Timestamp, *, reverse: bool = False
    ) -> WindowStoreIterator[V]:
        rows = self._rows_of(key, lambda store: store.fetch(key, time_from, time_to, reverse=reverse))
        return cast("WindowStoreIterator[V]", rows)

    def fetch_range(
        self,
        key_from: K | None,
        key_to: K | None,
        time_from: Timestamp,
        time_to: Timestamp,
        *,
        reverse: bool = False,
    ) -> KeyValueIterator[Windowed[K], V]:
        return self._rows(lambda store: store.fetch_range(key_from, key_to, time_from, time_to, reverse=reverse))

    def fetch_all(
        self, time_from: Timestamp, time_to: Timestamp, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], V]:
        return self._rows(lambda store: store.fetch_all(time_from, time_to, reverse=reverse))

    def all(self, *, reverse: bool = False) -> KeyValueIterator[Windowed[K], V]:
        return self._rows(lambda store: store.all(reverse=reverse))

    def __getitem__(self, at: tuple[K, Timestamp]) -> V:
        value = self.fetch_one(*at)
        if value is None:
            raise KeyError(at)
        return value

    def __contains__(self, at: object) -> bool:
        return self.fetch_one(*cast("tuple[K, Timestamp]", at)) is not None


class CompositeSessionStore(_Composite, Generic[K, AGG]):
    """A ``ReadOnlySessionStore``."""

    def find_sessions(
        self, key: K, earliest_session_end: Timestamp, latest_session_start: Timestamp, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], AGG]:
        rows = self._rows_of(
            key, lambda store: store.find_sessions(key, earliest_session_end, latest_session_start, reverse=reverse)
        )
        return cast("KeyValueIterator[Windowed[K], AGG]", rows)

    def find_sessions_range(
        self,
        key_from: K | None,
        key_to: K | None,
        earliest_session_end: Timestamp,
        latest_session_start: Timestamp,
        *,
        reverse: bool = False,
    ) -> KeyValueIterator[Windowed[K], AGG]:
        return self._rows(
            lambda store: store.find_sessions_range(
                key_from, key_to, earliest_session_end, latest_session_start, reverse=reverse
            )
        )

    def fetch_session(self, key: K, session_start: Timestamp, session_end: Timestamp) -> AGG | None:
        return cast("AGG | None", self._one(key, lambda store: store.fetch_session(key, session_start, session_end)))

    def fetch(self, key: K, *, reverse: bool = False) -> KeyValueIterator[Windowed[K], AGG]:
        rows = self._rows_of(key, lambda store: store.fetch(key, reverse=reverse))
        return cast("KeyValueIterator[Windowed[K], AGG]", rows)

    def fetch_range(
        self, key_from: K | None, key_to: K | None, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], AGG]:
        return self._rows(lambda store: store.fetch_range(key_from, key_to, reverse=reverse))

    def __getitem__(self, session_key: Windowed[K]) -> AGG:
        aggregate = self._of(session_key)
        if aggregate is None:
            raise KeyError(session_key)
        return aggregate

    def __contains__(self, session_key: object) -> bool:
        return self._of(cast("Windowed[K]", session_key)) is not None

    def _of(self, session_key: Windowed[K]) -> AGG | None:
        return self.fetch_session(session_key.key, session_key.window.start, session_key.window.end)


class _Chain(Iterator[KeyValue[object, object]]):
    """The rows of several stores, one after the other; each is opened when it is its turn."""

    __slots__ = ("_action", "_left", "_rows")

    def __init__(
        self, stores: Sequence[LocalStore], action: Callable[[object], KeyValueIterator[object, object]]
    ) -> None:
        self._left = list(reversed(stores))
        self._action = action
        self._rows: KeyValueIterator[object, object] | None = None
        self._open_next()

    def __next__(self) -> KeyValue[object, object]:
        while self._rows is not None:
            for row in self._rows:
                return row
            self._open_next()
        raise StopIteration

    def close(self) -> None:
        self._left.clear()
        if self._rows is not None:
            self._rows.close()

    def _open_next(self) -> None:
        self._rows = self._left[-1].read(self._action) if self._left else None
        del self._left[-1:]
