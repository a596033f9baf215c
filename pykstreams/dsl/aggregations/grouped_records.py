"""The records of a grouped stream, for all its aggregations: the repartition topic before these, and their tables.

A repartition topic that the user named serves every aggregation of the grouped stream; one that is named after a store
serves that store's aggregation only (``GroupedStreamAggregateBuilder``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from pykstreams.dsl.aggregations.late_records import LateRecordsTo, add_late_child, late_child_of
from pykstreams.dsl.options import Grouped
from pykstreams.dsl.place import Place
from pykstreams.dsl.record_serdes import RecordSerdes
from pykstreams.dsl.repartitioning import repartition_node
from pykstreams.dsl.stores.materialization import DslStore
from pykstreams.dsl.stores.table_logic import TableLogic
from pykstreams.dsl.table import Table
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.topology.graph import GraphNode, OperatorNode, RepartitionNode, WindowClosing
from pykstreams.topology.placement.key_placement import KeyPlacement

K = TypeVar("K")
V = TypeVar("V")
S = TypeVar("S")


class GroupedRecords(Generic[K, V, S]):
    """The records of a grouped stream, before any aggregation; ``make_stream`` makes streams of what is no table."""

    def __init__(self, place: Place, options: Grouped[K, V], make_stream: Callable[[Place], S]) -> None:
        self.place = place
        self.options = options
        self.make_stream = make_stream
        self._repartition: RepartitionNode | None = None

    @property
    def record_serdes(self) -> RecordSerdes:
        """Those of the records that aggregators get: as they come, or as they are read behind a repartition topic."""
        given = self.options if self.place.is_scattered else self.place
        return RecordSerdes(self.place.graph, given.key_serde, given.value_serde, self.place.name)

    def aggregated(
        self,
        name: str,
        store: DslStore,
        logic: TableLogic,
        key_serde: SerdeOrDefault,
        *,
        closing: WindowClosing | None = None,
        late_records_to: LateRecordsTo[S] | None = None,
    ) -> Table:
        """Adds an aggregation of that name over that store, behind a repartition topic where one is needed.

        An operator that is to give ``late_records_to`` something knows its child by ``late_child_of``.
        """
        graph, sources = self.place.graph, self.place.sources
        parent: GraphNode = self.place.node
        node = OperatorNode(
            name, logic.operator, stores=logic.stores, closing=closing, versioned=store.history_ms is not None
        )
        if self.place.is_scattered:
            parent = self.repartitioned(store)
            sources = frozenset({parent.name})
        graph.add(node, parent)
        late_child = late_child_of(name, late_records_to)
        if late_records_to is not None and late_child is not None:
            given = self.options
            add_late_child(
                Place(graph, node, name, given.key_serde, given.value_serde, sources),
                late_child,
                late_records_to,
                self.make_stream,
            )
        return Table(Place(graph, node, name, key_serde, store.value_serde, sources), logic, store)

    def repartitioned(self, store: DslStore) -> RepartitionNode:
        """The repartition node before an aggregation over that store, added to the graph."""
        made = self.new_repartition(store)
        if self._repartition is None or self.options.name is None:
            self._repartition = made
        self.place.graph.add(self._repartition, self.place.node)
        return self._repartition

    def new_repartition(self, store: DslStore, placement: KeyPlacement | None = None) -> RepartitionNode:
        """A repartition node named after the grouping or else after that store; not yet in the graph."""
        options = self.options
        return repartition_node(
            self.place.graph,
            store.name if options.name is None else options.name,
            options.key_serde,
            options.value_serde,
            named=options.name is not None or store.queryable,
            optimizable=self.place.rekeyed,
            placement=placement,
        )
