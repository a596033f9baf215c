"""Versioned key-value stores as users and operators see them: what the value of a key was at any time of a history."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar, cast

from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.core.types import Timestamp
from pykstreams.state.store import FlushListener, TaskStore

K = TypeVar("K")
V = TypeVar("V")

PUT_RETURN_CODE_VALID_TO_UNDEFINED: Final = -1
"""What ``put`` gives for a version that is the newest of its key: it is valid until another one comes."""

PUT_RETURN_CODE_NOT_PUT: Final = -(2**63)
"""What ``put`` gives for a record that is older than the history retention: nothing was put."""

GetRowAsOf: TypeAlias = Callable[[Any, int], tuple[Any, int] | None]
"""(key, time) -> (value, timestamp) as of that time."""

PutVersion: TypeAlias = Callable[[Any, Any, int], bool | None]
"""(key, value, timestamp) -> whether it is the newest version of its key; ``None`` where nothing was put."""


class ResultOrder(Enum):
    """In which order of time versions come."""

    ANY = "any"
    ASCENDING = "ascending"
    DESCENDING = "descending"


@dataclass(frozen=True, slots=True)
class VersionedRecord(Generic[V]):
    """A value of a key, valid from ``timestamp`` up to, and without, ``valid_to``.

    Times are in ms. ``valid_to`` is ``None`` for the newest version, and where a single version was read, which does
    not tell.
    """

    value: V
    timestamp: int
    valid_to: int | None = None


class VersionedRecordIterator(Iterator[VersionedRecord[V]]):
    """Versions of one key. A context manager, as every iterator over a store; what it gives was read at once."""

    def __init__(self, records: Iterator[VersionedRecord[V]], store: str) -> None:
        self._records: Iterator[VersionedRecord[V]] | None = records
        self._store = store

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


class VersionedKeyValueStore(TaskStore, Generic[K, V]):
    """Values by key and time; ``store[key]`` and ``key in store`` tell of the newest value.

    The history retention says how long a version can be read after another one has replaced it, by the observed stream
    time of the store, which is the highest time that was put, whatever its key. It is also the grace: what is older
    than stream time by more than the retention is not put. The newest version of a key never expires.

    Operators use the closures; see docs/windows-and-joins.md. ``take_row`` and ``keep_row`` are ``get_row`` and
    ``put_row`` for one who owns the values, as in key-value stores.
    """

    PUT_RETURN_CODE_VALID_TO_UNDEFINED: ClassVar[int] = PUT_RETURN_CODE_VALID_TO_UNDEFINED
    PUT_RETURN_CODE_NOT_PUT: ClassVar[int] = PUT_RETURN_CODE_NOT_PUT

    get_row: Callable[[Any], tuple[Any, int] | None]
    get_row_as_of: GetRowAsOf
    put_row: PutVersion
    take_row: Callable[[Any], tuple[Any, int] | None]
    keep_row: PutVersion

    def on_flush(self, listener: FlushListener, send_old_values: bool) -> bool:
        """Tells that the store has no cache."""
        return False

    @abstractmethod
    def put(self, key: K, value: V | None, timestamp: Timestamp) -> int:
        """Puts a version that is valid from ``timestamp`` on; ``None`` says that the key has no value then.

        Gives until when it is valid, in ms: ``PUT_RETURN_CODE_VALID_TO_UNDEFINED`` for the newest version of its key,
        ``PUT_RETURN_CODE_NOT_PUT`` where the timestamp is older than the history retention and nothing was put.
        A version with the timestamp of another one takes its place.
        """

    @abstractmethod
    def delete(self, key: K, timestamp: Timestamp) -> VersionedRecord[V] | None:
        """Puts ``None``; gives the version that was valid at that time."""

    @abstractmethod
    def get(self, key: K, as_of: Timestamp | None = None) -> VersionedRecord[V] | None:
        """The newest version of a key, or the one that was valid at a time.

        As of a time older than the history retention only a version is found that is the newest still.
        """

    @abstractmethod
    def history(
        self,
        key: K,
        time_from: Timestamp | None = None,
        time_to: Timestamp | None = None,
        *,
        order: ResultOrder = ResultOrder.ANY,
    ) -> VersionedRecordIterator[V]:
        """The versions of a key that were valid at some time between two, both inclusive; newest first unless told.

        ``None`` for no bound. Versions that were replaced before the history retention are left out.
        """

    def __getitem__(self, key: K) -> V:
        record = self.get(key)
        if record is None:
            raise KeyError(key)
        return record.value

    def __contains__(self, key: object) -> bool:
        return self.get(cast("K", key)) is not None
