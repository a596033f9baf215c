"""As what a store may be read: which kinds of stores it fits, and what a reader gets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pykstreams.core.record import ValueAndTimestamp
from pykstreams.runtime.queries.composite import (
    CompositeKeyValueStore,
    CompositeSessionStore,
    CompositeVersionedStore,
    CompositeWindowStore,
)
from pykstreams.runtime.queries.local_store import LocalStore
from pykstreams.state.interfaces.session_store import AggregationWithHeaders, ReadOnlySessionStore, SessionStore
from pykstreams.state.interfaces.store import KeyValueStore, ReadOnlyKeyValueStore, ValueTimestampHeaders
from pykstreams.state.interfaces.versioned_store import ReadOnlyVersionedKeyValueStore, VersionedKeyValueStore
from pykstreams.state.interfaces.window_store import ReadOnlyWindowStore, WindowStore
from pykstreams.state.queries.values import Shown, alone, as_it_is, keeps_headers, keeps_time, with_time
from pykstreams.state.user_stores import StateStore

T_co = TypeVar("T_co", covariant=True)


class StoreProvider(Protocol):
    """Finds the stores of this process at the moment it is asked."""

    def stores(self, store_name: str, store_type: QueryableStoreType[object]) -> Sequence[LocalStore]:
        """The stores of that name, one a partition, in their order; ``InvalidStateStoreError`` says why there is none.

        Of each, ``read(action)`` runs ``action(store)`` while its task does not touch it.
        """
        ...


class QueryableStoreType(ABC, Generic[T_co]):
    """As what a store may be read; derive from it to read stores of your own."""

    @abstractmethod
    def accepts(self, store: StateStore) -> bool:
        """Whether a store may be read so."""

    @abstractmethod
    def create(self, provider: StoreProvider, store_name: str) -> T_co:
        """Makes what a reader gets; it asks the provider anew for each read, since tasks come and go."""


class _StoreType(QueryableStoreType[T_co]):
    """A store type of the package.

    :param make: makes what a reader gets of provider, type, name and ``shown``.
    :param shown: gives, for a store, what makes a reader's value of one of its values.
    """

    def __init__(
        self,
        name: str,
        accepts: Callable[[object], bool],
        make: Callable[[Callable[[], Sequence[LocalStore]], str, Callable[[object], Shown]], T_co],
        shown: Callable[[object], Shown],
    ) -> None:
        self._name = name
        self._accepts = accepts
        self._make = make
        self._shown = shown

    def accepts(self, store: StateStore) -> bool:
        return self._accepts(store)

    def create(self, provider: StoreProvider, store_name: str) -> T_co:
        return self._make(lambda: provider.stores(store_name, self), store_name, self._shown)

    def __repr__(self) -> str:
        return f"QueryableStoreTypes.{self._name}"


def _kept(store: object) -> Shown:
    return as_it_is


def _is(kind: type, also: Callable[[object], bool] = lambda store: True) -> Callable[[object], bool]:
    return lambda store: isinstance(store, kind) and also(store)


class QueryableStoreTypes:
    """The store types of the package. A store that keeps more than a type shows is read without that."""

    KEY_VALUE_STORE: ClassVar[QueryableStoreType[ReadOnlyKeyValueStore[Any, Any]]] = _StoreType(
        "KEY_VALUE_STORE", _is(KeyValueStore), CompositeKeyValueStore, alone
    )
    TIMESTAMPED_KEY_VALUE_STORE: ClassVar[QueryableStoreType[ReadOnlyKeyValueStore[Any, ValueAndTimestamp[Any]]]] = (
        _StoreType("TIMESTAMPED_KEY_VALUE_STORE", _is(KeyValueStore, keeps_time), CompositeKeyValueStore, with_time)
    )
    TIMESTAMPED_KEY_VALUE_STORE_WITH_HEADERS: ClassVar[
        QueryableStoreType[ReadOnlyKeyValueStore[Any, ValueTimestampHeaders[Any]]]
    ] = _StoreType(
        "TIMESTAMPED_KEY_VALUE_STORE_WITH_HEADERS", _is(KeyValueStore, keeps_headers), CompositeKeyValueStore, _kept
    )
    VERSIONED_KEY_VALUE_STORE: ClassVar[QueryableStoreType[ReadOnlyVersionedKeyValueStore[Any, Any]]] = _StoreType(
        "VERSIONED_KEY_VALUE_STORE", _is(VersionedKeyValueStore), CompositeVersionedStore, _kept
    )
    WINDOW_STORE: ClassVar[QueryableStoreType[ReadOnlyWindowStore[Any, Any]]] = _StoreType(
        "WINDOW_STORE", _is(WindowStore), CompositeWindowStore, alone
    )
    TIMESTAMPED_WINDOW_STORE: ClassVar[QueryableStoreType[ReadOnlyWindowStore[Any, ValueAndTimestamp[Any]]]] = (
        _StoreType("TIMESTAMPED_WINDOW_STORE", _is(WindowStore, keeps_time), CompositeWindowStore, with_time)
    )
    TIMESTAMPED_WINDOW_STORE_WITH_HEADERS: ClassVar[
        QueryableStoreType[ReadOnlyWindowStore[Any, ValueTimestampHeaders[Any]]]
    ] = _StoreType(
        "TIMESTAMPED_WINDOW_STORE_WITH_HEADERS", _is(WindowStore, keeps_headers), CompositeWindowStore, _kept
    )
    SESSION_STORE: ClassVar[QueryableStoreType[ReadOnlySessionStore[Any, Any]]] = _StoreType(
        "SESSION_STORE", _is(SessionStore), CompositeSessionStore, alone
    )
    SESSION_STORE_WITH_HEADERS: ClassVar[QueryableStoreType[ReadOnlySessionStore[Any, AggregationWithHeaders[Any]]]] = (
        _StoreType("SESSION_STORE_WITH_HEADERS", _is(SessionStore, keeps_headers), CompositeSessionStore, _kept)
    )


def fitting_types(store: StateStore) -> list[QueryableStoreType[object]]:
    """The types as which a store of the package may be read."""
    types = [value for value in vars(QueryableStoreTypes).values() if isinstance(value, QueryableStoreType)]
    return [found for found in types if found.accepts(store)]
