"""Stores of all partitions of a test driver seen as one, as interactive queries show them; only reads go over all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NoReturn, Protocol, TypeVar, cast

from pykstreams.runtime.queries.composite import (
    CompositeKeyValueStore,
    CompositeSessionStore,
    CompositeVersionedStore,
    CompositeWindowStore,
)
from pykstreams.runtime.queries.local_store import LocalStore
from pykstreams.state.interfaces.session_store import SessionStore
from pykstreams.state.interfaces.store import KeyValueStore
from pykstreams.state.interfaces.versioned_store import VersionedKeyValueStore
from pykstreams.state.interfaces.window_store import WindowStore
from pykstreams.state.queries.values import as_it_is

T = TypeVar("T")
S = TypeVar("S")


class _OpenStore:
    """The store of one partition, which nobody else touches while a test reads it."""

    def __init__(self, store: object) -> None:
        self._store = store

    def read(self, action: Callable[[object], T]) -> T:
        """Runs ``action(store)``."""
        return action(self._store)


class _Named(Protocol):
    """The part of a store that is the same for all kinds."""

    @property
    def name(self) -> str: ...


class _ReadOnly:
    """The rest of each view: what goes over all partitions is read only."""

    name = ""
    partitions = 0

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"store {self.name!r} has {self.partitions} partitions, of which {name} needs one; use "
            f"driver.get_state_store({self.name!r}, partition) for it"
        )

    def __setitem__(self, key: object, value: object) -> None:
        self.__getattr__("put")

    def __delitem__(self, key: object) -> None:
        self.__getattr__("delete")


class _KeyValues(_ReadOnly, CompositeKeyValueStore[object, object]):
    pass


class _Windows(_ReadOnly, CompositeWindowStore[object, object]):
    pass


class _Sessions(_ReadOnly, CompositeSessionStore[object, object]):
    pass


class _Versions(_ReadOnly, CompositeVersionedStore[object, object]):
    pass


_VIEWS: Final = (
    (KeyValueStore, _KeyValues),
    (WindowStore, _Windows),
    (SessionStore, _Sessions),
    (VersionedKeyValueStore, _Versions),
)


def over_all(stores: Sequence[S]) -> S:
    """Returns one store for those of all partitions, which are of one kind and in their order: the only one, or a view.

    A key is looked for in one partition after the other, and rows of several come partition by partition.
    """
    if len(stores) == 1:
        return stores[0]
    opened = cast("Sequence[LocalStore]", [_OpenStore(store) for store in stores])
    name = cast("_Named", stores[0]).name
    make = next(view for kind, view in _VIEWS if isinstance(stores[0], kind))
    found = make(lambda: opened, name, lambda store: as_it_is)
    found.name, found.partitions = name, len(stores)
    return cast("S", found)
