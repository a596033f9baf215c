"""``KTable``: a table that changes; each record below it is a change of one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, overload

from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import V1, V2, KeyValueMapper, Predicate, ValueJoiner
from pykstreams.core.user_code.suppliers import check_supplier
from pykstreams.core.user_code.tells_where import TellsWhere
from pykstreams.core.value_transformer import ValueTransformerWithKey, ValueTransformerWithKeySupplier
from pykstreams.dsl.aggregations.suppression import Suppressed, suppress
from pykstreams.dsl.annotations.inference import pair_serdes, passed_on, transformer_serde, value_serde
from pykstreams.dsl.grouped_table import KGroupedTable
from pykstreams.dsl.joins.join_kind import JoinKind
from pykstreams.dsl.joins.one_to_many_join import ResultKeys, join_one_to_many
from pykstreams.dsl.joins.table_joins import TableJoinOptions, add_table_join
from pykstreams.dsl.options import Grouped, Materialized, TableJoined, expected
from pykstreams.dsl.other_steps import TO_A_STREAM
from pykstreams.dsl.place import Place, record_serdes_of
from pykstreams.dsl.record_serdes import RecordSerdes
from pykstreams.dsl.stores.materialization import TableStore, named_table_store, options_of
from pykstreams.dsl.stores.table_logic import DerivedTable
from pykstreams.dsl.table import Table
from pykstreams.dsl.user_calls import calls
from pykstreams.dsl.user_nodes import provided_stores
from pykstreams.processors import (
    TableFilter,
    TableMapValues,
    TableRepartitionMap,
    TableToStream,
    TableTransformValues,
)
from pykstreams.serdes.base import AnySerde, Serde
from pykstreams.serdes.combined_key import CombinedKey
from pykstreams.serdes.composed_keys import ComposedKeySerde
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.topology.graph import OperatorNode, is_versioned
from pykstreams.topology.stores import StoreFactory

if TYPE_CHECKING:
    from pykstreams.dsl.kstream import KStream

K = TypeVar("K")
V = TypeVar("V")
KF = TypeVar("KF")
KO = TypeVar("KO")
KR = TypeVar("KR")
VO = TypeVar("VO")
VR = TypeVar("VR")


class KTable(TellsWhere, Generic[K, V]):
    """A table: at most one row a key, the value ``None`` deletes a row.

    Whether a table keeps a store is up to ``materialized``: a named one does and can be queried, others keep one only
    if something after them needs it. Source: ``KTable``, 4.3.1.
    """

    _elsewhere = dict.fromkeys(
        (
            "flat_map",
            "flat_map_values",
            "foreach",
            "lookup",
            "map",
            "map_values_async",
            "merge",
            "peek",
            "print",
            "process",
            "process_values",
            "repartition",
            "select_key",
            "split",
            "to",
            "to_sql",
        ),
        TO_A_STREAM,
    ) | {
        **dict.fromkeys(("aggregate", "count", "reduce"), "group it first: group_by(...).{name}(...)"),
        "group_by_key": "the rows of a table are grouped by group_by(...), whose function gives key and value",
        "to_table": "it is one",
        "windowed_by": "windows are of streams: group_by_key().windowed_by(...) of the stream that it is made of",
    }

    def __init__(self, table: Table) -> None:
        self._table = table

    def __repr__(self) -> str:
        return self._table.place.shown_as("KTable")

    def _repr_html_(self) -> str:
        """The table in a notebook, with the steps that lead to it."""
        return self._table.place.drawn_as("KTable")

    @property
    def queryable_store_name(self) -> str | None:
        """The name of the store, if the user gave one."""
        return self._table.queryable_store_name

    @property
    def _record_serdes(self) -> RecordSerdes:
        return record_serdes_of(self._table.place)

    @calls(predicate="key, value")
    def filter(
        self,
        predicate: Predicate[K, V],
        *,
        materialized: Materialized[K, V] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Keeps the rows for which ``predicate(key, value)`` holds; a row that no longer does is deleted."""
        return self._filter(predicate, False, materialized, name)

    @calls(predicate="key, value")
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
    @calls(mapper="key?, value -> value")
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
        values = value_serde(mapper)
        store = self._named_store("KTABLE-MAPVALUES-", materialized, values)
        logic = DerivedTable(self._table.logic, store, lambda kept, old: TableMapValues(mapper, with_key, kept, old))
        return self._derived("KTABLE-MAPVALUES-", name, logic, materialized, store, values)

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
        check_supplier(supplier, ValueTransformerWithKey, "transform", "key", "value")
        keys, values = passed_on(self._table.place.key_serde), transformer_serde(supplier)
        store = None if materialized is None else named_table_store(options_of(materialized), keys, values)
        logic = DerivedTable(self._table.logic, store, lambda kept, old: TableTransformValues(supplier, kept, old))
        made: KTable[K, VR] = self._derived(
            "KTABLE-TRANSFORMVALUES-",
            name,
            logic,
            materialized,
            store,
            values,
            brought=provided_stores(supplier),
            connect=state_store_names,
        )
        place = made._table.place
        place.graph.makers[place.name, "value"] = ""
        return made

    @overload
    def to_stream(self, key_mapper: None = None, *, name: str | None = None) -> KStream[K, V]: ...
    @overload
    def to_stream(self, key_mapper: KeyValueMapper[K, V, KR], *, name: str | None = None) -> KStream[KR, V]: ...
    @calls(key_mapper="key, value -> key")
    def to_stream(
        self, key_mapper: KeyValueMapper[K, V, KR] | None = None, *, name: str | None = None
    ) -> KStream[K, V] | KStream[KR, V]:
        """Returns the changes of the table as a stream, under new keys if ``key_mapper(key, value)`` is given."""
        from pykstreams.dsl.kstream import KStream

        place = self._table.place
        node = self._add("KTABLE-TOSTREAM-", name, TableToStream)
        stream: KStream[K, V] = KStream(
            Place(place.graph, node, node.name, place.key_serde, place.value_serde, place.sources)
        )
        return stream if key_mapper is None else stream._with_selected_keys(key_mapper)

    def suppress(self, suppressed: Suppressed) -> KTable[K, V]:
        """Holds changes back until a window closes, or for a time; see ``Suppressed``.

        What waits is kept in a store in memory with a changelog; a table read from a topic is kept, too, since others
        read the old value of a row whose change waits.
        """
        return KTable(suppress(self._table, suppressed))

    @calls(selector="key, value -> pair")
    def group_by(
        self,
        selector: KeyValueMapper[K, V, tuple[KR, VR]],
        grouped: Grouped[KR, VR] | None = None,
    ) -> KGroupedTable[KR, VR]:
        """Groups the rows by the key of the pair ``selector(key, value)``, through a repartition topic.

        When a row changes its old pair is taken away from its group, and the new one added to its.
        """
        options, (keys, values) = expected("grouped", grouped, Grouped) or Grouped(), pair_serdes(selector)
        place = self._table.place
        node = self._add(
            "KTABLE-SELECT-", options.name, lambda: TableRepartitionMap(selector, is_versioned(place.node))
        )
        self._table.logic.send_old_values(force=True)
        keys, values = options.key_serde or keys, options.value_serde or values
        selected = Place(place.graph, node, node.name, keys, values, place.sources, rekeyed=True)
        return KGroupedTable(selected, options.name)

    @overload
    def join(
        self,
        other: KTable[K, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        complete_history: bool = False,
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
    @overload
    def join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR | None],
        *,
        mapper: KeyValueMapper[K, V, KO | None],
        selector: KeyValueMapper[K, KO, KR],
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]: ...
    @calls(
        joiner="value, other value -> value",
        foreign_key_extractor="key?, value",
        foreign_keys_extractor="value",
        mapper="key, value",
        selector="key, other key",
    )
    def join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR | None],
        *,
        foreign_key_extractor: Callable[..., KO | None] | None = None,
        foreign_keys_extractor: Callable[[V], Iterable[KO | None]] | None = None,
        extractor_with_key: bool = False,
        table_joined: TableJoined[K, KO] | None = None,
        mapper: KeyValueMapper[K, V, KO | None] | None = None,
        selector: KeyValueMapper[K, KO, KR] | None = None,
        complete_history: bool = False,
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]:
        """Joins the rows that both tables have by ``joiner(value, other value)``; ``None`` from it is no row.

        A change of either table gives a change of the join, with the larger timestamp of the two rows. Both tables get
        a store if they have none to be read from, and their topics must have equal partition counts.

        Where a table is versioned, changes that are older than the newest of their row give nothing, and so an older
        result may have become wrong. With ``complete_history`` each change gives a result for every version that the
        other table had while the change was valid, and deletions where there is none any more. Both tables must be
        versioned, and ``materialized`` name a versioned store: as of any time it then has what a relational join of
        both histories has, as far as all three stores go back (see their history retention in ms). A result has the
        larger timestamp of the two rows, or the time at which one of them was deleted; one that began before the oldest
        time that can be kept or told gets that time instead. Changes that are too late are dropped and counted. What is
        forwarded may be older than the newest of its row, so that a topic of it must be read as a versioned table.

        With ``foreign_key_extractor(value)``, or ``(key, value)`` if ``extractor_with_key``, each row is joined with
        the other table's row of that key; ``None`` joins with nothing. The result has the keys of this table. The
        sides talk to each other through two topics, and who refers to what is kept in a store with a changelog;
        ``name``, or the one of ``table_joined``, names all of them. Partition counts may then differ.

        With ``foreign_keys_extractor(value)``, which gives any number of keys, each row is joined with all rows that it
        refers to. The result has a row for each pair, under ``CombinedKey(foreign key, key)``; null keys are dropped
        and counted. See ``one_to_many_join``, which goes the same way.

        With ``mapper(key, value)``, which gives a key of the other table, each row is joined with the row of that key,
        and the result has the key that ``selector(key, other key)`` gives. Keys may be windowed, and the other table
        may be this one. Rows go through two repartition topics: to the row that they are joined with, and to the
        partition of their selected key. Where several rows select one key, the one written last stays, and when it goes
        the one before comes back; such collisions are counted (``selected-key-collisions-total``). The serdes of the
        result are those of ``materialized``, or the defaults. Rows whose mapped or selected key is ``None`` are dropped
        and counted. See docs/guides/non-key-joins.md.
        """
        options = TableJoinOptions(
            materialized,
            name,
            foreign_key_extractor,
            extractor_with_key,
            table_joined,
            foreign_keys_extractor,
            mapper,
            selector,
            complete_history,
        )
        return self._joined(other, joiner, options, JoinKind.INNER)

    @overload
    def left_join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[V, VO | None], VR],
        *,
        complete_history: bool = False,
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
    @overload
    def left_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V, VO | None], VR | None],
        *,
        mapper: KeyValueMapper[K, V, KO | None],
        selector: KeyValueMapper[K, KO | None, KR],
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]: ...
    @calls(
        joiner="value, other value -> value",
        foreign_key_extractor="key?, value",
        foreign_keys_extractor="value",
        mapper="key, value",
        selector="key, other key",
    )
    def left_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V, VO | None], VR | None],
        *,
        foreign_key_extractor: Callable[..., KO | None] | None = None,
        foreign_keys_extractor: Callable[[V], Iterable[KO | None]] | None = None,
        extractor_with_key: bool = False,
        table_joined: TableJoined[K, KO] | None = None,
        mapper: KeyValueMapper[K, V, KO | None] | None = None,
        selector: KeyValueMapper[K, KO, KR] | None = None,
        complete_history: bool = False,
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]:
        """Joins each row of this table by ``joiner(value, other value or None)``; see ``join``.

        With ``foreign_keys_extractor`` a row is joined with ``None`` for each key that the other table does not have; a
        row that gives no keys has no rows in the result.

        With ``mapper`` and ``selector`` a row whose mapped key the other table does not have, or which has none, gets
        the key ``selector(key, None)``.
        """
        options = TableJoinOptions(
            materialized,
            name,
            foreign_key_extractor,
            extractor_with_key,
            table_joined,
            foreign_keys_extractor,
            mapper,
            selector,
            complete_history,
        )
        return self._joined(other, joiner, options, JoinKind.LEFT)

    @overload
    def right_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V | None, VO], VR | None],
        *,
        foreign_key_extractor: Callable[[V], KO | None],
        extractor_with_key: Literal[False] = False,
        materialized: Materialized[CombinedKey[KO, K | None], VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[CombinedKey[KO, K | None], VR]: ...
    @overload
    def right_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V | None, VO], VR | None],
        *,
        foreign_key_extractor: Callable[[K, V], KO | None],
        extractor_with_key: Literal[True],
        materialized: Materialized[CombinedKey[KO, K | None], VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[CombinedKey[KO, K | None], VR]: ...
    @calls(joiner="value, other value -> value", foreign_key_extractor="key?, value")
    def right_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V | None, VO], VR | None],
        *,
        foreign_key_extractor: Callable[..., KO | None],
        extractor_with_key: bool = False,
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]:
        """Joins each row of ``other`` with all rows of this table that refer to it by a foreign key.

        The result has a row ``joiner(value, other value)`` for each pair, under ``CombinedKey(foreign key, key)``, and
        one ``joiner(None, other value)`` for each row of ``other`` that nobody refers to, under ``CombinedKey(its key,
        None)``; that row goes before the first pair comes, and is back after the last has gone. Timestamps are the
        larger of both rows. Rows of this table whose foreign key is ``None`` are dropped and counted.

        ``CombinedKeySerde(serde of other keys, OptionalSerde(serde of keys))`` reads and writes the keys of the result.
        """
        options: TableJoinOptions[K, V, KO, KR, VR] = TableJoinOptions(
            materialized, name, foreign_key_extractor, extractor_with_key
        )
        return self._joined(other, joiner, options, JoinKind.RIGHT)

    @overload
    def outer_join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[V | None, VO | None], VR],
        *,
        complete_history: bool = False,
        materialized: Materialized[K, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[K, VR]: ...
    @overload
    def outer_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V | None, VO | None], VR | None],
        *,
        foreign_key_extractor: Callable[[V], KF],
        extractor_with_key: Literal[False] = False,
        materialized: Materialized[CombinedKey[KF, K | None], VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[CombinedKey[KF, K | None], VR]: ...
    @overload
    def outer_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V | None, VO | None], VR | None],
        *,
        foreign_key_extractor: Callable[[K, V], KF],
        extractor_with_key: Literal[True],
        materialized: Materialized[CombinedKey[KF, K | None], VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[CombinedKey[KF, K | None], VR]: ...
    @overload
    def outer_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V | None, VO | None], VR | None],
        *,
        mapper: KeyValueMapper[K, V, KO | None],
        selector: KeyValueMapper[K | None, KO | None, KR],
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]: ...
    @calls(
        joiner="value, other value -> value",
        foreign_key_extractor="key?, value",
        mapper="key, value",
        selector="key, other key",
    )
    def outer_join(
        self,
        other: KTable[KO, VO],
        joiner: Callable[[V | None, VO | None], VR | None],
        *,
        foreign_key_extractor: Callable[..., Any] | None = None,
        extractor_with_key: bool = False,
        mapper: KeyValueMapper[K, V, KO | None] | None = None,
        selector: KeyValueMapper[K | None, KO | None, KR] | None = None,
        complete_history: bool = False,
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]:
        """Joins the rows that either table has by ``joiner(value or None, other value or None)``; see ``join``.

        With ``foreign_key_extractor`` the result is that of ``right_join``, and besides has each row of this table that
        refers to a missing one, joined with ``None`` under the same ``CombinedKey(foreign key, key)``. A row whose
        foreign key is ``None`` refers to nothing and is kept, too, as ``CombinedKey(None, key)``. Both parts of the key
        are written by an ``OptionalSerde``.

        With ``mapper`` and ``selector``, rows of this table without partner have the key ``selector(key, None)``, and
        those of the other table ``selector(None, other key)``.
        """
        options = TableJoinOptions(
            materialized,
            name,
            foreign_key_extractor,
            extractor_with_key,
            mapper=mapper,
            selector=selector,
            complete_history=complete_history,
        )
        return self._joined(other, joiner, options, JoinKind.OUTER)

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
    @calls(
        joiner="value, other value -> value",
        key_extractor="other value",
        output_key_combiner="combined key",
        output_key_splitter="result key",
        join_prefix_faker="key",
        left_key_extractor="result key",
    )
    def one_to_many_join(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V, VO, VR],
        *,
        key_extractor: Callable[[VO], K | None],
        combined_key_serde: AnySerde | None = None,
        output_key_combiner: Callable[[CombinedKey[K, KO]], KR] | None = None,
        output_key_splitter: Callable[[KR], CombinedKey[K, KO]] | None = None,
        join_prefix_faker: Callable[[K], KR] | None = None,
        left_key_extractor: Callable[[KR], K] | None = None,
        materialized: Materialized[KR, VR] | str | None = None,
        name: str | None = None,
    ) -> KTable[KR, VR]:
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
        return KTable(join_one_to_many(self._table, other._table, joiner, key_extractor, keys, materialized, name))

    def _joined(
        self,
        other: KTable[KO, VO],
        joiner: ValueJoiner[V1, V2, VR | None],
        options: TableJoinOptions[K, V, KO, KR, VR],
        kind: JoinKind,
    ) -> KTable[KR, VR]:
        self._check_table(other)
        return KTable(add_table_join(self._table, other._table, joiner, options, kind))

    def _check_table(self, other: object) -> None:
        if not isinstance(other, KTable):
            raise TypeError(
                f"a table is joined with {other!r}; expected a KTable (KStream.to_table makes one). A stream is joined "
                "with a table the other way round: stream.join(table, ...)"
            )

    def _filter(
        self,
        predicate: Predicate[K, V],
        negate: bool,
        materialized: Materialized[K, V] | str | None,
        name: str | None,
    ) -> KTable[K, V]:
        values, parent = self._table.place.value_serde, self._table.place.node
        store = self._named_store("KTABLE-FILTER-", materialized, passed_on(values))
        logic = DerivedTable(
            self._table.logic,
            store,
            lambda kept, old: TableFilter(predicate, negate, kept, old, is_versioned(parent)),
        )
        table: KTable[K, V] = self._derived("KTABLE-FILTER-", name, logic, materialized, store, values)
        logic.follow_parent()
        return table

    def _named_store(
        self, prefix: str, materialized: Materialized[KR, VR] | str | None, values: SerdeOrDefault
    ) -> TableStore | None:
        if materialized is None:
            return None
        store = named_table_store(options_of(materialized), passed_on(self._table.place.key_serde), values)
        if store is None:
            self._table.place.graph.namer.store(prefix)
        return store

    def _derived(
        self,
        prefix: str,
        name: str | None,
        logic: DerivedTable,
        materialized: Materialized[KR, VR] | str | None,
        store: TableStore | None,
        values: SerdeOrDefault,
        *,
        brought: tuple[StoreFactory, ...] = (),
        connect: tuple[str, ...] = (),
    ) -> KTable[K, VR]:
        place, options = self._table.place, options_of(materialized)
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
            options.value_serde or values,
            place.sources,
            partitioner=place.partitioner,
        )
        return KTable(Table(derived, logic, store))

    def _add(self, prefix: str, name: str | None, operator: Callable[[], OperatorSupplier]) -> OperatorNode:
        graph = self._table.place.graph
        node = OperatorNode(graph.namer.named(name, prefix), operator)
        graph.add(node, self._table.place.node)
        return node
