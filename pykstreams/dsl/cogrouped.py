"""Cogrouped streams: several grouped streams with one aggregate a key, and so with one store.

In the graph this is one aggregation a grouped stream, all over the same store, and below them one node that merges what
they hand on. The table is the merging node's; it is read from the store, and asks the aggregations for old values.

Invariant: an aggregate is changed by one record at a time, since all inputs of a key are read by the same task; their
topics must have equal partition counts (``CogroupedStreamAggregateBuilder``, 4.3.1; KIP-150).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import Aggregator, Initializer, Merger
from pykstreams.core.windows import EmitStrategy, SessionWindows, SlidingWindows, Windowed, Windows
from pykstreams.dsl.aggregations.grouped_records import GroupedRecords
from pykstreams.dsl.ktable import KTable
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.place import Place
from pykstreams.dsl.stores.materialization import TableStore, options_of, table_store
from pykstreams.dsl.stores.session_materialization import SessionTableStore, session_table_store
from pykstreams.dsl.stores.tables import AggregatedTable
from pykstreams.dsl.stores.window_materialization import WindowTableStore, window_table_store
from pykstreams.dsl.table import Table
from pykstreams.dsl.windowed import checked_windows, window_operator, windowed_key_serde
from pykstreams.processors import (
    Aggregation,
    PassThrough,
    SessionAggregate,
    SessionAggregation,
    StoredView,
    StreamAggregate,
    TableView,
    WindowedView,
)
from pykstreams.serdes.base import Serde
from pykstreams.serdes.windowed import SessionWindowedSerde
from pykstreams.topology.graph import Graph, GraphNode, OperatorNode

if TYPE_CHECKING:
    from pykstreams.dsl.grouped import KGroupedStream

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")

_AGGREGATE = "COGROUPKSTREAM-AGGREGATE-"
_MERGE = "COGROUPKSTREAM-MERGE-"

_Store: TypeAlias = TableStore | WindowTableStore | SessionTableStore


class CogroupedRecords:
    """The grouped streams of a cogrouped one and the aggregator of each, in the order of adding."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._aggregators: dict[GroupedRecords, Aggregator[Any, Any, Any]] = {}
        self._repartitions: dict[GroupedRecords, GraphNode] = {}

    def add(self, records: GroupedRecords, aggregator: Aggregator[Any, Any, Any]) -> None:
        """Adds a grouped stream; one that is there already gets another aggregator."""
        self._aggregators[records] = aggregator

    def aggregated(
        self,
        name: str | None,
        store: _Store,
        operator: Callable[[Aggregator[Any, Any, Any], bool], OperatorSupplier],
        view: Callable[[str], TableView],
        key_serde: Serde[Any] | None,
        grace_ms: int | None = None,
    ) -> Table:
        """Adds an aggregation of all these streams over that store.

        ``operator(aggregator, sends old values)`` gives the operator of one of them, ``view(store name)`` how the store
        is read.
        """
        graph = self.graph
        parents = [self._parent(records, store) for records in self._aggregators]
        sources = frozenset().union(*(sources for _, sources in parents))
        graph.copartitioned.append(set(sources))
        logic = AggregatedTable(store, lambda kept, old: PassThrough(), view)
        aggregations: list[GraphNode] = []
        for number, (aggregator, (parent, _)) in enumerate(zip(self._aggregators.values(), parents, strict=True)):
            node = OperatorNode(
                graph.namer.suffixed(name, f"-cogroup-agg-{number}", _AGGREGATE),
                _asking(logic, operator, aggregator),
                stores=logic.stores,
                grace_ms=grace_ms,
                versioned=store.history_ms is not None,
            )
            graph.add(node, parent)
            aggregations.append(node)
        merge = OperatorNode(graph.namer.suffixed(name, "-cogroup-merge", _MERGE), logic.operator)
        graph.add(merge, *aggregations)
        return Table(Place(graph, merge, merge.name, key_serde, store.value_serde, sources), logic, store)

    def _parent(self, records: GroupedRecords, store: _Store) -> tuple[GraphNode, frozenset[str]]:
        """Where a stream is aggregated, and the sources above.

        That may be behind a repartition topic, which then serves all aggregations of the cogrouped stream. Names are
        used up for each of them (``processRepartitions``, 4.3.1).
        """
        place = records.place
        if not place.rekeyed:
            return place.node, place.sources
        made = records.new_repartition(store)
        if records not in self._repartitions:
            self._repartitions[records] = made
            self.graph.add(made, place.node)
        node = self._repartitions[records]
        return node, frozenset({node.name})


