"""Interfaces of stores: for operators, for user code and for the runtime that opens and commits them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, cast, overload

from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.core.ids import TaskId
from pykstreams.core.processor import CurrentRecord
from pykstreams.core.record import KeyValue, ValueAndTimestamp
from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.core.types import Headers
from pykstreams.state.interfaces.position import Position, PositionBound, PositionOf
from pykstreams.state.interfaces.query_results import QueryConfig, QueryResult

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig
    from pykstreams.core.metrics import StreamsMetrics
    from pykstreams.state.interfaces.query import Query
    from pykstreams.state.interfaces.record_cache import RecordCache

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")
R = TypeVar("R")

ChangelogRow: TypeAlias = tuple[bytes, bytes | None, int, Headers]
"""A record of a changelog: key, value, timestamp in ms, headers."""

ChangelogWriter: TypeAlias = Callable[[bytes, bytes | None, int | None, Headers], object]
"""Sends one changelog record: (key, value, timestamp in ms, headers); ``None`` leaves the time to the producer."""

FlushListener: TypeAlias = Callable[[Any, tuple[Any, Any, bool], int, Headers], None]
"""Takes what leaves a cache: (key, (new value, old value, ``True``), timestamp in ms, headers).

The current record is then the one that put it, with that timestamp.
"""

RawRow: TypeAlias = tuple[bytes, bytes, int | None, Headers]
"""A serialized row: key, value, timestamp in ms (``None`` where the store keeps none), headers."""


class StoreContext(Protocol):
    """The context that a store is opened with; one per task."""

    @property
    def task_id(self) -> TaskId:
        """The task whose store it is."""
        ...

    @property
    def application_id(self) -> str:
        """The application id."""
        ...

    @property
    def state_dir(self) -> Path:
        """The folder of the task."""
        ...

    @property
    def config(self) -> StreamsConfig:
        """The configuration."""
        ...

    @property
    def current(self) -> CurrentRecord:
        """The slot of the record being processed."""
        ...

    @property
    def cache(self) -> RecordCache:
        """The record cache of the worker."""
        ...

    @property
    def metrics(self) -> StreamsMetrics:
        """The metrics registry."""
        ...

    def changelog(self, store_name: str) -> ChangelogWriter | None:
        """How to write to a store's changelog; ``None`` for a store without one."""
        ...

    def count_late(self, store_name: str) -> None:
        """Counts a record that a store does not put because it is late."""
        ...

    def changelog_topic(self, store_name: str) -> str:
        """The name of a store's changelog, or the topic that its serdes get instead where it has none."""
        ...


class ValueTimestampHeaders(NamedTuple, Generic[V]):
    """A value of a store with headers, with the timestamp in ms and the headers of the record that set it."""

    value: V
    timestamp: int
    headers: Headers = ()


