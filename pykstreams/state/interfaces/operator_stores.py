"""The parts of stores that operators use: one protocol for each kind of store.

A row is a value with its timestamp in ms; a value of ``None`` deletes a row. ``take_row`` and ``keep_row`` are
``get_row`` and ``put_row`` for an operator that owns the values, see ``KeyValueStore``. ``reader_below_cache`` makes a
reader of rows as they were forwarded last, without changes that a cache still holds back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.core.types import Headers
from pykstreams.core.windows import Windowed
from pykstreams.state.interfaces.store import FlushListener

K = TypeVar("K")
K_contra = TypeVar("K_contra", contravariant=True)
V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)
Get_co = TypeVar("Get_co", covariant=True)
Put_co = TypeVar("Put_co", covariant=True)


class SerializedRows(NamedTuple):
    """The readers of rows in bytes.

    :param read: key -> (value, timestamp), ``None`` where there is no row.
    :param decode_value: value in bytes -> value.
    """

    read: Callable[[bytes], tuple[bytes, int] | None]
    decode_value: Callable[[bytes], Any]


@dataclass(slots=True)
class LastPut:
    """The row that an operator has put last, in the bytes that were made for it; a value of ``None`` is a delete."""

    key: bytes = b""
    value: bytes | None = None


class FlushesToListener(Protocol):
    """A store that may have a cache."""

    def on_flush(self, listener: FlushListener, send_old_values: bool, sink: SerializedSink | None = None) -> bool:
        """Calls the listener for each row that leaves the cache from now on; returns whether there is a cache."""
        ...

    def last_put(self, sink: SerializedSink) -> LastPut | None:
        """Returns what always has the row that was put last; ``None`` unless the sink would write the same bytes."""
        ...


class OwnedRows(Protocol[Get_co, Put_co]):
    """A store whose rows are read and written either as copies or as the objects themselves."""

    @property
    def get_row(self) -> Get_co: ...
    @property
    def put_row(self) -> Put_co: ...
    @property
    def take_row(self) -> Get_co: ...
    @property
    def keep_row(self) -> Put_co: ...


class KeyedRows(Protocol[K_contra, V_co]):
    """A store whose rows are read by one key: a key-value, versioned or, by ``Windowed`` keys, a session store."""

    def get_row(self, key: K_contra, /) -> tuple[V_co, int] | None: ...
    def reader_below_cache(self) -> Callable[[K_contra], tuple[V_co, int] | None]: ...

    def serialized_below_cache(self, key_serializer: object, value_serializer: object) -> SerializedRows | None:
        """Makes the readers of rows below the cache as they are kept; ``None`` unless both serializers would write the
        very bytes that are kept.
        """
        ...


class TableRows(FlushesToListener, KeyedRows[K_contra, V], Protocol[K_contra, V]):
    """A key-value store or a versioned one, as the operator of a table uses either."""

    def put_row(self, key: K_contra, value: V | None, timestamp: int, /) -> bool | None:
        """Returns whether the row is the newest version of its key; ``None`` where nothing was put."""
        ...

    def take_row(self, key: K_contra, /) -> tuple[V, int] | None: ...
    def keep_row(self, key: K_contra, value: V | None, timestamp: int, /) -> bool | None: ...

    def before_put(self) -> Callable[[K_contra], None] | None:
        """Makes the function that a table source calls with each key before it puts; ``None`` where none is needed."""
        ...


class KeyValueRows(TableRows[K, V], Protocol[K, V]):
    """A key-value store whose rows can be scanned by a prefix of their keys."""

    def rows_by_prefix(self, prefix_serializer: Any) -> Callable[[Any], Iterator[tuple[K, V, int]]]:
        """Makes the function from a prefix to (key, value, timestamp) of the rows whose keys begin with its bytes."""
        ...


class VersionedRows(TableRows[K_contra, V], Protocol[K_contra, V]):
    """A versioned store; times are in ms."""

    def get_row_as_of(self, key: K_contra, time: int, /) -> tuple[V, int] | None: ...
    def get_timeline(self, key: K_contra, time_from: int, time_to: int, /) -> list[tuple[int, V | None]]: ...
    def get_end(self, key: K_contra, time: int, /) -> int | None: ...
    def oldest_time(self) -> int: ...


class WindowRows(FlushesToListener, Protocol[K, V]):
    """A window store; rows are named by key and window start."""

    def get_row(self, key: K, start: int, /) -> tuple[V, int] | None: ...
    def put_row(self, key: K, start: int, value: V | None, timestamp: int, headers: Headers = (), /) -> None: ...
    def take_row(self, key: K, start: int, /) -> tuple[V, int] | None: ...
    def keep_row(self, key: K, start: int, value: V | None, timestamp: int, headers: Headers = (), /) -> None: ...
    def reader_below_cache(self) -> Callable[[K, int], tuple[V, int] | None]: ...

    def rows(self, key: K, time_from: int, time_to: int, /, reverse: bool = False) -> Iterator[tuple[int, V, int]]: ...
    def rows_between(self, time_from: int, time_to: int, /) -> Iterator[tuple[Windowed[K], V, int]]: ...


class JoinWindowRows(Protocol[K_contra, V]):
    """A window store that retains duplicates, as a join of streams uses it."""

    def put_row(self, key: K_contra, time: int, value: V | None, timestamp: int, headers: Headers, /) -> None: ...
    def rows(self, key: K_contra, time_from: int, time_to: int, /) -> Iterable[tuple[int, V, int]]: ...


class SessionRows(FlushesToListener, KeyedRows[Windowed[K], V], Protocol[K, V]):
    """A session store."""

    def sessions(self, key: K, earliest_end: int, latest_start: int, /) -> list[tuple[int, int, V]]: ...
    def put_row(self, key: K, start: int, end: int, value: V | None, /) -> None: ...
    def sessions_ended(self, earliest_end: int, latest_end: int, /) -> Iterator[tuple[Windowed[K], V, int]]: ...


class SubscriptionRows(Protocol):
    """The store of a foreign-key join, as bytes."""

    def put_subscription(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers, /) -> None: ...
    def subscriptions(self, prefix: bytes, /) -> Iterator[tuple[bytes, bytes]]: ...
