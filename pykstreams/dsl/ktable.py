"""``KTable``: a table that changes; each record below it is a change of one row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import KeyValueMapper, Predicate
from pykstreams.core.value_transformer import ValueTransformerWithKey, ValueTransformerWithKeySupplier
from pykstreams.dsl.grouped_table import KGroupedTable
from pykstreams.dsl.materialization import TableStore, named_table_store, options_of
from pykstreams.dsl.options import Grouped, Materialized
from pykstreams.dsl.stream import Place
from pykstreams.dsl.suppression import Suppressed, suppress
from pykstreams.dsl.table_joins import TableJoins
from pykstreams.dsl.tables import DerivedTable, TableLogic
from pykstreams.dsl.user_suppliers import provided_stores
from pykstreams.processors import (
    TableFilter,
    TableMapValues,
    TableRepartitionMap,
    TableToStream,
    TableTransformValues,
)
from pykstreams.processors.user import check_supplier
from pykstreams.topology.graph import OperatorNode, is_versioned
from pykstreams.topology.stores import StoreFactory

if TYPE_CHECKING:
    from pykstreams.dsl.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")
KR = TypeVar("KR")
VR = TypeVar("VR")


class KTable(TableJoins[K, V]):
    """A table: at most one row a key, the value ``None`` deletes a row.

    Whether a table keeps a store is up to ``materialized``: a named one does and can be queried, others keep one only
    if something after them needs it. Source: ``KTable``, 4.3.1.
    """

    def __init__(self, place: Place, logic: TableLogic, queryable_store_name: str | None) -> None:
        self._place = place
        self._logic = logic
        self._queryable_store_name = queryable_store_name

    @property
    def queryable_store_name(self) -> str | None:
        """The name of the store, if the user gave one."""
        return self._queryable_store_name

    def filter(
        self,
        predicate: Predicate[K, V],
        *,
        materialized: Materialized[K, V] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Keeps the rows for which ``predicate(key, value)`` holds; a row that no longer does is deleted."""
        return self._filter(predicate, False, materialized, name)

    def filter_not(
        self,
        predicate: Predicate[K, V],
        *,
        materialized: Materialized[K, V] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Keeps the rows for which ``predicate(key, value)`` does not hold."""
        return self._filter(predicate, True, materialized, name)

    @overload
    def map_values(
        self,
        mapper: Callable[[V], VR],
        *,
        with_key: Literal[False] = False,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def map_values(
        self,
        mapper: Callable[[K, V], VR],
        *,
        with_key: Literal[True],
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    def map_values(
        self,
        mapper: Callable[..., VR],
        *,
        with_key: bool = False,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Maps the value of each row by ``mapper(value)``, or ``mapper(key, value)`` with ``with_key``.

        The mapper does not see deletions.
        """
        store = self._named_store("KTABLE-MAPVALUES-", materialized)
        logic = DerivedTable(self._logic, store, lambda kept, old: TableMapValues(mapper, with_key, kept, old))
        return self._derived("KTABLE-MAPVALUES-", name, logic, materialized, store, keeps_values=False)

    def transform_values(
        self,
        supplier: ValueTransformerWithKeySupplier[K, V, VR],
        *state_store_names: str,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Maps the values of rows, deletions included, by a ``ValueTransformerWithKey``, which may use stores.

        ``supplier`` is any callable without arguments that gives a new transformer; connected are the named stores and
        those of ``supplier.stores()``. Joins that read a table without a store have transformers of their own, and
        only the stores that they are connected to: materialize the table if its transformer keeps state.
        """
        check_supplier(supplier, ValueTransformerWithKey)
        store = None if materialized is None else named_table_store(options_of(materialized))
        logic = DerivedTable(self._logic, store, lambda kept, old: TableTransformValues(supplier, kept, old))
        return self._derived(
            "KTABLE-TRANSFORMVALUES-",
            name,
            logic,
            materialized,
            store,
            keeps_values=False,
            brought=provided_stores(supplier),
            connect=state_store_names,
        )

    @overload
    def to_stream(self, key_mapper: None = None, *, name: str | None = None) -> KStream[K, V]: ...
    @overload
    def to_stream(self, key_mapper: KeyValueMapper[K, V, KR], *, name: str | None = None) -> KStream[KR, V]: ...
    def to_stream(
        self, key_mapper: KeyValueMapper[K, V, KR] | None = None, *, name: str | None = None
    ) -> KStream[Any, V]:
        """Gives the changes of the table as a stream, under new keys if ``key_mapper(key, value)`` is given."""
        from pykstreams.dsl.kstream import KStream

        place = self._place
        node = self._add("KTABLE-TOSTREAM-", name, TableToStream)
        stream: KStream[Any, V] = KStream(
            Place(place.graph, node, node.name, place.key_serde, place.value_serde, place.sources)
        )
        return stream if key_mapper is None else stream.select_key(key_mapper)

    def suppress(self, suppressed: Suppressed) -> KTable[K, V]:
        """Holds changes back until a window closes, or for a time; see ``Suppressed``.

        What waits is kept in a store in memory with a changelog; a table read from a topic is kept, too, since others
        read the old value of a row whose change waits.
        """
        place, logic = suppress(self._place, self._logic, suppressed)
        return KTable(place, logic, None)

    def group_by(
        self,
        selector: KeyValueMapper[K, V, tuple[KR, VR]],
        grouped: Grouped[KR, VR] | None = None,
    ) -> KGroupedTable[KR, VR]:
        """Groups the rows by the key of the pair ``selector(key, value)``, through a repartition topic.

        When a row changes its old pair is taken away from its group, and the new one added to its.
        """
        options = grouped or Grouped()
        place = self._place
        node = self._add(
            "KTABLE-SELECT-", options.name, lambda: TableRepartitionMap(selector, is_versioned(place.node))
        )
        self._logic.send_old_values(force=True)
        selected = Place(
            place.graph, node, node.name, options.key_serde, options.value_serde, place.sources, rekeyed=True
        )
        return KGroupedTable(selected, options.name)

    def _filter(
        self,
        predicate: Predicate[K, V],
        negate: bool,
        materialized: Materialized[K, V] | str | None,
        name: str | None,
    ) -> KTable[K, V]:
        store = self._named_store("KTABLE-FILTER-", materialized)
        parent = self._place.node
        logic = DerivedTable(
            self._logic,
            store,
            lambda kept, old: TableFilter(predicate, negate, kept, old, is_versioned(parent)),
        )
        table: KTable[K, V] = self._derived("KTABLE-FILTER-", name, logic, materialized, store, keeps_values=True)
        logic.follow_parent()
        return table

    def _named_store(self, prefix: str, materialized: Materialized[Any, Any] | str | None) -> TableStore | None:
        if materialized is None:
            return None
        store = named_table_store(options_of(materialized))
        if store is None:
            self._place.graph.namer.store(prefix)
        return store

    def _derived(
        self,
        prefix: str,
        name: str | None,
        logic: DerivedTable,
        materialized: Materialized[Any, Any] | str | None,
        store: TableStore | None,
        *,
        keeps_values: bool,
        brought: tuple[StoreFactory, ...] = (),
        connect: tuple[str, ...] = (),
    ) -> KTable[K, Any]:
        place, options = self._place, options_of(materialized)
        node = OperatorNode(
            place.graph.namer.named(name, prefix),
            logic.operator,
            stores=lambda: (*logic.stores(), *brought),
            connect=connect,
            versioned=None if materialized is None else store is not None and store.history_ms is not None,
        )
        place.graph.add(node, place.node)
        derived = Place(
            place.graph,
            node,
            node.name,
            options.key_serde or place.key_serde,
            options.value_serde or (place.value_serde if keeps_values else None),
            place.sources,
            partitioner=place.partitioner,
        )
        return KTable(derived, logic, None if store is None else store.name)

    def _add(self, prefix: str, name: str | None, operator: Callable[[], OperatorSupplier]) -> OperatorNode:
        graph = self._place.graph
        node = OperatorNode(graph.namer.named(name, prefix), operator)
        graph.add(node, self._place.node)
        return node