class TaskStore(ABC):
    """A store of one task.

    The order of its life: ``init``, ``restore`` any number of times, ``end_restore``, use, and for each commit
    ``flush_cache`` before and ``commit`` after Kafka has taken the offsets; ``close``. Closing does not commit.
    After a commit it may be given to another task: ``release`` takes the place of ``close``, and its life begins anew
    with ``init``, over the rows that it has.
    """

    can_be_released = False
    """Whether it may be given to another task."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the store."""

    @property
    @abstractmethod
    def persistent(self) -> bool:
        """Whether its rows outlive the process."""

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether it has been opened and not closed."""

    metrics_scope = ""
    """The kind of store in the tags of metrics."""

    @property
    def cache_bytes(self) -> int:
        """The size of its record cache, 0 without one."""
        return 0

    def flush_metrics(self, now_ms: int) -> None:  # noqa: B027 - most stores measure nothing
        """Hands what was measured to the sensors."""

    @property
    def public_view(self) -> Any:
        """The object that processors get when they ask for the store."""
        return self

    @abstractmethod
    def init(self, context: StoreContext, root: TaskStore | None = None) -> None:
        """Opens it; ``root`` may be given as in Kafka Streams, and is this store."""

    @abstractmethod
    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        """Puts records of its changelog, in their order."""

    def end_restore(self) -> None:  # noqa: B027 - most stores are ready after each record
        """Called when its changelog is read; what takes long before it can be used is done here."""

    @abstractmethod
    def flush_cache(self) -> None:
        """Writes what its cache holds to the layers below, and forwards it."""

    def evict_eldest(self) -> bool:
        """Evicts the entry of its cache that was used longest ago, as a put does that finds the cache too full.

        False where there is none.
        """
        return False

    @abstractmethod
    def commit(self, changelog_offset: int | None) -> None:
        """Makes its writes durable together with the changelog offset they stand for (``None``: there is no news)."""

    @abstractmethod
    def committed_offset(self) -> int | None:
        """The changelog offset that its durable rows stand for, as it was given to ``commit``."""

    def flushed_offset(self) -> int | None:
        """The committed offset that is left when the process is killed now, or a lower one; ``None``: not known."""
        return None

    def release(self) -> None:
        """Lets go of its task, and keeps its rows open; only after a commit, and only if it can be released."""
        raise NotImplementedError(f"store {self.name!r} cannot be given to another task")

    @abstractmethod
    def close(self) -> None:
        """Closes it, also when it was released; what was not committed is gone."""

    def query(self, query: Query[R], position_bound: PositionBound, config: QueryConfig) -> QueryResult[R]:
        """Answers an interactive query; what iterators give is read from the store while they are used."""
        return QueryResult.for_unknown_query_type(query, self)

    @property
    def position(self) -> Position:
        """Up to which input records it has come; empty while it is not open, or is restored."""
        return Position()

    def set_position_source(self, position_of: PositionOf) -> None:  # noqa: B027 - stores of one operator answer no queries
        """Sets the function that says up to which records the task has come."""


class KeyValueIterator(Iterator[KeyValue[K, V]]):
    """Rows of a store in the order of their serialized keys.

    A context manager; it closes by itself at its end. One that is left before its end without ``close`` keeps parts
    of the store in memory, and warns (``ResourceWarning``).
    """

    def __init__(self, rows: Iterator[tuple[Any, Any]], row: Callable[[Any, Any], KeyValue[K, V]], store: str) -> None:
        self._rows: Iterator[tuple[Any, Any]] | None = rows
        self._row = row
        self._store = store
        self._peeked: KeyValue[K, V] | None = None
        self._ended = False
        self.on_close: Callable[[], None] | None = None
        """Called once, when it closes."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over store {self._store!r}{', closed' if self._rows is None else ''}>"

    def __iter__(self) -> KeyValueIterator[K, V]:
        return self

    def __next__(self) -> KeyValue[K, V]:
        peeked = self._peeked
        if peeked is not None:
            self._peeked = None
            return peeked
        if self._rows is None:
            if self._ended:
                raise StopIteration
            raise InvalidStateStoreError(f"this iterator over store {self._store!r} is closed; ask for a new one")
        for key, packed in self._rows:
            return self._row(key, packed)
        self._ended = True
        self.close()
        raise StopIteration

    def peek_next_key(self) -> K:
        """The key that comes next; ``StopIteration`` at the end."""
        if self._peeked is None:
            self._peeked = next(self)
        return self._peeked.key

    def close(self) -> None:
        """Lets go of the store; closing again does nothing."""
        rows, self._rows, self._peeked = self._rows, None, None
        close = getattr(rows, "close", None)
        if close is not None:
            close()
        closed, self.on_close = self.on_close, None
        if closed is not None:
            closed()

    def __enter__(self) -> KeyValueIterator[K, V]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_rows", None) is not None:
            warnings.warn(
                f"an iterator over store {self._store!r} was left open; use it in a with statement, or call close()",
                ResourceWarning,
                source=self,
                stacklevel=2,
            )
            self.close()


