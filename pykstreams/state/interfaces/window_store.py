"""Window stores as users and operators see them: a value for each key and window, for a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, cast

from pykstreams.core.record import ValueAndTimestamp
from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.core.types import Headers, Timestamp
from pykstreams.core.windows import Windowed
from pykstreams.state.interfaces.store import FlushListener, KeyValueIterator, TaskStore, ValueTimestampHeaders

K = TypeVar("K")
V = TypeVar("V")

GetWindowRow: TypeAlias = Callable[[Any, int], tuple[Any, int] | None]
"""(key, window start) -> (value, timestamp)."""


class PutWindowRow(Protocol):
    """Sets the value of a key in a window."""

    def __call__(self, key: Any, start: int, value: Any, timestamp: int, headers: Headers = (), /) -> None: ...


class WindowRowsOfKey(Protocol):
    """The rows of a key as (window start, value, timestamp); both bounds are inclusive."""

    def __call__(
        self, key: Any, time_from: int, time_to: int, reverse: bool = False
    ) -> Iterator[tuple[int, Any, int]]: ...


WindowRowsBetween: TypeAlias = Callable[[int, int], Iterator[tuple[Windowed[Any], Any, int]]]
"""The rows of all keys between two window starts, both inclusive, in the order of the store."""


class RawWindowRow(NamedTuple):
    """A serialized row of a window store; ``timestamp`` is ``None`` where the store keeps none."""

    key: bytes
    start: int
    value: bytes
    timestamp: int | None
    headers: Headers


class WindowStoreIterator(KeyValueIterator[int, V]):
    """The rows of one key: window start in ms, and value. A context manager, as every iterator over a store."""


class ReadOnlyWindowStore(Protocol[K, V]):
    """The read-only interface of window stores. Times are window starts; both bounds of a time span are inclusive."""

    def fetch_one(self, key: K, window_start: Timestamp) -> V | None:
        """The value of a key in the window that starts at that time."""
        ...

    def fetch(
        self, key: K, time_from: Timestamp, time_to: Timestamp, *, reverse: bool = False
    ) -> WindowStoreIterator[V]:
        """The windows of a key, in order of their starts."""
        ...

    def fetch_range(
        self,
        key_from: K | None,
        key_to: K | None,
        time_from: Timestamp,
        time_to: Timestamp,
        *,
        reverse: bool = False,
    ) -> KeyValueIterator[Windowed[K], V]:
        """The windows of the keys between two, both inclusive; ``None`` for no bound."""
        ...

    def fetch_all(
        self, time_from: Timestamp, time_to: Timestamp, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], V]:
        """The windows of every key."""
        ...

    def all(self, *, reverse: bool = False) -> KeyValueIterator[Windowed[K], V]:
        """Every window of every key."""
        ...

    def __getitem__(self, at: tuple[K, Timestamp]) -> V: ...
    def __contains__(self, at: object) -> bool: ...


class WindowStore(TaskStore, Generic[K, V]):
    """Values by key and window; ``store[key, start]`` and ``(key, start) in store`` work, too.

    What is older than the newest window start by the retention of the store cannot be read any more. Rows of several
    keys come by segment, and in each by key, from a persistent store, and by time and then by key from one in memory.
    Stores that retain duplicates keep each value that is put; there ``None`` is ignored, and elsewhere it deletes.

    Operators use the closures; see docs/internals/windows-and-joins.md. ``take_row`` and ``keep_row`` are to
    ``get_row`` and ``put_row`` what they are in key-value stores.
    """

    get_row: GetWindowRow
    put_row: PutWindowRow
    take_row: GetWindowRow
    keep_row: PutWindowRow
    rows: WindowRowsOfKey
    rows_between: WindowRowsBetween

    @abstractmethod
    def on_flush(self, listener: FlushListener, send_old_values: bool, sink: SerializedSink | None = None) -> bool:
        """Returns whether the store has a cache; then the listener is called for what leaves it, with windowed keys."""

    @abstractmethod
    def put(self, key: K, value: V | None, window_start: Timestamp) -> None:
        """Sets the value of a key in the window that starts at that time."""

    @abstractmethod
    def fetch_one(self, key: K, window_start: Timestamp) -> V | None:
        """The value of a key in the window that starts at that time."""

    @abstractmethod
    def fetch(
        self, key: K, time_from: Timestamp, time_to: Timestamp, *, reverse: bool = False
    ) -> WindowStoreIterator[V]:
        """The windows of a key, in order of their starts."""

    @abstractmethod
    def fetch_range(
        self,
        key_from: K | None,
        key_to: K | None,
        time_from: Timestamp,
        time_to: Timestamp,
        *,
        reverse: bool = False,
    ) -> KeyValueIterator[Windowed[K], V]:
        """The windows of the keys between two, both inclusive; ``None`` for no bound."""

    @abstractmethod
    def fetch_all(
        self, time_from: Timestamp, time_to: Timestamp, *, reverse: bool = False
    ) -> KeyValueIterator[Windowed[K], V]:
        """The windows of every key."""

    @abstractmethod
    def all(self, *, reverse: bool = False) -> KeyValueIterator[Windowed[K], V]:
        """Every window of every key."""

    def __getitem__(self, at: tuple[K, Timestamp]) -> V:
        value = self.fetch_one(*at)
        if value is None:
            raise KeyError(at)
        return value

    def __setitem__(self, at: tuple[K, Timestamp], value: V) -> None:
        key, start = at
        self.put(key, value, start)

    def __contains__(self, at: object) -> bool:
        return self.fetch_one(*cast("tuple[K, Timestamp]", at)) is not None


class TimestampedWindowStore(WindowStore[K, ValueAndTimestamp[V]]):
    """A window store whose values carry the time of the record that set them."""


class TimestampedWindowStoreWithHeaders(WindowStore[K, ValueTimestampHeaders[V]]):
    """A window store whose values carry time and headers of the record that set them."""
