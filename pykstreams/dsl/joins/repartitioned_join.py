"""Joins by repartitioned rows in the graph: the common part of one-to-many joins and their relatives.

Left is the table whose rows refer to rows of the other, as in foreign-key joins of Kafka Streams, whichever of the two
the user called the join on. Left rows go through a repartition topic to the right rows that they refer to, are kept
there, and joined in the task of the right table. A ``RepartitionedJoin`` says what is special about a kind of join.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from pykstreams.core.names import REPARTITION_SUFFIX, NodeNamer
from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import KR, V1, V2, VR, AnyPartitioner, ValueJoiner
from pykstreams.dsl.joins.table_placement import check_referred_placement
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.place import Place
from pykstreams.dsl.stores.materialization import TableStore, join_store, options_of, table_store
from pykstreams.dsl.stores.table_logic import JoinedTable
from pykstreams.dsl.table import Table
from pykstreams.processors import AnyTableView
from pykstreams.processors.foreign_keys.reference_join import (
    JoinReferred,
    JoinRepartitioned,
    ReferenceJoin,
    ReferenceJoinView,
)
from pykstreams.processors.foreign_keys.referred_row_check import ReferredRowCheck
from pykstreams.processors.foreign_keys.repartitioned_rows import KeepRepartitioned, RepartitionedKeys
from pykstreams.serdes.base import AnySerde
from pykstreams.serdes.combined_key import CombinedKeySerde
from pykstreams.serdes.defaults import OverDefault, SerdeOrDefault, over_default
from pykstreams.topology.graph import GraphNode, RepartitionSettings, write_topic_between
from pykstreams.topology.placement.reference_partitioner import ReferencePartitioner
from pykstreams.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class RepartitionedJoin(Generic[V1, V2]):
    """One kind of join by repartitioned rows.

    :param prefix: what generated names start with, such as ``KTABLE-ONETOMANY-``.
    :param send: sends the left rows to the repartition topic.
    :param joiner: ``joiner(right value, left value)``.
    :param kept_serde: of the keys of repartitioned rows in their store, and in the topic where ``topic_serde`` is none.
    :param result_serde: of the keys of the result, where ``materialized`` has none.
    :param value_serde: of the values of the result, likewise.
    :param keep: store name -> the operator that keeps the rows that come from the topic.
    :param partitioner: of the topic; without one the foreign key alone is hashed, written by the key serde of the right
        table.
    """

    prefix: str
    send: OperatorSupplier
    joiner: ValueJoiner[V2 | None, V1 | None, object]
    keys: RepartitionedKeys
    kept_serde: SerdeOrDefault
    result_serde: SerdeOrDefault
    topic_serde: SerdeOrDefault = None
    keep: Callable[[str], OperatorSupplier] = KeepRepartitioned
    partitioner: AnyPartitioner | None = None
    keeps_unmatched: bool = False
    keeps_unreferred: bool = False
    value_serde: SerdeOrDefault = None


class RepartitionedJoinTable(JoinedTable, Generic[V1, V2]):
    """The result: kept in a store of its own, or read from the repartitioned rows and the right table."""

    def __init__(self, join: ReferenceJoin[V1, V2], store: TableStore | None, check: ReferredRowCheck) -> None:
        super().__init__(store)
        self.join = join
        self._check = check

    def send_old_values(self, *, force: bool) -> bool:
        self.sends_old_values = True
        return True

    def left_operator(self) -> OperatorSupplier:
        """Joins changes of repartitioned left rows."""
        return JoinRepartitioned(self.join, self.sends_old_values)

    def right_operator(self) -> OperatorSupplier:
        """Joins changes of the right table."""
        return JoinReferred(self.join, self.sends_old_values, self._check)

    def _view_without_store(self) -> AnyTableView:
        return ReferenceJoinView(self.join)


@dataclass(frozen=True, slots=True)
class _Names:
    send: str
    sink: str
    source: str
    store: str
    keep: str
    join_left: str
    join_right: str
    merge: str

    @classmethod
    def taken(cls, namer: NodeNamer, name: str | None, prefix: str) -> _Names:
        """Returns the next names, in the order in which they are counted.

        Names of topics and stores stay as they were when applications began with them: ``ship`` and ``referred`` stand
        for what the code calls repartitioned and right rows.
        """
        return cls(
            send=namer.suffixed(name, "-ship", f"{prefix}SHIP-"),
            sink=namer.suffixed(name, "-sink", "KTABLE-SINK-"),
            source=namer.suffixed(name, "-source", "KTABLE-SOURCE-"),
            store=namer.suffixed(name, "-shipped-store", f"{prefix}SHIPPED-STATE-STORE-"),
            keep=namer.suffixed(name, "-keep", f"{prefix}KEEP-"),
            join_left=namer.suffixed(name, "-join-shipped", f"{prefix}JOINSHIPPED-"),
            join_right=namer.suffixed(name, "-join-referred", f"{prefix}JOINREFERRED-"),
            merge=namer.named(name, f"{prefix}MERGE-"),
        )


class RepartitionedJoinNode(GraphNode, Generic[V1, V2]):
    """Sends left rows on, keeps them, joins from both sides, and merges; the node has the name of the merger."""

    def __init__(
        self,
        names: _Names,
        parents: tuple[str, str],
        join: RepartitionedJoin[V1, V2],
        topic: RepartitionSettings,
        kept: TableStore,
        logic: RepartitionedJoinTable[V1, V2],
    ) -> None:
        super().__init__(names.merge, versioned=logic.history_ms is not None)
        self._names = names
        self._parents = parents
        self._join = join
        self._topic = topic
        self._kept = kept
        self._logic = logic

    def write(self, topology: Topology) -> None:
        names, join, topic, logic = self._names, self._join, self._topic, self._logic
        left, right = self._parents
        topology.add_processor(names.send, join.send, left)
        topology.add_internal_topic(topic.topic, topic.num_partitions, decides=True)
        write_topic_between(topology, topic, (names.send,))
        topology.add_processor(names.keep, join.keep(self._kept.name), topic.source_name)
        topology.add_state_store(self._kept, names.keep)
        topology.add_processor(names.join_left, logic.left_operator(), names.keep)
        topology.add_processor(names.join_right, logic.right_operator(), right)
        topology.add_processor(names.merge, logic.operator(), names.join_left, names.join_right)
        for store in logic.stores():
            topology.add_state_store(store, names.merge)
        for name in (names.join_left, names.join_right):
            topology.connect_processor_and_state_stores(name, *logic.join.stores)


def add_repartitioned_join(
    left: Table,
    right: Table,
    join: RepartitionedJoin[V1, V2],
    materialized: Materialized[KR, VR] | str | None,
    name: str | None,
) -> Table:
    """Adds the join and returns the joined table.

    The repartition topic has as many partitions as the topics of the right table. Where these are the application's
    own, and nobody gave them a number, all have as many as the topics of the left table.
    """
    left_place, right_place = left.place, right.place
    check_referred_placement(right_place)
    graph = left_place.graph
    store = None
    result_serde, value_serde = join.result_serde, join.value_serde
    if materialized is not None:
        store = table_store(graph, options_of(materialized), f"{join.prefix}RESULT-", join.result_serde, value_serde)
        result_serde, value_serde = store.key_serde, store.value_serde
    names = _Names.taken(graph.namer, name, join.prefix)
    kept = join_store(names.store, join.kept_serde, left_place.value_serde)
    of_right = right_place.partitioner or ReferencePartitioner(_same, right_place.key_serde)
    by_foreign_key = of_right.of_keys(join.keys.foreign_key)
    graph.partitioners[kept.name] = by_foreign_key
    topic = RepartitionSettings(
        (names.send if name is None else name) + REPARTITION_SUFFIX,
        names.sink,
        names.source,
        join.kept_serde if join.topic_serde is None else join.topic_serde,
        left_place.value_serde,
        join.partitioner or by_foreign_key,
    )
    if name is None:
        graph.implicit_names.repartitions.append(topic.topic)
        graph.implicit_names.add_store(kept.name, logging=kept.logging)
    sources = right_place.sources | {names.source}
    graph.copartitioned.append(set(sources))
    left.logic.send_old_values(force=True)
    right.logic.send_old_values(force=True)
    reference_join: ReferenceJoin[V1, V2] = ReferenceJoin(
        kept.name,
        right.logic.materialize_view(),
        join.joiner,
        join.keys,
        join.keeps_unmatched,
        join.keeps_unreferred,
    )
    logic = RepartitionedJoinTable(reference_join, store, ReferredRowCheck(topic.topic, of_right))
    node = RepartitionedJoinNode(names, (left_place.name, right_place.name), join, topic, kept, logic)
    graph.add(node, left_place.node, right_place.node)
    to_row_key = join.keys.repartitioned
    place = Place(
        graph,
        node,
        names.merge,
        result_serde,
        value_serde,
        sources,
        partitioner=by_foreign_key if to_row_key is None else by_foreign_key.of_keys(to_row_key),
    )
    return Table(place, logic, store)


def combined_serde(prefix: SerdeOrDefault, suffix: SerdeOrDefault) -> AnySerde | OverDefault:
    """The length-encoded serde of combined keys; halves without a serde have the default one."""
    return over_default(prefix, lambda first: over_default(suffix, lambda second: CombinedKeySerde(first, second)))


def _same(key: object) -> object:
    return key
