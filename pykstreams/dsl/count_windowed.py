"""``CountWindowedKStream``: records under the keys by which they are grouped, and windows of so many of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar, cast

from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import Aggregator, Initializer, Reducer
from pykstreams.core.user_code.tells_where import TellsWhere
from pykstreams.core.windows import CountWindows
from pykstreams.dsl.aggregations.grouped_records import GroupedRecords
from pykstreams.dsl.annotations.inference import aggregate_serde
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.place import Place
from pykstreams.dsl.record_serdes import RecordSerdes
from pykstreams.dsl.stores.materialization import options_of, partial_window_store
from pykstreams.dsl.stores.table_logic import AggregatedTable
from pykstreams.dsl.user_calls import calls
from pykstreams.processors import COUNT, Aggregation, CountWindowAggregate, reducing
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.serdes.primitives import LongSerde
from pykstreams.topology.step_facts import described_windows

if TYPE_CHECKING:
    from pykstreams.dsl.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")
VA = TypeVar("VA")

_AGGREGATE = "KSTREAM-AGGREGATE-"
_REDUCE = "KSTREAM-REDUCE-"


class CountWindowedKStream(TellsWhere, Generic[K, V]):
    """A grouped stream in windows of so many records; an aggregation gives a stream of the windows that are full.

    The records of a key count in the order in which they come, whatever their timestamps; none is late. A result has
    the key, the largest timestamp of its records and the headers of the last. What is not full waits in a store with a
    changelog, where it can be queried as ``PartialWindow`` if ``materialized`` names the store; the value serde is
    that of the results. Records without key or value are dropped. Beyond Kafka Streams; see
    docs/guides/count-windows.md.
    """

    _elsewhere = dict.fromkeys(
        ("filter", "map_values", "to"),
        "aggregate it first, by count(), reduce(...) or aggregate(...), which gives a stream",
    )

    def __init__(self, records: GroupedRecords[K, V, KStream[K, V]], windows: CountWindows) -> None:
        self._records = records
        self._windows = windows

    def __repr__(self) -> str:
        return self._records.place.shown_as("CountWindowedKStream", described_windows(self._windows))

    @property
    def _record_serdes(self) -> RecordSerdes:
        return self._records.record_serdes

    @calls()
    def count(
        self, *, materialized: Materialized[K, int] | str | None = None, name: str | None = None
    ) -> KStream[K, int]:
        """Counts the records of each window, as 8-byte longs unless a value serde is given."""
        return self._aggregated(_AGGREGATE, name, options_of(materialized), LongSerde(), COUNT)

    @calls(reducer="aggregate, new -> value")
    def reduce(
        self,
        reducer: Reducer[V],
        *,
        materialized: Materialized[K, V] | str | None = None,
        name: str | None = None,
    ) -> KStream[K, V]:
        """Combines the values of each window by ``reducer(aggregate, new)``; the first value starts it."""
        value_serde = self._records.options.value_serde
        return self._aggregated(_REDUCE, name, options_of(materialized), value_serde, reducing(reducer))

    @calls(initializer="", aggregator="key, value, aggregate -> value")
    def aggregate(
        self,
        initializer: Initializer[VR],
        aggregator: Aggregator[K, V, VR],
        *,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KStream[K, VR]:
        """Aggregates each window from ``initializer()`` by ``aggregator(key, value, aggregate)``.

        ``None`` is a value like others: the window goes on.
        """
        values, aggregation = aggregate_serde(initializer, aggregator), Aggregation(initializer, aggregator)
        return self._aggregated(_AGGREGATE, name, options_of(materialized), values, aggregation)

    def _aggregated(
        self,
        prefix: str,
        name: str | None,
        options: Materialized[K, VR],
        value_serde: SerdeOrDefault,
        aggregation: Aggregation[K, V, VA],
    ) -> KStream[K, VR]:
        records, windows = self._records, self._windows
        graph = records.place.graph
        store, result_serde = partial_window_store(graph, options, prefix, records.options.key_serde, value_serde)

        def operator(kept: str, old: bool) -> OperatorSupplier:
            return CountWindowAggregate(kept, windows, aggregation)

        node = graph.namer.named(name, prefix)
        made = records.aggregated(node, store, AggregatedTable(store, operator), store.key_serde).place
        place = Place(graph, made.node, made.name, made.key_serde, result_serde, made.sources)
        return cast("KStream[K, VR]", records.make_stream(place))
