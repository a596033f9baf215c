"""Versioned stores that users write: what they derive from, and how the layers above drive them.

A supplier derived from ``VersionedBytesStoreSupplier`` makes a ``VersionedBytesStore`` per task, and tables, and
``Stores.versioned_key_value_store_builder``, take it like one of the package. Serdes and the changelog are above it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import NoReturn

from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.state.encoding.layout import TIMESTAMPED
from pykstreams.state.interfaces.store import ChangelogRow, StoreContext
from pykstreams.state.user_stores import StateStore, TimestampedBytesStore, UserStore
from pykstreams.state.versions.history import NO_TIME, RawVersion


class VersionedBytesStore(StateStore, TimestampedBytesStore):
    """A versioned store of serialized keys and values, as users write it.

    ``init`` opens it; nothing has to be registered there, since each record of the changelog is ``put`` again, in the
    order in which it was put first. What it gives is a value behind the time from which it is valid (8 bytes,
    big-endian), ``None`` for none.
    """

    @abstractmethod
    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        """Puts a version, ``None`` for a deletion; returns what ``VersionedKeyValueStore.put`` returns."""

    @abstractmethod
    def get(self, key: bytes, as_of: int | None = None) -> bytes | None:
        """The newest version of a key, or the one that was valid at a time in ms."""

    @abstractmethod
    def delete(self, key: bytes, timestamp: int) -> bytes | None:
        """Puts a deletion; returns the version that was valid then."""


class UserVersions(UserStore):
    """A user's versions as a ``MeteredVersionedStore`` drives them; they have one version at a time, not more."""

    _store: VersionedBytesStore

    uncommitted_bytes = 0
    observed_time = NO_TIME

    def open(self, context: StoreContext) -> None:
        """Opens the user's store."""
        self.init(context)

    def newest(self, key: bytes, /) -> tuple[bytes, int] | None:
        """The newest value of a key, and since when."""
        return _unpacked(self._store.get(key))

    def as_of(self, key: bytes, time: int, /) -> tuple[bytes, int] | None:
        """The value that a key had at a time, and since when."""
        return _unpacked(self._store.get(key, time))

    def put(self, key: bytes, value: bytes | None, timestamp: int, /) -> int:
        """Puts a version."""
        return self._store.put(key, value, timestamp)

    def delete(self, key: bytes, timestamp: int, /) -> tuple[bytes, int] | None:
        """Puts a deletion; returns what was valid then."""
        return _unpacked(self._store.delete(key, timestamp))

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        put = self._store.put
        for key, value, timestamp, _ in rows:
            put(key, value, timestamp)

    def advance(self, time: int, /) -> None:
        """A time that was put elsewhere: the user's store knows of those that were put into it."""

    @property
    def oldest_time(self) -> int:
        """Not known of a user's store."""
        self._only_one_version()

    def between(self, key: bytes, time_from: int, time_to: int, /) -> list[tuple[bytes, int, int | None]]:
        """The version of one time, whose end is not known of a user's store; spans are not known either."""
        if time_from < time_to:
            self._only_one_version()
        found = self.as_of(key, time_from)
        return [] if found is None else [(*found, None)]

    def timeline(self, key: bytes, time_from: int, time_to: int, /) -> list[tuple[int, bytes | None]]:
        """Not known of a user's store."""
        self._only_one_version()

    def end_of(self, key: bytes, time: int, /) -> int | None:
        """Not known of a user's store."""
        self._only_one_version()

    def rows(self) -> Iterator[RawVersion]:
        """Not known of a user's store."""
        self._only_one_version()

    def approximate_num_entries(self) -> int:
        """Not known of a user's store: -1."""
        return -1

    def property_value(self, name: str) -> int | None:
        """There is no database of ours below it."""
        return None

    def statistics(self) -> str | None:
        """There is no database of ours below it."""
        return None

    def restore_keys(self, rows: Sequence[ChangelogRow], /) -> None:
        """Records do not come in the order in which they were put, as a user's store is promised."""
        self._only_one_version()

    def _only_one_version(self) -> NoReturn:
        raise InvalidStateStoreError(
            f"store {self.name!r} is a {type(self._store).__name__}, a versioned store of your own: it is asked for "
            "one version of a key at a time. What reads more (histories, complete_history, on_expired_history, the "
            "rows of the store, bulk files) needs a versioned store of Stores"
        )

    def _must_be_registered(self, context: StoreContext) -> None:
        """Need not: ``put`` reads it back."""


def _unpacked(row: bytes | None) -> tuple[bytes, int] | None:
    if row is None:
        return None
    value, since, _ = TIMESTAMPED.unpack(row)
    return value, since