class CogroupedKStream(Generic[K, VR]):
    """Several grouped streams whose records are aggregated together: one table, with one store and one row a key.

    Each stream has an aggregator of its own, all of them change the same aggregate. Streams whose keys may have changed
    go through a repartition topic, the topics of all streams must have equal partition counts. Records with null key or
    value are dropped.

    ``cogroup`` adds to this object and gives it back; a table is made of the streams that are there when ``aggregate``
    is called. Source: ``CogroupedKStream``, 4.3.1.
    """

    def __init__(self, graph: Graph) -> None:
        self._records = CogroupedRecords(graph)

    def cogroup(self, grouped: KGroupedStream[K, V], aggregator: Aggregator[K, V, VR]) -> CogroupedKStream[K, VR]:
        """Adds a grouped stream, whose records ``aggregator(key, value, aggregate)`` adds to the aggregate.

        A stream that is there already gets that aggregator instead of the one it had.
        """
        from pykstreams.dsl.grouped import KGroupedStream

        if not isinstance(grouped, KGroupedStream):
            raise TypeError(
                f"a grouped stream is cogrouped with {grouped!r}; expected a KGroupedStream (KStream.group_by_key or "
                "KStream.group_by makes one)"
            )
        self._records.add(grouped._records, aggregator)
        return self

    def aggregate(
        self,
        initializer: Initializer[VR],
        *,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Aggregates each key from ``initializer()`` by the aggregators of all streams; ``None`` deletes.

        The serdes of the table are those of ``materialized`` or else the defaults: which of the streams would have the
        right ones is nothing that could be told.
        """
        records = self._records
        store = table_store(records.graph, options_of(materialized), _AGGREGATE, None, None)

        def operator(aggregator: Aggregator[K, Any, VR], old: bool) -> OperatorSupplier:
            return StreamAggregate(store.name, initializer, aggregator, old)

        return KTable(records.aggregated(name, store, operator, StoredView, store.key_serde))

    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedCogroupedKStream[K, VR]: ...
    @overload
    def windowed_by(self, windows: Windows[Any] | SlidingWindows) -> TimeWindowedCogroupedKStream[K, VR]: ...
    def windowed_by(
        self, windows: Windows[Any] | SlidingWindows | SessionWindows
    ) -> TimeWindowedCogroupedKStream[K, VR] | SessionWindowedCogroupedKStream[K, VR]:
        """Divides the records of each key into windows of time, or into sessions."""
        if isinstance(windows, SessionWindows):
            return SessionWindowedCogroupedKStream(self._records, windows)
        return TimeWindowedCogroupedKStream(self._records, windows)


class TimeWindowedCogroupedKStream(Generic[K, VR]):
    """Cogrouped streams with time or sliding windows: one aggregate a key and window.

    Records with null key are dropped, with sliding windows also those with null value. Late is a record by the time
    that has been seen in its own stream: a window that is closed to the records of one stream may be open to those of
    another, until the store drops it. Late records count as dropped. Results are handed on as they change. Source:
    ``TimeWindowedCogroupedKStream``, 4.3.1.
    """

    def __init__(self, records: CogroupedRecords, windows: Windows[Any] | SlidingWindows) -> None:
        self._records = records
        self._windows = checked_windows(windows)

    def aggregate(
        self,
        initializer: Initializer[VR],
        *,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], VR]:
        """Aggregates each key and window from ``initializer()`` by the aggregators of all streams; ``None`` deletes."""
        records, windows = self._records, self._windows
        store = window_table_store(
            records.graph, options_of(materialized), _AGGREGATE, None, None, windows, EmitStrategy.ON_WINDOW_UPDATE
        )

        def operator(aggregator: Aggregator[K, Any, VR], old: bool) -> OperatorSupplier:
            return window_operator(windows, store.name, Aggregation(initializer, aggregator), old)

        key_serde = windowed_key_serde(store)
        return KTable(records.aggregated(name, store, operator, WindowedView, key_serde, windows.grace_period_ms))


class SessionWindowedCogroupedKStream(Generic[K, VR]):
    """Cogrouped streams with session windows: one aggregate a key and session.

    Records of all streams keep a session going. Those with null key are dropped; late is a record by the time that has
    been seen in its own stream, and counts as dropped. Source: ``SessionWindowedCogroupedKStream``, 4.3.1.
    """

    def __init__(self, records: CogroupedRecords, windows: SessionWindows) -> None:
        self._records = records
        self._windows = windows

    def aggregate(
        self,
        initializer: Initializer[VR],
        session_merger: Merger[K, VR],
        *,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[Windowed[K], VR]:
        """Aggregates each key and session from ``initializer()`` by the aggregators of all streams; ``None`` deletes.

        Before, ``session_merger(key, aggregate, other)`` adds the sessions that merge, one by one in order of time, to
        what ``initializer()`` gave.
        """
        records, windows = self._records, self._windows
        store = session_table_store(
            records.graph, options_of(materialized), _AGGREGATE, None, None, windows, EmitStrategy.ON_WINDOW_UPDATE
        )

        def operator(aggregator: Aggregator[K, Any, VR], old: bool) -> OperatorSupplier:
            return SessionAggregate(
                store.name, windows, SessionAggregation(initializer, aggregator, session_merger), old
            )

        key_serde = None if store.key_serde is None else SessionWindowedSerde(store.key_serde)
        grace_ms = windows.grace_period_ms + windows.inactivity_gap_ms
        return KTable(records.aggregated(name, store, operator, StoredView, key_serde, grace_ms))


def _asking(
    logic: AggregatedTable,
    operator: Callable[[Aggregator[Any, Any, Any], bool], OperatorSupplier],
    aggregator: Aggregator[Any, Any, Any],
) -> Callable[[], OperatorSupplier]:
    """Gives the operator when the graph is written, and it is known whether the table sends old values."""
    return lambda: operator(aggregator, logic.sends_old_values)
