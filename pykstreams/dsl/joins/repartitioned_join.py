"""Joins by shipped rows in the graph: what one-to-many joins and their relatives have in common.

Rows of the referring table go through a repartition topic to the rows that they refer to, are kept there, and joined in
the task of the referred table. What is special about a kind of join is said by a ``ShippedJoin``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import StreamPartitioner, ValueJoiner
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.place import Place
from pykstreams.dsl.stores.materialization import TableStore, join_store, options_of, table_store
from pykstreams.dsl.stores.tables import JoinedTable
from pykstreams.dsl.table import Table
from pykstreams.processors import TableView
from pykstreams.processors.reference_join import JoinReferred, JoinShipped, ReferenceJoin, ReferenceJoinView
from pykstreams.processors.referred_row_check import ReferredRowCheck
from pykstreams.processors.shipped_rows import KeepShipped, ReferenceKeys
from pykstreams.serdes.base import Serde
from pykstreams.serdes.combined_key import CombinedKeySerde
from pykstreams.serdes.defaults import OverDefault, or_default
from pykstreams.topology.graph import GraphNode, RepartitionSettings, write_topic_between
from pykstreams.topology.internal_topics import REPARTITION_SUFFIX
from pykstreams.topology.reference_partitioner import ReferencePartitioner
from pykstreams.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class ShippedJoin:
    """What one kind of join makes of the machinery.

    :param prefix: what generated names start with, such as ``KTABLE-ONETOMANY-``.
    :param ship: sends the rows of the referring table to the repartition topic.
    :param joiner: ``joiner(referred value, referring value)``.
    :param shipped_serde: of the keys of shipped rows in their store, and in the topic unless ``topic_serde`` is given.
    :param result_serde: of the keys of the result, where ``materialized`` has none.
    :param keep: store name -> what keeps the rows that come from the topic.
    :param partitioner: of the topic; without one the reference alone is hashed, written by the key serde of the
        referred table.
    """

    prefix: str
    ship: OperatorSupplier
    joiner: ValueJoiner[Any, Any, Any]
    keys: ReferenceKeys
    shipped_serde: Any
    result_serde: Any
    topic_serde: Any = None
    keep: Callable[[str], OperatorSupplier] = KeepShipped
    partitioner: StreamPartitioner[Any, Any] | None = None
    keeps_unmatched: bool = False
    keeps_unreferred: bool = False


class ShippedJoinTable(JoinedTable):
    """The result: kept in a store of its own, or read from the shipped rows and the referred table."""

    def __init__(self, join: ReferenceJoin, store: TableStore | None, check: ReferredRowCheck) -> None:
        super().__init__(store)
        self.join = join
        self._check = check

    def send_old_values(self, *, force: bool) -> bool:
        self.sends_old_values = True
        return True

    def shipped_operator(self) -> OperatorSupplier:
        """Joins changes of shipped rows."""
        return JoinShipped(self.join, self.sends_old_values)

    def referred_operator(self) -> OperatorSupplier:
        """Joins changes of the referred table."""
        return JoinReferred(self.join, self.sends_old_values, self._check)

    def _view_without_store(self) -> TableView:
        return ReferenceJoinView(self.join)


@dataclass(frozen=True, slots=True)
class _Names:
    ship: str
    keep: str
    join_shipped: str
    join_referred: str
    merge: str


class ShippedJoinNode(GraphNode):
    """Ships, keeps, joins from both sides, and merges; the node has the name of the merger."""

    def __init__(
        self,
        names: _Names,
        parents: tuple[str, str],
        join: ShippedJoin,
        topic: RepartitionSettings,
        shipped: TableStore,
        logic: ShippedJoinTable,
    ) -> None:
        super().__init__(names.merge, versioned=logic.history_ms is not None)
        self._names = names
        self._parents = parents
        self._join = join
        self._topic = topic
        self._shipped = shipped
        self._logic = logic

    def write(self, topology: Topology) -> None:
        names, join, topic, logic = self._names, self._join, self._topic, self._logic
        referring, referred = self._parents
        topology.add_processor(names.ship, join.ship, referring)
        topology.add_internal_topic(topic.topic, topic.num_partitions, decides=True)
        write_topic_between(topology, topic, (names.ship,))
        topology.add_processor(names.keep, join.keep(self._shipped.name), topic.source_name)
        topology.add_state_store(self._shipped, names.keep)
        topology.add_processor(names.join_shipped, logic.shipped_operator(), names.keep)
        topology.add_processor(names.join_referred, logic.referred_operator(), referred)
        topology.add_processor(names.merge, logic.operator(), names.join_shipped, names.join_referred)
        for store in logic.stores():
            topology.add_state_store(store, names.merge)
        for name in (names.join_shipped, names.join_referred):
            topology.connect_processor_and_state_stores(name, *logic.join.stores)


def add_shipped_join(
    referring: Table,
    referred: Table,
    join: ShippedJoin,
    materialized: Materialized[Any, Any] | str | None,
    name: str | None,
) -> Table:
    """Adds the join and returns the joined table.

    The repartition topic has as many partitions as the topics of the referred table. Where these are the application's
    own, and nobody gave them a number, all have as many as the topics of the referring table.
    """
    referring_place, referred_place = referring.place, referred.place
    graph, namer, prefix = referring_place.graph, referring_place.graph.namer, join.prefix
    store = None
    result_serde, value_serde = join.result_serde, None
    if materialized is not None:
        store = table_store(graph, options_of(materialized), f"{prefix}RESULT-", join.result_serde, None)
        result_serde, value_serde = store.key_serde, store.value_serde
    ship = namer.suffixed(name, "-ship", f"{prefix}SHIP-")
    sink = namer.suffixed(name, "-sink", "KTABLE-SINK-")
    source = namer.suffixed(name, "-source", "KTABLE-SOURCE-")
    shipped = join_store(
        namer.suffixed(name, "-shipped-store", f"{prefix}SHIPPED-STATE-STORE-"),
        join.shipped_serde,
        referring_place.value_serde,
    )
    names = _Names(
        ship,
        namer.suffixed(name, "-keep", f"{prefix}KEEP-"),
        namer.suffixed(name, "-join-shipped", f"{prefix}JOINSHIPPED-"),
        namer.suffixed(name, "-join-referred", f"{prefix}JOINREFERRED-"),
        namer.named(name, f"{prefix}MERGE-"),
    )
    of_referred = referred_place.partitioner or ReferencePartitioner(_same, referred_place.key_serde)
    by_reference = of_referred.of_keys(join.keys.reference)
    topic = RepartitionSettings(
        (ship if name is None else name) + REPARTITION_SUFFIX,
        sink,
        source,
        join.shipped_serde if join.topic_serde is None else join.topic_serde,
        referring_place.value_serde,
        join.partitioner or by_reference,
    )
    if name is None:
        graph.implicit_names.repartitions.append(topic.topic)
        graph.implicit_names.add_store(shipped.name, logging=shipped.logging)
    sources = referred_place.sources | {source}
    graph.copartitioned.append(set(sources))
    referring.logic.send_old_values(force=True)
    referred.logic.send_old_values(force=True)
    reference_join = ReferenceJoin(
        shipped.name,
        referred.logic.materialize_view(),
        join.joiner,
        join.keys,
        join.keeps_unmatched,
        join.keeps_unreferred,
    )
    logic = ShippedJoinTable(reference_join, store, ReferredRowCheck(topic.topic, of_referred))
    node = ShippedJoinNode(names, (referring_place.name, referred_place.name), join, topic, shipped, logic)
    graph.add(node, referring_place.node, referred_place.node)
    shipped_key = join.keys.shipped
    place = Place(
        graph,
        node,
        names.merge,
        result_serde,
        value_serde,
        sources,
        partitioner=by_reference if shipped_key is None else by_reference.of_keys(shipped_key),
    )
    return Table(place, logic, store)


def combined_serde(prefix: Any, suffix: Any) -> Any:
    """The length-encoded serde of combined keys; halves without a serde have the default one."""
    return over_default(prefix, lambda first: over_default(suffix, lambda second: CombinedKeySerde(first, second)))


def over_default(serde: Any, wrap: Callable[[Serde[Any]], Any]) -> Any:
    """What ``wrap`` makes of a serde: now, or as an ``OverDefault`` where the default serde is needed for it."""
    if serde is not None and not isinstance(serde, OverDefault):
        return wrap(serde)
    return OverDefault(lambda default: or_default(wrap(or_default(serde, lambda: default)), lambda: default))


def _same(key: Any) -> Any:
    return key