class ReadOnlyKeyValueStore(Protocol[K, V]):
    """The read-only interface of key-value stores."""

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: Any = None) -> Any:
        """The value of a key, ``default`` without one."""
        ...

    def range(self, lower: K | None = None, upper: K | None = None, *, reverse: bool = False) -> KeyValueIterator[K, V]:
        """The rows between two keys, both inclusive, in the order of the serialized keys."""
        ...

    def all(self, *, reverse: bool = False) -> KeyValueIterator[K, V]:
        """Every row, in the order of the serialized keys."""
        ...

    def prefix_scan(self, prefix: Any, prefix_serializer: Any) -> KeyValueIterator[K, V]:
        """The rows whose serialized keys start with the prefix, written by a serializer or as a type says."""
        ...

    def approximate_num_entries(self) -> int:
        """About how many rows there are."""
        ...

    def __getitem__(self, key: K) -> V: ...
    def __contains__(self, key: object) -> bool: ...


class KeyValueStore(TaskStore, Generic[K, V]):
    """Values by key; ``store[key]``, ``store[key] = value``, ``del store[key]`` and ``key in store`` work, too.

    ``None`` is no key (``TypeError``); a ``None`` value deletes. There is no ``len``: the count is an estimate.

    Operators use ``get_row``, ``put_row`` and ``on_flush``, for which a store may take objects instead of bytes; see
    docs/internals/architecture.md. ``take_row`` and ``keep_row`` are for one who owns the values: what ``take_row``
    returns may be changed, what ``keep_row`` is given must not be changed afterwards by anybody but the next who takes
    it.
    """

    get_row: Callable[[Any], tuple[Any, int] | None]
    put_row: Callable[[Any, Any, int], bool]
    take_row: Callable[[Any], tuple[Any, int] | None]
    keep_row: Callable[[Any, Any, int], bool]

    @abstractmethod
    def on_flush(self, listener: FlushListener, send_old_values: bool, sink: SerializedSink | None = None) -> bool:
        """Returns whether the store has a cache; then the listener is called for what leaves it.

        :param sink: where rows go instead, without the listener, if it writes the bytes that the store has. Deletes are
            for the listener.
        """

    def before_put(self) -> Callable[[Any], None] | None:
        """Returns the callable that a table source calls with each key before a put; ``None`` where nobody listens."""
        return None

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    @abstractmethod
    def get(self, key: K, default: Any = None) -> Any:
        """The value of a key, ``default`` without one."""

    def peek(self, key: K, *, skip_cache: bool = False) -> V | None:
        """The value of a key, for one who is not the task: the cache takes nothing in for it, and so evicts nothing.

        With ``skip_cache`` it is what was last written through the cache.
        """
        return self.get(key)

    @abstractmethod
    def put(self, key: K, value: V | None) -> None:
        """Sets the value of a key; ``None`` deletes."""

    @abstractmethod
    def put_if_absent(self, key: K, value: V | None) -> V | None:
        """Sets the value of a key that has none; returns the value it had."""

    @abstractmethod
    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None:
        """Sets the values of several keys, one after the other."""

    @abstractmethod
    def delete(self, key: K) -> V | None:
        """Deletes a key; returns the value it had."""

    @abstractmethod
    def range(self, lower: K | None = None, upper: K | None = None, *, reverse: bool = False) -> KeyValueIterator[K, V]:
        """The rows between two keys, both inclusive, in the order of the serialized keys."""

    @abstractmethod
    def all(self, *, reverse: bool = False) -> KeyValueIterator[K, V]:
        """Every row, in the order of the serialized keys."""

    @abstractmethod
    def prefix_scan(self, prefix: Any, prefix_serializer: Any) -> KeyValueIterator[K, V]:
        """The rows whose serialized keys start with the prefix, written by a serializer or as a type says."""

    @abstractmethod
    def approximate_num_entries(self) -> int:
        """About how many rows there are, without those that only the cache knows."""

    def __getitem__(self, key: K) -> V:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        if self.delete(key) is None:
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return self.get(cast("K", key)) is not None


class TimestampedKeyValueStore(KeyValueStore[K, ValueAndTimestamp[V]]):
    """A key-value store whose values carry the time of the record that set them."""


class TimestampedKeyValueStoreWithHeaders(KeyValueStore[K, ValueTimestampHeaders[V]]):
    """A key-value store whose values carry time and headers of the record that set them."""
