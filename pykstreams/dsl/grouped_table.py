"""``KGroupedTable``: the rows of a table under the keys by which they are grouped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from pykstreams.core.names import REPARTITION_SUFFIX
from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import Aggregator, Initializer, Reducer
from pykstreams.core.user_code.tells_where import TellsWhere
from pykstreams.dsl.annotations.inference import aggregate_serde
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.other_steps import TO_A_RESULT
from pykstreams.dsl.place import Place, record_serdes_of
from pykstreams.dsl.record_serdes import RecordSerdes
from pykstreams.dsl.stores.materialization import TableStore, options_of, table_store
from pykstreams.dsl.stores.table_logic import AggregatedTable
from pykstreams.dsl.table import Table
from pykstreams.dsl.user_calls import calls
from pykstreams.processors import TableAggregate, TableReduce
from pykstreams.serdes.change import ChangeSerde
from pykstreams.serdes.defaults import SerdeOrDefault, over_default
from pykstreams.serdes.primitives import LongSerde
from pykstreams.topology.graph import OperatorNode, PlainRepartitionNode, RepartitionSettings

if TYPE_CHECKING:
    from pykstreams.dsl.ktable import KTable

K = TypeVar("K")
V = TypeVar("V")
VR = TypeVar("VR")

_AGGREGATE = "KTABLE-AGGREGATE-"


class KGroupedTable(TellsWhere, Generic[K, V]):
    """The rows of a table, grouped; aggregations add the new value of a changed row and take away the old one.

    Rows whose group or value is null are left out. Source: ``KGroupedTable``, 4.3.1.
    """

    _elsewhere = TO_A_RESULT

    def __init__(self, place: Place, topic_name: str | None) -> None:
        self._place = place
        self._topic_name = topic_name
        self._repartition: PlainRepartitionNode | None = None

    def __repr__(self) -> str:
        return self._place.shown_as("KGroupedTable")

    @property
    def _record_serdes(self) -> RecordSerdes:
        return record_serdes_of(self._place)

    @calls()
    def count(
        self, *, materialized: Materialized[K, int] | str | None = None, name: str | None = None
    ) -> KTable[K, int]:
        """Counts the rows of each group, as 8-byte longs unless a value serde is given."""
        store = self._store(materialized, LongSerde())
        return self._aggregated(
            _AGGREGATE, name, store, lambda kept, old: TableAggregate(kept, _zero, _plus_one, _minus_one, old)
        )

    @calls(adder="aggregate, new -> value", subtractor="aggregate, old")
    def reduce(
        self,
        adder: Reducer[V],
        subtractor: Reducer[V],
        *,
        materialized: Materialized[K, V] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Combines the values of each group by ``adder(aggregate, new)`` and ``subtractor(aggregate, old)``."""
        store = self._store(materialized, self._place.value_serde)
        return self._aggregated(
            "KTABLE-REDUCE-", name, store, lambda kept, old: TableReduce(kept, adder, subtractor, old)
        )

    @calls(initializer="", adder="key, value, aggregate -> value", subtractor="key, value, aggregate")
    def aggregate(
        self,
        initializer: Initializer[VR],
        adder: Aggregator[K, V, VR],
        subtractor: Aggregator[K, V, VR],
        *,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Aggregates each group from ``initializer()`` by ``adder(key, value, aggregate)`` and ``subtractor(...)``."""
        store = self._store(materialized, aggregate_serde(initializer, adder, subtractor))
        return self._aggregated(
            _AGGREGATE,
            name,
            store,
            lambda kept, old: TableAggregate(kept, initializer, adder, subtractor, old),
        )

    def _store(self, materialized: Materialized[K, VR] | str | None, value_serde: SerdeOrDefault) -> TableStore:
        place = self._place
        return table_store(place.graph, options_of(materialized), _AGGREGATE, place.key_serde, value_serde)

    def _aggregated(
        self,
        prefix: str,
        name: str | None,
        store: TableStore,
        make: Callable[[str, bool], OperatorSupplier],
    ) -> KTable[K, VR]:
        from pykstreams.dsl.ktable import KTable

        place, namer = self._place, self._place.graph.namer
        sink = namer.suffixed(name, "-sink", "KSTREAM-SINK-")
        source = namer.suffixed(name, "-source", "KSTREAM-SOURCE-")
        node_name = namer.named(name, prefix)
        if self._repartition is None or self._topic_name is None:
            topic = (store.name if self._topic_name is None else self._topic_name) + REPARTITION_SUFFIX
            changes = over_default(place.value_serde, ChangeSerde)
            self._repartition = PlainRepartitionNode(RepartitionSettings(topic, sink, source, place.key_serde, changes))
        place.graph.add(self._repartition, place.node)
        logic = AggregatedTable(store, make)
        node = OperatorNode(node_name, logic.operator, stores=logic.stores, versioned=store.history_ms is not None)
        place.graph.add(node, self._repartition)
        place = Place(
            place.graph,
            node,
            node_name,
            store.key_serde,
            store.value_serde,
            frozenset({self._repartition.settings.source_name}),
        )
        return KTable(Table(place, logic, store))


def _zero() -> int:
    return 0


def _plus_one(key: object, value: object, count: int) -> int:
    return count + 1


def _minus_one(key: object, value: object, count: int) -> int:
    return count - 1
