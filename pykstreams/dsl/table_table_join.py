"""Joins of tables by their keys: what ``KTable.join``, ``left_join`` and ``outer_join`` put into the graph."""

from __future__ import annotations

from typing import Any

from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import ValueJoiner
from pykstreams.dsl.materialization import TableStore, options_of, table_store
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.stream import Place
from pykstreams.dsl.tables import JoinedTable, TableLogic
from pykstreams.processors import JoinedView, TableTableJoin, TableView
from pykstreams.topology.graph import GraphNode, is_versioned
from pykstreams.topology.topology import Topology

_MERGE = "KTABLE-MERGE-"


class KeyJoinedTable(JoinedTable):
    """The join of two tables, both of which are read through their views and so have stores somewhere above."""

    def __init__(
        self,
        left: TableLogic,
        right: TableLogic,
        store: TableStore | None,
        joiner: ValueJoiner[Any, Any, Any],
        nodes: tuple[GraphNode, GraphNode],
        *,
        left_is_optional: bool,
        right_is_optional: bool,
    ) -> None:
        super().__init__(store)
        self._parents = left, right
        self._nodes = nodes
        self._joiner = joiner
        self._optional = left_is_optional, right_is_optional
        self.left_view, self.right_view = left.view(), right.view()

    def send_old_values(self, *, force: bool) -> bool:
        for parent in self._parents:
            parent.send_old_values(force=True)
        self.sends_old_values = True
        return True

    def left_operator(self) -> OperatorSupplier:
        """Joins changes of the left table."""
        left_is_optional, right_is_optional = self._optional
        return TableTableJoin(
            self.right_view,
            self._joiner,
            left_is_optional,
            right_is_optional,
            self.sends_old_values,
            is_versioned(self._nodes[0]),
        )

    def right_operator(self) -> OperatorSupplier:
        """Joins changes of the right table."""
        left_is_optional, right_is_optional = self._optional
        joiner = self._joiner

        def mirrored(right: Any, left: Any) -> Any:
            return joiner(left, right)

        return TableTableJoin(
            self.left_view,
            mirrored,
            right_is_optional,
            left_is_optional,
            self.sends_old_values,
            is_versioned(self._nodes[1]),
        )

    def _view_without_store(self) -> TableView:
        return JoinedView(self.left_view, self.right_view, self._joiner, *self._optional)


class TableTableJoinNode(GraphNode):
    """A join as three processors: one for the changes of each table, and the merger, whose name the node has."""

    def __init__(self, name: str, names: tuple[str, str], parents: tuple[str, str], logic: KeyJoinedTable) -> None:
        super().__init__(name)
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
        topology.connect_processor_and_state_stores(left, *logic.right_view.stores)
        topology.connect_processor_and_state_stores(right, *logic.left_view.stores)


def join_tables(
    left: tuple[Place, TableLogic],
    right: tuple[Place, TableLogic],
    joiner: ValueJoiner[Any, Any, Any],
    materialized: Materialized[Any, Any] | str | None,
    name: str | None,
    *,
    left_is_optional: bool,
    right_is_optional: bool,
) -> tuple[Place, TableLogic, str | None]:
    """Adds the join and gives what the joined ``KTable`` consists of (``KTableImpl.doJoin``, 4.3.1).

    The topics of both tables must have equal partition counts.
    """
    (left_place, left_logic), (right_place, right_logic) = left, right
    graph, key_serde = left_place.graph, left_place.key_serde
    store = None
    if materialized is not None:
        store = table_store(graph, options_of(materialized), _MERGE, key_serde, None)
        key_serde = store.key_serde
    merge_name = graph.namer.named(name, _MERGE)
    sources = left_place.sources | right_place.sources
    graph.copartitioned.append(set(sources))
    if right_is_optional:
        left_logic.send_old_values(force=True)
    if left_is_optional:
        right_logic.send_old_values(force=True)
    logic = KeyJoinedTable(
        left_logic,
        right_logic,
        store,
        joiner,
        (left_place.node, right_place.node),
        left_is_optional=left_is_optional,
        right_is_optional=right_is_optional,
    )
    names = (
        graph.namer.suffixed(name, "-join-this", "KTABLE-JOINTHIS-"),
        graph.namer.suffixed(name, "-join-other", "KTABLE-JOINOTHER-"),
    )
    node = TableTableJoinNode(merge_name, names, (left_place.name, right_place.name), logic)
    node.versioned = logic.history_ms is not None
    graph.add(node, left_place.node, right_place.node)
    value_serde = None if store is None else store.value_serde
    place = Place(graph, node, merge_name, key_serde, value_serde, sources, partitioner=left_place.partitioner)
    return place, logic, None if store is None else store.name
