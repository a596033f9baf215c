"""Non-key joins: each row is joined with the row whose key a mapper gives, under the key that a selector gives.

Rows are repartitioned by their mapped key as in other joins by repartitioned rows, but as they are: key and value of
the table, with the mapped key in a header. Results are repartitioned by their selected key, so that all results of one
selected key are kept in one place.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter, methodcaller
from typing import Generic, TypeVar

from pykstreams.core.names import REPARTITION_SUFFIX
from pykstreams.core.types import KR, V1, V2, VR, K, KeyValueMapper, V, ValueJoiner
from pykstreams.dsl.annotations.inference import key_serde as returned_key_serde
from pykstreams.dsl.annotations.inference import value_serde as returned_value_serde
from pykstreams.dsl.joins.join_kind import JoinKind
from pykstreams.dsl.joins.optional_sides import over_missing_keys, over_missing_rows
from pykstreams.dsl.joins.outer_foreign_key_join import optional
from pykstreams.dsl.joins.repartitioned_join import (
    RepartitionedJoin,
    add_repartitioned_join,
    combined_serde,
)
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.place import Place
from pykstreams.dsl.stores.materialization import TableStore, join_store, named_table_store, options_of
from pykstreams.dsl.stores.table_logic import JoinedTable
from pykstreams.dsl.table import Table
from pykstreams.processors import AnyTableView
from pykstreams.processors.foreign_keys.mapped_rows import KeepMapped, MappedKeySerde, RepartitionMapped
from pykstreams.processors.foreign_keys.repartitioned_rows import RepartitionedKeys
from pykstreams.processors.foreign_keys.selected_keys import (
    Matched,
    NumberedSerde,
    SelectedKeys,
    SelectedView,
    SelectKeys,
)
from pykstreams.serdes.defaults import SerdeOrDefault, over_default
from pykstreams.topology.graph import Graph, OperatorNode, PlainRepartitionNode, RepartitionSettings
from pykstreams.topology.placement.reference_partitioner import ReferencePartitioner

_PREFIX = "KTABLE-NONKEY-"

KO = TypeVar("KO")


@dataclass(frozen=True, slots=True)
class MapperAndSelector(Generic[K, V, KO, KR]):
    """The two functions that make a join a non-key join.

    :param mapper: ``(key, value)`` of this table -> key of the other.
    :param selector: ``(key, key of the other)`` -> key of the result; for a missing row it gets ``None``.
    """

    mapper: KeyValueMapper[K, V, KO | None]
    selector: KeyValueMapper[K, KO, KR]

    @classmethod
    def of(
        cls,
        mapper: KeyValueMapper[K, V, KO | None] | None,
        selector: KeyValueMapper[K, KO, KR] | None,
        **others: object,
    ) -> MapperAndSelector[K, V, KO, KR] | None:
        """Reads what a user gave; ``TypeError`` for one without the other, or beside ``others``."""
        if mapper is None and selector is None:
            return None
        if not callable(mapper) or not callable(selector):
            raise TypeError(
                f"mapper is {mapper!r} and selector is {selector!r}; a non-key join needs both: mapper(key, value), "
                "which gives the key of the other table, and selector(key, other key), which gives that of the result"
            )
        given = [name for name, value in others.items() if value]
        if given:
            raise TypeError(
                f"mapper and selector were given beside {' and '.join(given)}, of another kind of join; leave one out"
            )
        return cls(mapper, selector)


class SelectedTable(JoinedTable):
    """The result: kept in a store that the user named, or read from all results of each selected key."""

    def __init__(self, view: SelectedView, store: TableStore | None) -> None:
        super().__init__(store)
        self._view = view

    def send_old_values(self, *, force: bool) -> bool:
        self.sends_old_values = True
        return True

    def _view_without_store(self) -> AnyTableView:
        return self._view


def join_on_mapped_key(
    this: Table,
    other: Table,
    joiner: ValueJoiner[V1, V2, VR | None],
    functions: MapperAndSelector[K, V, KO, KR],
    materialized: Materialized[KR, VR] | str | None,
    name: str | None,
    kind: JoinKind,
) -> Table:
    """Adds the join and returns the joined table."""
    graph, key_serde, mapped_serde = this.place.graph, this.place.key_serde, other.place.key_serde

    join_rows = over_missing_rows(joiner)

    def join_both(other_value: V2 | None, value: V1 | None) -> Matched | None:
        result = join_rows(value, other_value)
        return None if result is None else Matched(value is not None and other_value is not None, result)

    both_keys = combined_serde(optional(mapped_serde), optional(key_serde))
    join = RepartitionedJoin(
        _PREFIX,
        RepartitionMapped(functions.mapper, mapped_serde, f"{name or _PREFIX}mapped-key", keeps_null=kind.keeps_left),
        join_both,
        RepartitionedKeys(over_default(both_keys, methodcaller("partial_key_serializer"))),
        kept_serde=both_keys,
        result_serde=both_keys,
        topic_serde=over_default(
            mapped_serde, lambda mapped: over_default(key_serde, lambda own: MappedKeySerde(mapped, own))
        ),
        keep=KeepMapped,
        keeps_unmatched=kind.keeps_left,
        keeps_unreferred=kind.keeps_right,
    )
    joined = add_repartitioned_join(this, other, join, None, name)
    joined.logic.send_old_values(force=True)
    options = options_of(materialized)
    options = options.replace(
        key_serde=options.key_serde or returned_key_serde(functions.selector),
        value_serde=options.value_serde or returned_value_serde(joiner),
    )
    return _by_selected_key(graph, joined.place, both_keys, functions, options, name)


def _by_selected_key(
    graph: Graph,
    joined: Place,
    both_keys: SerdeOrDefault,
    functions: MapperAndSelector[K, V, KO, KR],
    options: Materialized[KR, VR],
    name: str | None,
) -> Table:
    namer, selector = graph.namer, over_missing_keys(functions.selector)
    keys = combined_serde(options.key_serde, both_keys)
    prefix_serializer = over_default(keys, methodcaller("partial_key_serializer"))
    select = OperatorNode(namer.suffixed(name, "-select", f"{_PREFIX}SELECT-"), lambda: SelectKeys(selector))
    graph.add(select, joined.node)
    topic = RepartitionSettings(
        (select.name if name is None else f"{name}-selected") + REPARTITION_SUFFIX,
        namer.suffixed(name, "-selected-sink", "KTABLE-SINK-"),
        namer.suffixed(name, "-selected-source", "KTABLE-SOURCE-"),
        keys,
        options.value_serde,
        ReferencePartitioner(itemgetter(0), options.key_serde),
    )
    between = PlainRepartitionNode(topic)
    graph.add(between, select)
    kept = join_store(
        namer.suffixed(name, "-selected-store", f"{_PREFIX}SELECTED-STATE-STORE-"),
        keys,
        over_default(options.value_serde, NumberedSerde),
        options.store_type,
    )
    if name is None:
        graph.implicit_names.repartitions.append(topic.topic)
        graph.implicit_names.add_store(kept.name, logging=kept.logging)
    selected = OperatorNode(
        namer.suffixed(name, "-selected", f"{_PREFIX}SELECTED-"),
        lambda: SelectedKeys(kept.name, prefix_serializer),
        stores=lambda: (kept,),
    )
    graph.add(selected, between)
    store = named_table_store(options)
    logic = SelectedTable(SelectedView(kept.name, prefix_serializer), store)
    result = OperatorNode(
        namer.suffixed(name, "-result", f"{_PREFIX}RESULT-"),
        logic.operator,
        stores=logic.stores,
        versioned=logic.history_ms is not None,
    )
    graph.add(result, selected)
    place = Place(graph, result, result.name, options.key_serde, options.value_serde, frozenset({topic.source_name}))
    return Table(place, logic, store)
