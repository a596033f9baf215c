"""Joins of tables by their keys: what ``KTable.join``, ``left_join`` and ``outer_join`` put into the graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, Protocol

from pykstreams.core.errors import TopologyError
from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import KR, V1, V2, VR, ValueJoiner
from pykstreams.dsl.annotations.inference import value_serde
from pykstreams.dsl.joins.join_kind import JoinKind
from pykstreams.dsl.joins.optional_sides import over_missing_rows
from pykstreams.dsl.joins.table_placement import check_placed_alike
from pykstreams.dsl.key_types import keys_of, note_unlike_keys, refuse_unlike_keys
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.place import Place
from pykstreams.dsl.stores.materialization import TableStore, options_of, table_store
from pykstreams.dsl.stores.table_logic import JoinedTable, TableLogic
from pykstreams.dsl.table import Table
from pykstreams.processors import (
    AnyTableView,
    CompleteJoin,
    CompleteJoinMerger,
    JoinedView,
    StoredView,
    TableTableJoin,
)
from pykstreams.topology.graph import GraphNode, is_versioned
from pykstreams.topology.stores import StoreFactory
from pykstreams.topology.topology import Topology

_MERGE = "KTABLE-MERGE-"


class JoinLogic(Protocol):
    """A joined table that has an operator for each side, and the stores which that operator reads."""

    def operator(self) -> OperatorSupplier:
        """Merges what both sides give."""
        ...

    def stores(self) -> tuple[StoreFactory, ...]:
        """The stores that the merger brings."""
        ...

    def left_operator(self) -> OperatorSupplier:
        """Joins changes of the left table."""
        ...

    def right_operator(self) -> OperatorSupplier:
        """Joins changes of the right table."""
        ...

    @property
    def history_ms(self) -> int | None:
        """For how long others can read the result as it was; ``None`` where it is not versioned."""
        ...

    @property
    def read_by_left(self) -> tuple[str, ...]:
        """The stores that the left operator reads."""
        ...

    @property
    def read_by_right(self) -> tuple[str, ...]:
        """The stores that the right operator reads."""
        ...


class KeyJoinedTable(JoinedTable, Generic[V1, V2, VR]):
    """The join of two tables, both of which are read through their views and so have stores somewhere above."""

    def __init__(
        self,
        left: TableLogic,
        right: TableLogic,
        store: TableStore | None,
        joiner: ValueJoiner[V1 | None, V2 | None, VR | None],
        nodes: tuple[GraphNode, GraphNode],
        kind: JoinKind,
    ) -> None:
        super().__init__(store)
        self._parents = left, right
        self._nodes = nodes
        self._joiner = joiner
        self._kind = kind
        self._left_view, self._right_view = left.materialize_view(), right.materialize_view()

    def send_old_values(self, *, force: bool) -> bool:
        for parent in self._parents:
            parent.send_old_values(force=True)
        self.sends_old_values = True
        return True

    def left_operator(self) -> OperatorSupplier:
        return TableTableJoin(
            self._right_view,
            self._joiner,
            self._kind.keeps_right,
            self._kind.keeps_left,
            self.sends_old_values,
            is_versioned(self._nodes[0]),
        )

    def right_operator(self) -> OperatorSupplier:
        return TableTableJoin(
            self._left_view,
            _mirrored(self._joiner),
            self._kind.keeps_left,
            self._kind.keeps_right,
            self.sends_old_values,
            is_versioned(self._nodes[1]),
        )

    @property
    def read_by_left(self) -> tuple[str, ...]:
        return self._right_view.stores

    @property
    def read_by_right(self) -> tuple[str, ...]:
        return self._left_view.stores

    def _view_without_store(self) -> AnyTableView:
        kind = self._kind
        return JoinedView(self._left_view, self._right_view, self._joiner, kind.keeps_right, kind.keeps_left)


class CompletelyJoinedTable(TableLogic, Generic[V1, V2, VR]):
    """The join of two versioned tables whose results are corrected when a row comes late; always kept, and versioned.

    Both sides read both tables, and the joined one.
    """

    def __init__(
        self,
        left: TableLogic,
        right: TableLogic,
        store: TableStore,
        joiner: ValueJoiner[V1 | None, V2 | None, VR | None],
        kind: JoinKind,
    ) -> None:
        self._store = store
        self._joiner = joiner
        self._kind = kind
        self._left_view, self._right_view = left.materialize_view(), right.materialize_view()

    def send_old_values(self, *, force: bool) -> bool:
        self.sends_old_values = True
        return True

    def operator(self) -> OperatorSupplier:
        return CompleteJoinMerger(self._store.name, self.sends_old_values)

    def left_operator(self) -> OperatorSupplier:
        return CompleteJoin(
            self._left_view,
            self._right_view,
            self._store.name,
            self._joiner,
            self._kind.keeps_right,
            self._kind.keeps_left,
        )

    def right_operator(self) -> OperatorSupplier:
        return CompleteJoin(
            self._right_view,
            self._left_view,
            self._store.name,
            _mirrored(self._joiner),
            self._kind.keeps_left,
            self._kind.keeps_right,
        )

    @property
    def read_by_left(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._right_view.stores, *self._left_view.stores, self._store.name)))

    @property
    def read_by_right(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._left_view.stores, *self._right_view.stores, self._store.name)))

    def stores(self) -> tuple[StoreFactory, ...]:
        return (self._store,)

    def materialize_view(self) -> AnyTableView:
        return StoredView(self._store.name)

    @property
    def history_ms(self) -> int | None:
        return self._store.history_ms


class TableTableJoinNode(GraphNode):
    """A join as three processors: one for the changes of each table, and the merger, whose name the node has."""

    def __init__(self, name: str, names: tuple[str, str], parents: tuple[str, str], logic: JoinLogic) -> None:
        super().__init__(name, versioned=logic.history_ms is not None)
        self._names = names
        self._parents = parents
        self._logic = logic

    def write(self, topology: Topology) -> None:
        logic, (left, right), (left_parent, right_parent) = self._logic, self._names, self._parents
        topology.add_processor(left, logic.left_operator(), left_parent)
        topology.add_processor(right, logic.right_operator(), right_parent)
        topology.add_processor(self.name, logic.operator(), left, right)
        for store in logic.stores():
            topology.add_state_store(store, self.name)
        topology.connect_processor_and_state_stores(left, *logic.read_by_left)
        topology.connect_processor_and_state_stores(right, *logic.read_by_right)


def join_tables(
    left: Table,
    right: Table,
    joiner: ValueJoiner[V1, V2, VR | None],
    materialized: Materialized[KR, VR] | str | None,
    name: str | None,
    kind: JoinKind,
    *,
    complete_history: bool = False,
) -> Table:
    """Adds the join and returns the joined table (``KTableImpl.doJoin``, 4.3.1).

    The topics of both tables must have equal partition counts. With ``complete_history`` both must be versioned, and
    the result be kept in a versioned store.
    """
    left_place, right_place = left.place, right.place
    check_placed_alike(left_place, right_place)
    _check_keys(left_place, right_place)
    graph, key_serde = left_place.graph, left_place.key_serde
    store, values = None, value_serde(joiner)
    if materialized is not None:
        store = table_store(graph, options_of(materialized), _MERGE, key_serde, values)
        store = replace(store, queryable=True)  # by a generated name, too: KTableImpl.doJoin, 4.3.1
        key_serde = store.key_serde
    merge_name = graph.namer.named(name, _MERGE)
    sources = left_place.sources | right_place.sources
    graph.copartitioned.append(set(sources))
    logic: KeyJoinedTable[V1, V2, VR] | CompletelyJoinedTable[V1, V2, VR]
    if complete_history:
        logic = CompletelyJoinedTable(
            left.logic,
            right.logic,
            _versioned_result(store, left, right),
            over_missing_rows(joiner),
            kind,
        )
    else:
        if kind.keeps_left:
            left.logic.send_old_values(force=True)
        if kind.keeps_right:
            right.logic.send_old_values(force=True)
        logic = KeyJoinedTable(
            left.logic,
            right.logic,
            store,
            over_missing_rows(joiner),
            (left_place.node, right_place.node),
            kind,
        )
    names = (
        graph.namer.suffixed(name, "-join-this", "KTABLE-JOINTHIS-"),
        graph.namer.suffixed(name, "-join-other", "KTABLE-JOINOTHER-"),
    )
    node = TableTableJoinNode(merge_name, names, (left_place.name, right_place.name), logic)
    graph.add(node, left_place.node, right_place.node)
    values = values if store is None else store.value_serde
    place = Place(graph, node, merge_name, key_serde, values, sources, partitioner=left_place.partitioner)
    return Table(place, logic, store)


def _check_keys(left: Place, right: Place) -> None:
    ones, others = keys_of(left), keys_of(right)
    cure = (
        "join by a key in the rows, foreign_key_extractor=..., give one of the tables the keys of the other, "
        "to_stream().select_key(...).to_table(), or correct the type of either"
    )
    refuse_unlike_keys("join", [(ones, others, others.serde), (others, ones, ones.serde)], cure)
    note_unlike_keys(left.graph, "join", ones, others, cure)


def _versioned_result(store: TableStore | None, left: Table, right: Table) -> TableStore:
    """The store of a join with complete history; ``TopologyError`` where it, or a table, keeps no history."""
    join = f"join of {left.place.name} with {right.place.name} has complete_history=True"
    supplier = "Stores.persistent_versioned_key_value_store(name, history_retention)"
    for table in (left, right):
        if table.history_ms is None:
            raise TopologyError(
                f"{join}, but {table.place.name} is not versioned: nobody could tell with what to join a late row of "
                f"the other table. Keep {table.place.name} in a versioned store, Materialized({supplier}), or leave "
                "complete_history away"
            )
    if store is None or store.history_ms is None:
        kept = "is not kept" if store is None else f"is kept in {store.name!r}, which is not versioned"
        raise TopologyError(
            f"{join}, but its result {kept}: there would be no older results to correct. Give "
            f"materialized=Materialized({supplier}), or leave complete_history away"
        )
    return store


def _mirrored(joiner: ValueJoiner[V1, V2, VR | None]) -> ValueJoiner[V2, V1, VR | None]:
    def mirrored(right: V2, left: V1) -> VR | None:
        return joiner(left, right)

    return mirrored
