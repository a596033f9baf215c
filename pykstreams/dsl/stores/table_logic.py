"""The logic of tables before anything runs: the operator of each, its store if it has one, and its parent.

Two things about a table are decided by what comes after it: whether it sends old values beside new ones, and whether
a table read from a topic keeps a store at all. ``send_old_values`` asks for the first and may bring the second about;
``materialize_view`` does so always, since somebody wants to read the table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

from pykstreams.core.processor import OperatorSupplier
from pykstreams.dsl.stores.materialization import TableStore
from pykstreams.processors import AnyTableView, StoredView, TableSource, TableTableJoinMerger
from pykstreams.topology.stores import StoreFactory


class TableLogic(ABC):
    """One table of the script; asked for its operator when the graph is written."""

    sends_old_values = False

    @abstractmethod
    def send_old_values(self, *, force: bool) -> bool:
        """Makes the table send old values from now on; without ``force`` only where no store must be added for it.

        Returns false where it does not send them.
        """

    @abstractmethod
    def operator(self) -> OperatorSupplier:
        """The operator, by what is known now."""

    @abstractmethod
    def stores(self) -> tuple[StoreFactory, ...]:
        """The stores that the operator brings."""

    @abstractmethod
    def materialize_view(self) -> AnyTableView:
        """Stores from now on what others need to read the table, and returns how they read it.

        Source: ``KTableImpl.valueGetterSupplier``, 4.3.1.
        """

    @property
    def history_ms(self) -> int | None:
        """For how long others can read the table as it was; ``None`` for one that is not versioned."""
        return None


class SourceTable(TableLogic):
    """A table read from records; keeps a store only if the user named one or something needs it."""

    def __init__(self, store: TableStore) -> None:
        self._store = store
        self._stored = store.queryable or store.expiry is not None

    def send_old_values(self, *, force: bool) -> bool:
        if force or self._stored:
            self._stored = self.sends_old_values = True
        return self.sends_old_values

    def operator(self) -> OperatorSupplier:
        table = TableSource(self._store.name if self._stored else None, self.sends_old_values)
        return self._store.expiring(table, takes_record_time=True)

    def stores(self) -> tuple[StoreFactory, ...]:
        return (*self._store.indexes, self._store) if self._stored else ()

    def materialize_view(self) -> AnyTableView:
        self._stored = True
        return StoredView(self._store.name)

    @property
    def history_ms(self) -> int | None:
        return self._store.history_ms


class JoinedTable(TableLogic):
    """The result of a join of tables: kept by its merger if the user named a store, else read from its parents."""

    def __init__(self, store: TableStore | None) -> None:
        self._store = store

    def operator(self) -> OperatorSupplier:
        return TableTableJoinMerger(None if self._store is None else self._store.name, self.sends_old_values)

    def stores(self) -> tuple[StoreFactory, ...]:
        return () if self._store is None else (self._store,)

    def materialize_view(self) -> AnyTableView:
        return self._view_without_store() if self._store is None else StoredView(self._store.name)

    @property
    def history_ms(self) -> int | None:
        return None if self._store is None else self._store.history_ms

    @abstractmethod
    def _view_without_store(self) -> AnyTableView:
        """How a table is read that has no store of its own."""


class TableStoreFactory(StoreFactory, Protocol):
    """The store of a table of any kind."""

    @property
    def indexes(self) -> tuple[StoreFactory, ...]:
        """The stores beside it in which its rows are found."""
        ...

    @property
    def history_ms(self) -> int | None:
        """How long old versions are kept; ``None`` for a store that is not versioned."""
        ...


class AggregatedTable(TableLogic):
    """The table of an aggregation, which always has a store.

    ``make(store name, sends old values)`` returns the operator, ``view(store name)`` how the store is read.
    """

    def __init__(
        self,
        store: TableStoreFactory,
        make: Callable[[str, bool], OperatorSupplier],
        view: Callable[[str], AnyTableView] = StoredView,
    ) -> None:
        self._store = store
        self._make = make
        self._view = view

    def send_old_values(self, *, force: bool) -> bool:
        self.sends_old_values = True
        return True

    def operator(self) -> OperatorSupplier:
        return self._make(self._store.name, self.sends_old_values)

    def stores(self) -> tuple[StoreFactory, ...]:
        return (*self._store.indexes, self._store)

    def materialize_view(self) -> AnyTableView:
        return self._view(self._store.name)

    @property
    def history_ms(self) -> int | None:
        return self._store.history_ms


class DerivedOperator(OperatorSupplier, Protocol):
    """An operator that computes its table row by row, and so can be read through its parent's view."""

    def view(self, parent: AnyTableView) -> AnyTableView:
        """The table as it is read where it has no store."""
        ...


class DerivedTable(TableLogic):
    """A filtered or mapped table; without a store of its own it computes old values and views from its parent's.

    ``make(store name or None, sends old values)`` gives the operator.
    """

    def __init__(
        self,
        parent: TableLogic,
        store: TableStore | None,
        make: Callable[[str | None, bool], DerivedOperator],
    ) -> None:
        self._parent = parent
        self._store = store
        self._make = make

    def send_old_values(self, *, force: bool) -> bool:
        if self._store is not None or self._parent.send_old_values(force=force):
            self.sends_old_values = True
        return self.sends_old_values

    def follow_parent(self) -> None:
        """Sends old values if the parent can do so without a new store."""
        self.sends_old_values = self._parent.send_old_values(force=False)

    def operator(self) -> OperatorSupplier:
        return self._make(None if self._store is None else self._store.name, self.sends_old_values)

    def stores(self) -> tuple[StoreFactory, ...]:
        return () if self._store is None else (self._store,)

    def materialize_view(self) -> AnyTableView:
        if self._store is not None:
            return StoredView(self._store.name)
        return self._make(None, False).view(self._parent.materialize_view())

    @property
    def history_ms(self) -> int | None:
        return self._parent.history_ms if self._store is None else self._store.history_ms
