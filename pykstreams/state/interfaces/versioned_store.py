"""Versioned key-value stores as users and operators see them: what the value of a key was at any time of a history."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Any, ClassVar, Final, Generic, Protocol, TypeAlias, TypeVar, cast, overload

from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.core.types import Timestamp, timestamp_ms
from pykstreams.state.interfaces.store import FlushListener, TaskStore

K = TypeVar("K")
K_contra = TypeVar("K_contra", contravariant=True)
V = TypeVar("V")

PUT_RETURN_CODE_VALID_TO_UNDEFINED: Final = -1
"""Returned by ``put`` for a version that is the newest of its key: it is valid until another one comes."""

PUT_RETURN_CODE_NOT_PUT: Final = -(2**63)
"""Returned by ``put`` for a record that is older than the history retention: nothing was put."""

GetRowAsOf: TypeAlias = Callable[[Any, int], tuple[Any, int] | None]
"""(key, time) -> (value, timestamp) as of that time."""

GetTimeline: TypeAlias = Callable[[Any, int, int], list[tuple[int, Any]]]
"""(key, time from, time to), both inclusive -> (since, value or ``None`` for none), in order of time.

Each is valid until the next one. The first was valid at the first time, or is the first that is known: empty where the
history of all that time has expired.
"""

GetEnd: TypeAlias = Callable[[Any, int], int | None]
"""(key, time) -> until when what it was at that time is valid, ``None`` where nothing has replaced it."""

PutVersion: TypeAlias = Callable[[Any, Any, int], bool | None]
"""(key, value, timestamp) -> whether it is the newest version of its key; ``None`` where nothing was put."""


NO_SPAN: Final[Any] = object()
"""Stands for a bound of time that was not given: ``None`` is one that is given and does not bound."""

LAST_TIME: Final = 2**63 - 1
"""The greatest time in ms that there is."""


class ResultOrder(Enum):
    """In which order of time versions come."""

    ANY = "any"
    ASCENDING = "ascending"
    DESCENDING = "descending"


@dataclass(frozen=True, slots=True, init=False)
class VersionedRecord(Generic[V]):
    """A value of a key, valid from ``timestamp`` up to, and without, ``valid_to``.

    Times are in ms. ``valid_to`` is ``None`` for the newest version, and where ``get`` was asked for a single one,
    which leaves it out as Kafka Streams' does (4.3.1); queries and ``get`` of a span of time tell it.
    """

    value: V
    timestamp: int
    valid_to: int | None

    def __init__(self, value: V, timestamp: int, valid_to: int | None = None) -> None:
        # Half of what the generated one takes, which is more than all else that a read of a value at hand does.
        _set_value(self, value)
        _set_timestamp(self, timestamp)
        _set_valid_to(self, valid_to)


_set_value, _set_timestamp, _set_valid_to = (
    cast("Callable[[VersionedRecord[Any], Any], None]", VersionedRecord.__dict__[name].__set__)
    for name in ("value", "timestamp", "valid_to")
)


@dataclass(frozen=True, slots=True)
class PutResult:
    """The outcome of putting a version with a time, in ms.

    >>> PutResult(50)
    PutResult(timestamp=50, valid_to=None, is_put=True)
    >>> PutResult(50).is_latest, PutResult(50, 60).is_latest, PutResult(50, is_put=False).is_latest
    (True, False, False)
    """

    timestamp: int
    """From when it is valid."""

    valid_to: int | None = None
    """Until when, exclusively; ``None`` for the newest version of its key, and where nothing was put."""

    is_put: bool = True
    """Whether it is in the store. It is not if it came later than the history retention allows."""

    @property
    def is_latest(self) -> bool:
        """Whether it is the newest version of its key."""
        return self.is_put and self.valid_to is None


class VersionedRecordIterator(Iterator[VersionedRecord[V]]):
    """Versions of one key. A context manager, as every iterator over a store; what it gives was read at once."""

    def __init__(self, records: Iterator[VersionedRecord[V]], store: str) -> None:
        self._records: Iterator[VersionedRecord[V]] | None = records
        self._store = store

    def __repr__(self) -> str:
        return f"<VersionedRecordIterator over store {self._store!r}{', closed' if self._records is None else ''}>"

    def __next__(self) -> VersionedRecord[V]:
        if self._records is None:
            raise InvalidStateStoreError(f"this iterator over store {self._store!r} is closed; ask for a new one")
        return next(self._records)

    def close(self) -> None:
        """Lets go of the versions; closing again does nothing."""
        self._records = None

    def __enter__(self) -> VersionedRecordIterator[V]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ReadOnlyVersionedKeyValueStore(Protocol[K_contra, V]):
    """The read-only interface of versioned stores."""

    @overload
    def get(self, key: K_contra, as_of: Timestamp | None = None) -> VersionedRecord[V] | None:
        """The newest version of a key, or the one that was valid at a time."""

    @overload
    def get(
        self, key: K_contra, time_from: Timestamp | None, /, time_to: Timestamp | None, order: ResultOrder = ...
    ) -> VersionedRecordIterator[V]:
        """The versions of a key that were valid at some time between two, both inclusive; newest first by default."""

    @overload
    def get(
        self, key: K_contra, *, time_from: Timestamp | None, time_to: Timestamp | None, order: ResultOrder = ...
    ) -> VersionedRecordIterator[V]: ...

    def __getitem__(self, key: K_contra) -> V: ...
    def __contains__(self, key: object) -> bool: ...


def time_span(store: str, as_of: Timestamp | None, time_from: Any, time_to: Any) -> tuple[int, int]:
    """Reads the bounds of a span of time, both inclusive, as ``get`` takes them: the first one may be in ``as_of``."""
    if time_from is NO_SPAN:
        time_from = as_of
    elif as_of is not None:
        raise TypeError(f"store {store!r} is asked for a key as of {as_of!r} and from {time_from!r} on; give one")
    if time_to is NO_SPAN:
        raise TypeError(f"store {store!r} is asked for a key from {time_from!r} on; give time_to, too, None for no end")
    first = 0 if time_from is None else timestamp_ms(time_from, "time_from")
    last = LAST_TIME if time_to is None else timestamp_ms(time_to, "time_to")
    if first > last:
        raise ValueError(f"store {store!r} is asked for a key from {first} to {last}; swap them")
    return first, last


class VersionedKeyValueStore(TaskStore, Generic[K, V]):
    """Values by key and time; ``store[key]`` and ``key in store`` are about the newest value.

    The history retention says how long a version can be read after another one has replaced it, by the observed stream
    time of the store, which is the highest time that was put, whatever its key. It is also the grace: what is older
    than stream time by more than the retention is not put. The newest version of a key never expires.

    Operators use the closures; see docs/internals/windows-and-joins.md. ``take_row`` and ``keep_row`` are ``get_row``
    and ``put_row`` for one who owns the values, as in key-value stores. ``oldest_time()`` is the time, in ms, before
    which nothing is put, and nothing is read but what is still valid.
    """

    PUT_RETURN_CODE_VALID_TO_UNDEFINED: ClassVar[int] = PUT_RETURN_CODE_VALID_TO_UNDEFINED
    PUT_RETURN_CODE_NOT_PUT: ClassVar[int] = PUT_RETURN_CODE_NOT_PUT

    get_row: Callable[[Any], tuple[Any, int] | None]
    get_row_as_of: GetRowAsOf
    get_timeline: GetTimeline
    get_end: GetEnd
    oldest_time: Callable[[], int]
    put_row: PutVersion
    take_row: Callable[[Any], tuple[Any, int] | None]
    keep_row: PutVersion

    def on_flush(self, listener: FlushListener, send_old_values: bool, sink: SerializedSink | None = None) -> bool:
        """Returns ``False``: the store has no cache."""
        return False

    def before_put(self) -> Callable[[Any], None] | None:
        """Returns ``None``: nothing is to be called before a put; see ``KeyValueStore``."""
        return None

    @abstractmethod
    def put(self, key: K, value: V | None, timestamp: Timestamp) -> int:
        """Puts a version that is valid from ``timestamp`` on; ``None`` says that the key has no value then.

        Gives until when it is valid, in ms: ``PUT_RETURN_CODE_VALID_TO_UNDEFINED`` for the newest version of its key,
        ``PUT_RETURN_CODE_NOT_PUT`` where the timestamp is older than the history retention and nothing was put.
        A version with the timestamp of another one takes its place.
        """

    @abstractmethod
    def delete(self, key: K, timestamp: Timestamp) -> VersionedRecord[V] | None:
        """Puts ``None``; returns the version that was valid at that time."""

    def put_with_result(self, key: K, value: V | None, timestamp: Timestamp) -> PutResult:
        """Puts a version as ``put`` does; returns what has become of it in words instead of a number."""
        until = self.put(key, value, timestamp)
        is_put = until != PUT_RETURN_CODE_NOT_PUT
        valid_to = until if is_put and until != PUT_RETURN_CODE_VALID_TO_UNDEFINED else None
        return PutResult(timestamp_ms(timestamp, "timestamp"), valid_to, is_put)

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
    @abstractmethod
    def get(
        self,
        key: K,
        as_of: Timestamp | None = None,
        time_to: Any = NO_SPAN,
        order: ResultOrder = ResultOrder.ANY,
        *,
        time_from: Any = NO_SPAN,
    ) -> Any:
        """The newest version of a key; the one that was valid at a time; or those of a span, with their validity.

        ``get(key)`` and ``get(key, as_of)`` give a version, or ``None``. As of a time older than the history retention
        only a version is found that is the newest still.

        ``get(key, time_from, time_to, order)`` gives the versions that were valid at some time between two, both
        inclusive, each with its ``valid_to``; newest first by default. ``None`` is no bound. Those that were replaced
        before the history retention are left out.
        """

    def __getitem__(self, key: K) -> V:
        record = self.get(key)
        if record is None:
            raise KeyError(key)
        return record.value

    def __contains__(self, key: object) -> bool:
        return self.get(cast("K", key)) is not None
