"""The records of cogrouped streams, and the aggregation of all of them over one store.

In the graph this is one aggregation a grouped stream, all over the same store, and below them one node that merges what
they forward. The table is the merging node's; it is read from the store, and asks the aggregations for old values.

Invariant: an aggregate is changed by one record at a time, since all inputs of a key are read by the same task; their
topics must have equal partition counts (``CogroupedStreamAggregateBuilder``, 4.3.1; KIP-150).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, Generic, TypeAlias

from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import VR, Aggregator, Initializer, K
from pykstreams.dsl.aggregations.grouped_records import GroupedRecords
from pykstreams.dsl.annotations.argument_types import aggregate_types, note_contradiction
from pykstreams.dsl.annotations.inference import aggregate_serde, merged, passed_on
from pykstreams.dsl.key_types import Side, note_unlike_keys, refuse_unlike_keys, stand_in
from pykstreams.dsl.place import Place, common_placement
from pykstreams.dsl.record_serdes import RecordSerdes
from pykstreams.dsl.stores.materialization import TableStore
from pykstreams.dsl.stores.session_materialization import SessionTableStore
from pykstreams.dsl.stores.table_logic import AggregatedTable
from pykstreams.dsl.stores.window_materialization import WindowTableStore
from pykstreams.dsl.table import Table
from pykstreams.processors import AnyTableView, PassThrough
from pykstreams.serdes.defaults import OverDefault, SerdeOrDefault
from pykstreams.topology.graph import Graph, GraphNode, OperatorNode, WindowClosing
from pykstreams.topology.placement.key_placement import KeyPlacement

AGGREGATE = "COGROUPKSTREAM-AGGREGATE-"
_MERGE = "COGROUPKSTREAM-MERGE-"
_CURE: Final = (
    "give all streams keys of one type by select_key or group_by, or the table a serde of all their keys, "
    "Materialized(key_serde=...)"
)

_Store: TypeAlias = TableStore | WindowTableStore | SessionTableStore

OneStream: TypeAlias = GroupedRecords[K, Any, Any]
"""One of the streams, each of which has values, and late records, of a type of its own."""

OneAggregator: TypeAlias = Aggregator[K, Any, VR]
"""The aggregator of one of them."""


class CogroupedRecords(Generic[K, VR]):
    """The grouped streams of a cogrouped one and the aggregator of each, in the order of adding."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._aggregators: dict[OneStream[K], OneAggregator[K, VR]] = {}
        self._returned: type[VR] | None = None
        self._repartitions: dict[OneStream[K], GraphNode] = {}

    def add(self, records: OneStream[K], aggregator: OneAggregator[K, VR], returns: type[VR] | None) -> None:
        """Adds a grouped stream; one that is there already gets another aggregator."""
        self._aggregators[records] = aggregator
        self._returned = returns or self._returned

    @property
    def names(self) -> str:
        """The processors that the streams come from, as text."""
        return " and ".join(records.place.name for records in self._aggregators)

    def key_serde(self) -> SerdeOrDefault:
        """The serde of keys that all streams have, where it stands for a type; else the default."""
        first, *others = (records.options.key_serde for records in self._aggregators)
        return functools.reduce(merged, others, passed_on(first)) or self._lacking_keys()

    def _lacking_keys(self) -> SerdeOrDefault:
        """A stand-in for the default that says which keys differ, if that is why there is none."""
        first, *others = (_keys_of(records) for records in self._aggregators)
        return next((found for other in others if (found := stand_in("cogroup", first, other))), None)

    @property
    def record_serdes(self) -> RecordSerdes:
        """Those of the records that functions get which are for all streams: of their keys."""
        return RecordSerdes(self.graph, self.key_serde(), None)

    def value_serde(self, initializer: Initializer[VR]) -> SerdeOrDefault:
        """The serde of aggregates, where the functions say their type; else the default.

        Aggregators that cannot take what aggregates begin with are noted in the graph.
        """
        known = aggregate_types(initializer)
        for aggregator in self._aggregators.values():
            note_contradiction(
                self.graph, "CogroupedKStream.aggregate", aggregator, ("key", "value", "aggregate"), known
            )
        said = () if self._returned is None else (self._returned,)
        return aggregate_serde(initializer, *said, *self._aggregators.values())

    def aggregated(
        self,
        name: str | None,
        store: _Store,
        operator: Callable[[OneAggregator[K, VR], bool], OperatorSupplier],
        view: Callable[[str], AnyTableView],
        key_serde: SerdeOrDefault,
        closing: WindowClosing | None = None,
    ) -> Table:
        """Adds an aggregation of all these streams over that store.

        ``operator(aggregator, sends old values)`` gives the operator of one of them, ``view(store name)`` how the store
        is read.
        """
        graph = self.graph
        self._check_keys(store.key_serde)
        placement = common_placement(*(records.place for records in self._aggregators))
        parents = [self._parent(records, store, placement) for records in self._aggregators]
        sources = frozenset().union(*(sources for _, sources in parents))
        graph.copartitioned.append(set(sources))
        logic = AggregatedTable(store, lambda kept, old: PassThrough(), view)
        aggregations: list[GraphNode] = []
        for number, (aggregator, (parent, _)) in enumerate(zip(self._aggregators.values(), parents, strict=True)):
            node = OperatorNode(
                graph.namer.suffixed(name, f"-cogroup-agg-{number}", AGGREGATE),
                _operator_of(logic, operator, aggregator),
                stores=logic.stores,
                closing=closing,
                versioned=store.history_ms is not None,
            )
            graph.add(node, parent)
            aggregations.append(node)
        merge = OperatorNode(graph.namer.suffixed(name, "-cogroup-merge", _MERGE), logic.operator)
        graph.add(merge, *aggregations)
        return Table(Place(graph, merge, merge.name, key_serde, store.value_serde, sources), logic, store)

    def _check_keys(self, serde: SerdeOrDefault) -> None:
        """Refuses keys that the store cannot have; notes those that never meet, where no serde is known for all."""
        first, *others = (_keys_of(records) for records in self._aggregators)
        pairs = [pair for other in others for pair in ((first, other), (other, first))]
        refuse_unlike_keys("cogroup", [(one, other, serde) for one, other in pairs], _CURE)
        if serde is None or isinstance(serde, OverDefault):
            for other in others:
                note_unlike_keys(self.graph, "cogroup", first, other, _CURE)

    def _parent(
        self, records: OneStream[K], store: _Store, placement: KeyPlacement | None
    ) -> tuple[GraphNode, frozenset[str]]:
        """Where a stream is aggregated, and the sources above.

        That may be behind a repartition topic, which then serves all aggregations of the cogrouped stream. Names are
        used up for each of them (``processRepartitions``, 4.3.1).
        """
        place = records.place
        if not place.is_scattered and place.placement == placement:
            return place.node, place.sources
        made = records.new_repartition(store, placement)
        if records not in self._repartitions:
            self._repartitions[records] = made
            self.graph.add(made, place.node)
        node = self._repartitions[records]
        return node, frozenset({node.name})


def _keys_of(records: OneStream[Any]) -> Side:
    return Side(records.place.name, records.record_serdes.key_serde)


def _operator_of(
    logic: AggregatedTable,
    operator: Callable[[OneAggregator[K, VR], bool], OperatorSupplier],
    aggregator: OneAggregator[K, VR],
) -> Callable[[], OperatorSupplier]:
    """Makes the operator when the graph is written, and it is known whether the table sends old values."""
    return lambda: operator(aggregator, logic.sends_old_values)
