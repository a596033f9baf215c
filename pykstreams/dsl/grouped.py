"""``KGroupedStream``: records under the keys by which they are grouped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from pykstreams.core.types import Aggregator, Initializer, Reducer
from pykstreams.core.user_code.tells_where import TellsWhere
from pykstreams.core.windows import CountWindows, SessionWindows, SlidingWindows, Window, Windows
from pykstreams.dsl.aggregations.grouped_records import GroupedRecords
from pykstreams.dsl.annotations.inference import aggregate_serde
from pykstreams.dsl.cogrouped import CogroupedKStream
from pykstreams.dsl.count_windowed import CountWindowedKStream
from pykstreams.dsl.ktable import KTable
from pykstreams.dsl.options import Grouped, Materialized
from pykstreams.dsl.other_steps import TO_A_RESULT
from pykstreams.dsl.place import Place
from pykstreams.dsl.record_serdes import RecordSerdes
from pykstreams.dsl.stores.materialization import TableStore, options_of, table_store
from pykstreams.dsl.stores.table_logic import AggregatedTable
from pykstreams.dsl.user_calls import calls
from pykstreams.dsl.windowed import SessionWindowedKStream, TimeWindowedKStream
from pykstreams.processors import RowsOfRecords, StreamAggregate, StreamCount, StreamReduce
from pykstreams.serdes.primitives import LongSerde

if TYPE_CHECKING:
    from pykstreams.dsl.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")

_AGGREGATE = "KSTREAM-AGGREGATE-"
_REDUCE = "KSTREAM-REDUCE-"


class KGroupedStream(TellsWhere, Generic[K, V]):
    """A grouped stream; an aggregation gives a table with one row a group.

    Records with null key or value are dropped. If the key may have changed before, the records go through the topic
    ``<application.id>-<name>-repartition``, named after ``Grouped.name`` or else the store. Source:
    ``KGroupedStream``, 4.3.1.
    """

    _elsewhere = TO_A_RESULT | {"emit_strategy": "give it windows first: windowed_by(...).emit_strategy(...)"}

    def __init__(self, place: Place, options: Grouped[K, V], make_stream: Callable[[Place], KStream[K, V]]) -> None:
        self._place = place
        self._options = options
        self._records = GroupedRecords(place, options, make_stream)

    def __repr__(self) -> str:
        return self._place.shown_as("KGroupedStream")

    @property
    def _record_serdes(self) -> RecordSerdes:
        return self._records.record_serdes

    @calls()
    def count(
        self, *, materialized: Materialized[K, int] | str | None = None, name: str | None = None
    ) -> KTable[K, int]:
        """Counts the records of each group, as 8-byte longs unless a value serde is given."""
        options, namer = options_of(materialized), self._place.graph.namer
        if materialized is not None and options.store_name is None:
            namer.store(_AGGREGATE)
        store = table_store(
            self._place.graph, options, _AGGREGATE, self._options.key_serde, LongSerde(), of_records=True
        )
        return self._aggregated(_AGGREGATE, name, store, StreamCount)

    @calls(reducer="aggregate, new -> value")
    def reduce(
        self,
        reducer: Reducer[V],
        *,
        materialized: Materialized[K, V] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Combines the values of each group by ``reducer(aggregate, new)``; the first value starts it."""
        store = table_store(
            self._place.graph,
            options_of(materialized),
            _REDUCE,
            self._options.key_serde,
            self._options.value_serde,
            of_records=True,
        )
        return self._aggregated(_REDUCE, name, store, lambda kept, old: StreamReduce(kept, reducer, old))

    @calls(initializer="", aggregator="key, value, aggregate -> value")
    def aggregate(
        self,
        initializer: Initializer[VR],
        aggregator: Aggregator[K, V, VR],
        *,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Aggregates each group from ``initializer()`` by ``aggregator(key, value, aggregate)``; ``None`` deletes."""
        values = aggregate_serde(initializer, aggregator)
        store = table_store(
            self._place.graph, options_of(materialized), _AGGREGATE, self._options.key_serde, values, of_records=True
        )
        return self._aggregated(
            _AGGREGATE, name, store, lambda kept, old: StreamAggregate(kept, initializer, aggregator, old)
        )

    @overload
    def windowed_by(self, windows: CountWindows) -> CountWindowedKStream[K, V]: ...
    @overload
    def windowed_by(self, windows: SessionWindows) -> SessionWindowedKStream[K, V]: ...
    @overload
    def windowed_by(self, windows: Windows[Window] | SlidingWindows) -> TimeWindowedKStream[K, V]: ...
    def windowed_by(
        self, windows: Windows[Window] | SlidingWindows | SessionWindows | CountWindows
    ) -> TimeWindowedKStream[K, V] | SessionWindowedKStream[K, V] | CountWindowedKStream[K, V]:
        """Divides the records of each group into windows of time, into sessions, or into windows of so many records."""
        if isinstance(windows, CountWindows):
            return CountWindowedKStream(self._records, windows)
        if isinstance(windows, SessionWindows):
            return SessionWindowedKStream(self._records, windows)
        return TimeWindowedKStream(self._records, windows)

    @calls(aggregator="key, value, aggregate")
    def cogroup(self, aggregator: Aggregator[K, V, VR], *, returns: type[VR] | None = None) -> CogroupedKStream[K, VR]:
        """Begins an aggregation of several grouped streams into one table; see ``CogroupedKStream``.

        ``aggregator(key, value, aggregate)`` adds the records of this stream. A lambda has no annotations, so nothing
        says the type of the aggregate but ``returns``: ``cogroup(lambda key, page, customer: ..., returns=Customer)``.
        """
        cogrouped: CogroupedKStream[K, VR] = CogroupedKStream(self._place.graph)
        cogrouped._records.add(self._records, aggregator, returns)
        return cogrouped

    def _aggregated(
        self,
        prefix: str,
        name: str | None,
        store: TableStore,
        make: Callable[[str, bool], RowsOfRecords],
    ) -> KTable[K, VR]:
        node = self._place.graph.namer.named(name, prefix)
        logic = AggregatedTable(store, lambda kept, old: store.expiring(make(kept, old)))
        return KTable(self._records.aggregated(node, store, logic, store.key_serde))
