"""Views: how an operator reads a table that is not its own, row by row.

A view knows which stores must be connected to the operator that reads, and ``build`` gives, once per task, what reads
a row by its key: ``(value, timestamp)``, or ``None`` where the table has no row. The value of a row is never ``None``.
A table without a store is computed on the way, from the rows it is made of and with their timestamps; errors of the
functions that compute it are those of the operator that reads (``KTableValueGetterSupplier``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from pykstreams.core.processor import OperatorContext
from pykstreams.processors.stores import history_rows, keyed_rows
from pykstreams.state.interfaces.operator_stores import KeyedRows, SerializedRows, VersionedRows

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")
K_contra = TypeVar("K_contra", contravariant=True)
V_co = TypeVar("V_co", covariant=True)

ReadRow: TypeAlias = Callable[[K], tuple[V, int] | None]
"""key -> (value, timestamp in ms), ``None`` where there is no row"""

ReadRowAsOf: TypeAlias = Callable[[K, int], tuple[V, int] | None]
"""(key, time in ms) -> (value, timestamp in ms) as of that time, ``None`` where there was no row"""

Compute: TypeAlias = Callable[[K, V | None], VR | None]
"""(key, value of the parent, which may be ``None``) -> value, ``None`` for no row"""


class TableView(Protocol[K_contra, V_co]):
    """A readable table."""

    @property
    def stores(self) -> tuple[str, ...]:
        """The stores to be connected to the operator that reads."""
        ...

    def as_forwarded(self) -> TableView[K_contra, V_co]:
        """The table as it last handed its rows on to other operators, without what caches still hold back."""
        ...

    def build(self, context: OperatorContext) -> ReadRow[K_contra, V_co]:
        """Makes the reader of rows for the operator whose context this is."""
        ...


AnyTableView: TypeAlias = TableView[Any, Any]
"""A view of a table of which only the user knows the types, as a graph keeps many side by side."""


@dataclass(frozen=True, slots=True)
class RowHistory(Generic[K_contra, V_co]):
    """The readers of how a row has changed.

    :param between: what the row was between two times.
    :param end: until when what it was at a time is valid.
    """

    between: Callable[[K_contra, int, int], Sequence[tuple[int, V_co | None]]]
    end: Callable[[K_contra, int], int | None]


@runtime_checkable
class HistoryView(Protocol[K_contra, V_co]):
    """A table that can be read as it was at a time, if the store that it is kept in is versioned."""

    def build_as_of(self, context: OperatorContext) -> ReadRowAsOf[K_contra, V_co] | None:
        """Makes the reader of rows as of a time; ``None`` where no versioned store keeps the table."""
        ...

    def build_history(self, context: OperatorContext) -> RowHistory[K_contra, V_co] | None:
        """Makes the readers of how a row has changed; ``None`` where no versioned store keeps the table."""
        ...


def reader_as_of(view: TableView[K, V], context: OperatorContext) -> ReadRowAsOf[K, V] | None:
    """Makes the reader of a table as of a time; ``None`` for one without history (``KTableValueGetter``, 4.3.1)."""
    return view.build_as_of(context) if isinstance(view, HistoryView) else None


def history_of(view: TableView[K, V], context: OperatorContext) -> RowHistory[K, V]:
    """Makes the readers of how the rows of a versioned table have changed; ``TypeError`` for any other table."""
    history = view.build_history(context) if isinstance(view, HistoryView) else None
    if history is None:
        raise TypeError(f"{context.node} reads the history of {view!r}, which no versioned store keeps")
    return history


@runtime_checkable
class SerializedView(Protocol):
    """A table whose rows may be read in the bytes that they are kept in, below what a cache holds back."""

    def build_serialized(
        self, context: OperatorContext, key_serializer: object, value_serializer: object
    ) -> SerializedRows | None:
        """Makes the readers; ``None`` unless the serializers, for whatever topic, would write the very bytes."""
        ...


def serialized_rows(
    view: AnyTableView, context: OperatorContext, key_serializer: object, value_serializer: object
) -> SerializedRows | None:
    """Makes the readers of a table as it last forwarded its rows, in bytes; ``None`` where that cannot be."""
    if not isinstance(view, SerializedView):
        return None
    return view.build_serialized(context, key_serializer, value_serializer)


@dataclass(frozen=True, slots=True)
class StoredView:
    """A table that is kept in a key-value store (``KTableMaterializedValueGetterSupplier``, 4.3.1).

    Its types are those that its reader declares, as are those of the store.

    :param forwarded: whether rows are read as the table last forwarded them, without what its cache holds back.
    """

    store: str
    forwarded: bool = False

    @property
    def stores(self) -> tuple[str, ...]:
        return (self.store,)

    def as_forwarded(self) -> StoredView:
        return replace(self, forwarded=True)

    def build(self, context: OperatorContext) -> ReadRow[K, V]:
        store: KeyedRows[K, V] = keyed_rows(context, self.store)
        return store.reader_below_cache() if self.forwarded else store.get_row

    def build_serialized(
        self, context: OperatorContext, key_serializer: object, value_serializer: object
    ) -> SerializedRows | None:
        store: KeyedRows[object, object] = keyed_rows(context, self.store)
        return store.serialized_below_cache(key_serializer, value_serializer)

    def build_as_of(self, context: OperatorContext) -> ReadRowAsOf[K, V] | None:
        store: VersionedRows[K, V] | None = history_rows(context, self.store)
        return None if store is None else store.get_row_as_of

    def build_history(self, context: OperatorContext) -> RowHistory[K, V] | None:
        store: VersionedRows[K, V] | None = history_rows(context, self.store)
        return None if store is None else RowHistory(store.get_timeline, store.get_end)


@dataclass(frozen=True, slots=True)
class ComputedView(Generic[K, V, VR]):
    """A table whose rows are computed one by one from its parent's (``KTableMapValuesValueGetter``, 4.3.1)."""

    parent: TableView[K, V]
    compute: Compute[K, V, VR]

    @property
    def stores(self) -> tuple[str, ...]:
        return self.parent.stores

    def as_forwarded(self) -> ComputedView[K, V, VR]:
        return replace(self, parent=self.parent.as_forwarded())

    def build(self, context: OperatorContext) -> ReadRow[K, VR]:
        read_parent, compute = self.parent.build(context), self.compute

        def read(key: K) -> tuple[VR, int] | None:
            row = read_parent(key)
            if row is None:
                return None
            value = compute(key, row[0])
            return None if value is None else (value, row[1])

        return read

    def build_as_of(self, context: OperatorContext) -> ReadRowAsOf[K, VR] | None:
        read_parent, compute = reader_as_of(self.parent, context), self.compute
        if read_parent is None:
            return None

        def read(key: K, time: int) -> tuple[VR, int] | None:
            row = read_parent(key, time)
            if row is None:
                return None
            value = compute(key, row[0])
            return None if value is None else (value, row[1])

        return read

    def build_history(self, context: OperatorContext) -> RowHistory[K, VR] | None:
        parent, compute = self.parent, self.compute
        history = parent.build_history(context) if isinstance(parent, HistoryView) else None
        if history is None:
            return None
        read_parent = history.between

        def between(key: K, time_from: int, time_to: int) -> list[tuple[int, VR | None]]:
            found = read_parent(key, time_from, time_to)
            return [(since, None if value is None else compute(key, value)) for since, value in found]

        return RowHistory(between, history.end)
