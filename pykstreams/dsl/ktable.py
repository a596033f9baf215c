"""``KTable``: a table that changes; each record below it is a change of one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import KeyValueMapper, Predicate, ValueJoiner
from pykstreams.core.value_transformer import ValueTransformerWithKey, ValueTransformerWithKeySupplier
from pykstreams.dsl.foreign_key_join import ForeignKey, join_on_foreign_key
from pykstreams.dsl.foreign_keys_join import join_by_foreign_keys
from pykstreams.dsl.grouped_table import KGroupedTable
from pykstreams.dsl.materialization import TableStore, named_table_store, options_of
from pykstreams.dsl.one_to_many_join import ResultKeys, join_one_to_many
from pykstreams.dsl.options import Grouped, Materialized, TableJoined
from pykstreams.dsl.stream import Place
from pykstreams.dsl.suppression import Suppressed, suppress
from pykstreams.dsl.table_table_join import join_tables
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
from pykstreams.serdes.base import Serde
from pykstreams.serdes.combined_key import CombinedKey
from pykstreams.serdes.composed_keys import ComposedKeySerde
from pykstreams.topology.graph import OperatorNode
from pykstreams.topology.stores import StoreFactory

if TYPE_CHECKING:
    from pykstreams.dsl.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")
KO = TypeVar("KO")
KR = TypeVar("KR")
VO = TypeVar("VO")
VR = TypeVar("VR")

_FOREIGN_KEYS_ALONE = (
    "foreign_keys_extractor was given beside foreign_key_extractor, extractor_with_key or table_joined, which belong "
    "to joins by one foreign key; leave them out"
)


class KTable(Generic[K, V]):
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
        node = self._add("KTABLE-SELECT-", options.name, lambda: TableRepartitionMap(selector))
        self._logic.send_old_values(force=True)
        place = self._place
        selected = Place(
            place.graph, node, node.name, options.key_serde, options.value_serde, place.sources, rekeyed=True
        )
        return KGroupedTable(selected, options.name)

    @overload
    def join(
        self,
        other: KTable[K, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        foreign_key_extractor: Callable[[V], KO | None],
        extractor_with_key: Literal[False] = False,
        table_joined: TableJoined[K, KO] | None = None,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        foreign_key_extractor: Callable[[K, V], KO | None],
        extractor_with_key: Literal[True],
        table_joined: TableJoined[K, KO] | None = None,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        foreign_keys_extractor: Callable[[V], Iterable[KO | None]],
        materialized: Materialized[CombinedKey[KO, K], VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[CombinedKey[KO, K], VR]: ...
    def join(
        self,
        other: KTable[Any, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        foreign_key_extractor: Callable[..., Any] | None = None,
        foreign_keys_extractor: Callable[[V], Iterable[Any]] | None = None,
        extractor_with_key: bool = False,
        table_joined: TableJoined[Any, Any] | None = None,
        materialized: Materialized[Any, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[Any, VR]:
        """Joins the rows that both tables have by ``joiner(value, other value)``; ``None`` from it is no row.

        A change of either table gives a change of the join, with the larger timestamp of the two rows. Both tables get
        a store if they have none to be read from, and their topics must have equal partition counts.

        With ``foreign_key_extractor(value)``, or ``(key, value)`` if ``extractor_with_key``, each row is joined with
        the other table's row of that key; ``None`` joins with nothing. The result has the keys of this table. The
        sides talk to each other through two topics, and who refers to what is kept in a store with a changelog;
        ``name``, or the one of ``table_joined``, names all of them. Partition counts may then differ.

        With ``foreign_keys_extractor(value)``, which gives any number of keys, each row is joined with all rows that it
        refers to. The result has a row for each pair, under ``CombinedKey(foreign key, key)``; null keys are dropped
        and counted. See ``one_to_many_join``, which goes the same way.
        """
        if foreign_keys_extractor is not None:
            if foreign_key_extractor is not None or extractor_with_key or table_joined is not None:
                raise TypeError(_FOREIGN_KEYS_ALONE)
            return self._join_by_foreign_keys(other, joiner, foreign_keys_extractor, materialized, name, False)
        foreign = ForeignKey.of(foreign_key_extractor, extractor_with_key, table_joined, name)
        return self._join(other, joiner, foreign, materialized, name, left_is_optional=False, right_is_optional=False)

    @overload
    def left_join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[V, VO | None], VR],
        *,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def left_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V, VO | None], VR],
        *,
        foreign_key_extractor: Callable[[V], KO | None],
        extractor_with_key: Literal[False] = False,
        table_joined: TableJoined[K, KO] | None = None,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def left_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V, VO | None], VR],
        *,
        foreign_key_extractor: Callable[[K, V], KO | None],
        extractor_with_key: Literal[True],
        table_joined: TableJoined[K, KO] | None = None,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def left_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V, VO | None], VR],
        *,
        foreign_keys_extractor: Callable[[V], Iterable[KO | None]],
        materialized: Materialized[CombinedKey[KO, K], VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[CombinedKey[KO, K], VR]: ...
    def left_join(
        self,
        other: KTable[Any, VO],
        joiner: Callable[[V, VO | None], VR],
        *,
        foreign_key_extractor: Callable[..., Any] | None = None,
        foreign_keys_extractor: Callable[[V], Iterable[Any]] | None = None,
        extractor_with_key: bool = False,
        table_joined: TableJoined[Any, Any] | None = None,
        materialized: Materialized[Any, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[Any, VR]:
        """Joins each row of this table by ``joiner(value, other value or None)``; see ``join``.

        With ``foreign_keys_extractor`` a row is joined with ``None`` for each key that the other table does not have; a
        row that gives no keys has no rows in the result.
        """
        if foreign_keys_extractor is not None:
            if foreign_key_extractor is not None or extractor_with_key or table_joined is not None:
                raise TypeError(_FOREIGN_KEYS_ALONE)
            return self._join_by_foreign_keys(other, joiner, foreign_keys_extractor, materialized, name, True)
        foreign = ForeignKey.of(foreign_key_extractor, extractor_with_key, table_joined, name)
        return self._join(other, joiner, foreign, materialized, name, left_is_optional=False, right_is_optional=True)

    def outer_join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[V | None, VO | None], VR],
        *,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]:
        """Joins the rows that either table has by ``joiner(value or None, other value or None)``; see ``join``."""
        return self._join(other, joiner, None, materialized, name, left_is_optional=True, right_is_optional=True)

    @overload
    def one_to_many_join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        key_extractor: Callable[[VO], K | None],
        combined_key_serde: ComposedKeySerde[K, KO] | None = None,
        materialized: Materialized[CombinedKey[K, KO], VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[CombinedKey[K, KO], VR]: ...
    @overload
    def one_to_many_join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        key_extractor: Callable[[VO], K | None],
        combined_key_serde: ComposedKeySerde[K, KO] | None = None,
        output_key_combiner: Callable[[CombinedKey[K, KO]], KR],
        output_key_splitter: Callable[[KR], CombinedKey[K, KO]],
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]: ...
    @overload
    def one_to_many_join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        key_extractor: Callable[[VO], K | None],
        combined_key_serde: Serde[KR] | None = None,
        output_key_combiner: Callable[[CombinedKey[K, KO]], KR] | None = None,
        join_prefix_faker: Callable[[K], KR],
        left_key_extractor: Callable[[KR], K],
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]: ...
    def one_to_many_join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        key_extractor: Callable[[VO], K | None],
        combined_key_serde: Any = None,
        output_key_combiner: Callable[[CombinedKey[K, KO]], Any] | None = None,
        output_key_splitter: Callable[[Any], CombinedKey[K, KO]] | None = None,
        join_prefix_faker: Callable[[K], Any] | None = None,
        left_key_extractor: Callable[[Any], K] | None = None,
        materialized: Materialized[Any, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[Any, VR]:
        """Joins each row of ``other`` with the row of this table whose key ``key_extractor(other value)`` gives.

        The result has one row for each of ``other`` that finds its partner, by ``joiner(value, other value)``, with the
        larger timestamp of the two, under ``CombinedKey(key of this table, key of other)``. A change of this table
        changes all rows that refer to it. A row whose extracted key is ``None`` is dropped and counted.

        Rows of ``other`` go through a repartition topic with as many partitions as this table's topic, and are kept
        behind it; this table gets a store if it has none, and its topic must be partitioned by its keys, as producers
        do. The result needs no store to be read.

        The keys of the result are written length-encoded. There are three other styles:

        - ``combined_key_serde``: a serde with ``partial_key_serializer()``, such as ``JsonCombinedKeySerde``.
        - ``output_key_combiner`` and ``output_key_splitter`` map combined keys to keys of another type, and back.
        - ``join_prefix_faker`` and ``left_key_extractor``: the keys of ``other`` have the key of this table in them (or
          ``output_key_combiner`` makes such keys). The faker makes, of a key of this table, one whose bytes
          are what all keys that have it start with; the extractor takes the key of this table out.
          ``combined_key_serde`` is any serde of such keys then.
        """
        self._check_table(other)
        keys = ResultKeys(
            combined_key_serde, output_key_combiner, output_key_splitter, join_prefix_faker, left_key_extractor
        )
        joined = join_one_to_many(
            (self._place, self._logic), (other._place, other._logic), joiner, key_extractor, keys, materialized, name
        )
        return KTable(*joined)

    def _join(
        self,
        other: KTable[Any, VO],
        joiner: Callable[[Any, Any], VR],
        foreign: ForeignKey | None,
        materialized: Materialized[K, VR] | str | None,
        name: str | None,
        *,
        left_is_optional: bool,
        right_is_optional: bool,
    ) -> KTable[K, VR]:
        self._check_table(other)
        this, that = (self._place, self._logic), (other._place, other._logic)
        if foreign is not None:
            return KTable(
                *join_on_foreign_key(this, that, foreign, joiner, materialized, right_is_optional=right_is_optional)
            )
        joined = join_tables(
            this,
            that,
            joiner,
            materialized,
            name,
            left_is_optional=left_is_optional,
            right_is_optional=right_is_optional,
        )
        return KTable(*joined)

    def _join_by_foreign_keys(
        self,
        other: KTable[Any, VO],
        joiner: Callable[[Any, Any], VR],
        extractor: Callable[[V], Iterable[Any]],
        materialized: Materialized[Any, VR] | str | None,
        name: str | None,
        right_is_optional: bool,
    ) -> KTable[Any, VR]:
        self._check_table(other)
        joined = join_by_foreign_keys(
            (self._place, self._logic),
            (other._place, other._logic),
            joiner,
            extractor,
            materialized,
            name,
            right_is_optional=right_is_optional,
        )
        return KTable(*joined)

    def _check_table(self, other: object) -> None:
        if not isinstance(other, KTable):
            raise TypeError(f"a table is joined with {other!r}; expected a KTable (KStream.to_table makes one)")

    def _filter(
        self,
        predicate: Predicate[K, V],
        negate: bool,
        materialized: Materialized[K, V] | str | None,
        name: str | None,
    ) -> KTable[K, V]:
        store = self._named_store("KTABLE-FILTER-", materialized)
        logic = DerivedTable(self._logic, store, lambda kept, old: TableFilter(predicate, negate, kept, old))
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
        )
        place.graph.add(node, place.node)
        derived = Place(
            place.graph,
            node,
            node.name,
            options.key_serde or place.key_serde,
            options.value_serde or (place.value_serde if keeps_values else None),
            place.sources,
        )
        return KTable(derived, logic, None if store is None else store.name)

    def _add(self, prefix: str, name: str | None, operator: Callable[[], OperatorSupplier]) -> OperatorNode:
        graph = self._place.graph
        node = OperatorNode(graph.namer.named(name, prefix), operator)
        graph.add(node, self._place.node)
        return node
