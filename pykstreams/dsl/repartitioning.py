"""Repartition topics in the graph: how they and the nodes around them are named."""

from __future__ import annotations

import re

from pykstreams.core.names import REPARTITION_SUFFIX
from pykstreams.core.types import AnyPartitioner
from pykstreams.dsl.place import Place
from pykstreams.processors import Filter, FilterNothing
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.topology.graph import Graph, RepartitionNode, RepartitionSettings
from pykstreams.topology.placement.key_placement import KeyPlacement
from pykstreams.topology.placement.reference_partitioner import ReferencePartitioner

_GENERATED = re.compile(r"KSTREAM.*-[0-9]{10}")


def repartition_node(
    graph: Graph,
    prefix: str,
    key_serde: SerdeOrDefault,
    value_serde: SerdeOrDefault,
    *,
    named: bool,
    optimizable: bool = True,
    partitioner: AnyPartitioner | None = None,
    num_partitions: int | None = None,
    placement: KeyPlacement | None = None,
) -> RepartitionNode:
    """Makes a repartition node whose topic is ``<prefix>-repartition``; ``named`` says that the user gave the prefix.

    Names of the nodes around it are generated where the prefix is (``KStreamImpl.createRepartitionedSource``, 4.3.1).
    With a ``placement`` it takes the place of a partitioner, and no other repartition topic can stand in for this one.
    """
    topic = prefix if prefix.endswith(REPARTITION_SUFFIX) else prefix + REPARTITION_SUFFIX
    if not named:
        graph.implicit_names.repartitions.append(topic)
    sink = graph.namer.node("KSTREAM-SINK-")
    null_keys = graph.namer.node("KSTREAM-FILTER-")
    source = graph.namer.node("KSTREAM-SOURCE-")
    if not _GENERATED.fullmatch(prefix):
        sink, null_keys, source = f"{topic}-sink", f"{topic}-filter", f"{topic}-source"
    if placement is not None:
        partitioner, optimizable = ReferencePartitioner(_same, key_serde, placement=placement), False
        graph.place_keys(source, placement)
    settings = RepartitionSettings(
        topic, sink, source, key_serde, value_serde, partitioner, num_partitions, placement=placement
    )
    return RepartitionNode(settings, null_keys, Filter(_has_key), FilterNothing(), optimizable=optimizable)


def repartitioned_for_join(
    place: Place,
    name: str | None,
    key_serde: SerdeOrDefault,
    value_serde: SerdeOrDefault,
    placement: KeyPlacement | None = None,
) -> Place:
    """The place to join a stream at: itself, or behind a repartition topic where its keys may have changed, or do not
    lie where the ``placement`` of the join has them.

    Without a name the topic is named after the stream, and made once for all joins of that stream
    (``KStreamImpl.repartitionForJoin``, 4.3.1). Serdes that are not given are those of the stream.
    """
    if not place.is_scattered and place.placement == placement:
        return place
    graph, prefix = place.graph, name or place.name
    key_serde, value_serde = key_serde or place.key_serde, value_serde or place.value_serde
    made = repartition_node(
        graph,
        prefix if name is not None or placement is None else f"{prefix}-placed",
        key_serde,
        value_serde,
        named=name is not None,
        optimizable=place.rekeyed,
        placement=placement,
    )
    node = graph.join_repartitions.get((place, placement))
    if node is None or prefix != place.name:
        node = graph.join_repartitions[place, placement] = made
        graph.add(node, place.node)
    return Place(graph, node, node.name, key_serde, value_serde, frozenset({node.name}))


def _same(key: object) -> object:
    return key


def _has_key(key: object, value: object) -> bool:
    return key is not None
