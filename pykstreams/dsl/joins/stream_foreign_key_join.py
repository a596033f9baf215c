"""Joins of a stream with a table by a foreign key: what ``KStream.join`` and ``left_join`` with ``key_selector`` put
into the graph for a table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from pykstreams.core.processor import OperatorSupplier
from pykstreams.core.types import KR, VR, K, KeyValueMapper, V
from pykstreams.dsl.joins.foreign_key_types import check_foreign_key
from pykstreams.dsl.joins.stream_table_join import VO, OnExpiredHistory, join_stream_with_table
from pykstreams.dsl.options import Joined, Repartitioned, expected
from pykstreams.dsl.place import Place
from pykstreams.dsl.repartitioning import repartition_node
from pykstreams.dsl.table import Table
from pykstreams.processors.joins.stream_foreign_key_join import JoinCarried, OwnKeys, SelectForeignKey, SelectOwnKey
from pykstreams.serdes.carried import CarriedSerde
from pykstreams.serdes.defaults import over_default
from pykstreams.topology.graph import Effect, OperatorNode


def join_stream_by_foreign_key(
    stream: Place,
    table: Table,
    key_selector: KeyValueMapper[K, V, KR | None],
    joiner: Callable[..., object],
    joined: Joined[KR, V, VO] | None,
    repartitioned: Repartitioned[K, VR] | None,
    *,
    keeps_left: bool,
    with_key: bool,
    on_expired_history: OnExpiredHistory = "null",
) -> Place:
    """Adds the join between two repartition topics, and returns the place of its results, which have the stream's keys.

    Nodes are named like those of ``select_key``, a join, ``select_key`` and ``repartition``.
    """
    there: Joined[KR, V, VO] = expected("joined", joined, Joined) or Joined()
    back: Repartitioned[K, VR] = expected("repartitioned", repartitioned, Repartitioned) or Repartitioned()
    graph, foreign_serde = stream.graph, there.key_serde or table.place.key_serde
    check_foreign_key(key_selector, table.place, foreign_serde)
    selecting = graph.namer.node("KSTREAM-KEY-SELECT-")
    own_keys = OwnKeys(stream.key_serde, there.name or selecting)
    referring = _added(stream, selecting, SelectForeignKey(key_selector, own_keys, keeps_left))
    referring = dataclasses.replace(
        referring,
        key_serde=foreign_serde,
        value_serde=over_default(there.value_serde or stream.value_serde, CarriedSerde),
    )
    results = join_stream_with_table(
        referring,
        table,
        joiner,
        there.replace(key_serde=None, value_serde=None),
        keeps_left=keeps_left,
        with_key=False,
        on_expired_history=on_expired_history,
        around=lambda join: JoinCarried(join, own_keys, with_key),
    )
    own = _added(results, graph.namer.node("KSTREAM-KEY-SELECT-"), SelectOwnKey(own_keys))
    name = back.name or (None if there.name is None else f"{there.name}-back")
    keys, values = back.key_serde or stream.key_serde, back.value_serde or results.value_serde
    node = repartition_node(
        graph,
        name or graph.namer.node("KSTREAM-REPARTITION-"),
        keys,
        values,
        named=name is not None,
        optimizable=False,
        partitioner=back.partitioner,
        num_partitions=back.num_partitions,
    )
    node.keeps_null_keys = True  # records without key have results, too
    graph.add(node, own.node)
    return Place(graph, node, node.name, keys, values, frozenset({node.name}))


def _added(above: Place, name: str, operator: OperatorSupplier) -> Place:
    node = OperatorNode(name, lambda: operator, effect=Effect.CHANGES_KEY)
    above.graph.add(node, above.node)
    return Place(above.graph, node, name, None, None, above.sources, rekeyed=True)
