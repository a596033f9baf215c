"""Rewrites of the logical graph: duplicate sources and null keys always, the rest as ``topology.optimization`` says.

Source: ``InternalStreamsBuilder.buildAndOptimizeTopology``, 4.3.1 (KIP-295, KIP-312, KIP-862, KIP-962).
"""

from __future__ import annotations

from collections.abc import Callable

from pykstreams.core.errors import StreamsError, TopologyError
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.topology.graph import (
    Effect,
    Graph,
    GraphNode,
    RepartitionNode,
    StreamSourceNode,
    StreamStreamJoinNode,
    TableSourceNode,
)
from pykstreams.topology.source_types import check_same_types

_REUSE_SOURCE_TOPICS = "reuse.ktable.source.topics"
_MERGE_REPARTITION_TOPICS = "merge.repartition.topics"
_SINGLE_STORE_SELF_JOIN = "single.store.self.join"


def optimize(
    graph: Graph,
    wanted: frozenset[str],
    make_repartition: Callable[[str, SerdeOrDefault, SerdeOrDefault], RepartitionNode],
) -> None:
    """Rewrites the graph in place; ``make_repartition(topic name, key serde, value serde)`` makes a merged node.

    ``wanted`` holds names of ``topology.optimization``.
    """
    _merge_duplicate_sources(graph)
    if _REUSE_SOURCE_TOPICS in wanted:
        for node in graph.nodes():
            if isinstance(node, TableSourceNode):
                node.reuses_topic = True
    if _MERGE_REPARTITION_TOPICS in wanted:
        _merge_repartition_topics(graph, make_repartition)
    if _SINGLE_STORE_SELF_JOIN in wanted:
        _simplify_self_joins(graph)
    _keep_null_keys_for_joins(graph)


def _keep_null_keys_for_joins(graph: Graph) -> None:
    """Lets repartition topics take records without key where a join further down gives a result for them (KIP-962).

    Source: ``NodesWithRelaxedNullKeyJoinDownstream.find``, 4.3.1.
    """
    waiting = [node for node in graph.nodes() if node.joins_null_keys]
    above: set[GraphNode] = set()
    while waiting:
        for parent in waiting.pop().parents:
            if parent not in above:
                above.add(parent)
                waiting.append(parent)
    for node in above:
        if isinstance(node, RepartitionNode):
            node.keeps_null_keys = True


def _merge_duplicate_sources(graph: Graph) -> None:
    """Makes one source of those that read the same topics; refuses those that overlap without being equal."""
    by_topic: dict[object, StreamSourceNode] = {}
    for node in list(graph.root.children):
        if not isinstance(node, StreamSourceNode):
            continue
        keys: list[object] = list(node.topics)
        if node.pattern is not None:
            keys = [(node.pattern.pattern, node.pattern.flags)]
        for key in keys:
            first = by_topic.setdefault(key, node)
            if first is node:
                continue
            if set(first.topics) != set(node.topics):
                raise TopologyError(
                    f"sources {first.name} ({', '.join(first.topics)}) and {node.name} ({', '.join(node.topics)}) "
                    "read overlapping but not equal topics; read each topic by itself and merge the streams"
                )
            _merge_source(graph, first, node)
            break


def _merge_source(graph: Graph, first: StreamSourceNode, second: StreamSourceNode) -> None:
    if first.settings.offset_reset != second.settings.offset_reset:
        raise TopologyError(
            f"sources {first.name} and {second.name} read {first.read} with different offset reset policies; "
            "a topic is read once, so give both the same policy"
        )
    if first.settings.placement != second.settings.placement:
        raise TopologyError(
            f"sources {first.name} and {second.name} read {first.read} with different partitioners; the keys of a "
            "topic lie where its producers put them, so give both the same Consumed(partitioner=...)"
        )
    check_same_types(graph, first, second)
    for child in list(second.children):
        second.remove_child(child)
        first.add_child(child)
    graph.root.remove_child(second)
    graph.replace_source(second.name, first.name)


def _merge_repartition_topics(
    graph: Graph, make_repartition: Callable[[str, SerdeOrDefault, SerdeOrDefault], RepartitionNode]
) -> None:
    """Repartitions once, right behind the operation that changed the key, where several branches would do it."""
    for changer, repartitions in _repartitions_by_key_changer(graph).items():
        if not repartitions:
            continue
        merged = make_repartition(
            repartitions[0].settings.topic,
            next((r.settings.key_serde for r in repartitions if r.settings.key_serde is not None), None),
            next((r.settings.value_serde for r in repartitions if r.settings.value_serde is not None), None),
        )
        merged.priority = changer.priority
        for repartition in repartitions:
            child = _below(changer, repartition)
            if child is None:
                raise StreamsError(
                    f"{repartition.name} cannot be merged into one repartition topic behind {changer.name}, since both "
                    "come by one node; name the repartition topics, or leave merge.repartition.topics away"
                )
            merged.add_child(child)
            if child in changer.children:
                changer.remove_child(child)
            parents = list(repartition.parents)
            for grandchild in list(repartition.children):
                repartition.remove_child(grandchild)
                for parent in parents:
                    parent.add_child(grandchild)
            for parent in parents:
                parent.remove_child(repartition)
            graph.replace_source(repartition.name, merged.name)
        changer.add_child(merged)


def _repartitions_by_key_changer(graph: Graph) -> dict[GraphNode, list[RepartitionNode]]:
    nodes = graph.nodes()
    found: dict[GraphNode, list[RepartitionNode]] = {node: [] for node in nodes if node.effect is Effect.CHANGES_KEY}
    for node in nodes:
        if isinstance(node, RepartitionNode) and node.optimizable:
            changer = _key_changer_of(node)
            if changer is not None:
                found[changer].append(node)
    feeding = {
        merge: [
            changer
            for changer, repartitions in found.items()
            if all(_lies_below(repartition, merge) for repartition in repartitions) and _lies_below(merge, changer)
        ]
        for merge in nodes
        if merge.effect is Effect.MERGES
    }
    for merge, changers in feeding.items():
        found[merge] = list(dict.fromkeys(r for changer in changers for r in found[changer]))
    for changer in {changer for changers in feeding.values() for changer in changers}:
        del found[changer]
    return found


def _key_changer_of(repartition: RepartitionNode) -> GraphNode | None:
    """The operation that made the repartitioning needed, unless a change of values lies in between."""
    changer = _ancestor(repartition, lambda node: node.effect is Effect.CHANGES_KEY)
    nearest = _ancestor(repartition, lambda node: node.effect in (Effect.CHANGES_KEY, Effect.CHANGES_VALUE))
    return changer if changer is nearest else None


def _lies_below(node: GraphNode, above: GraphNode) -> bool:
    return _below(above, node) is not None


def _below(above: GraphNode, node: GraphNode) -> GraphNode | None:
    """The child of ``above`` that the node hangs on, or is."""
    return _ancestor(node, lambda candidate: above in candidate.parents)


def _ancestor(start: GraphNode, matches: Callable[[GraphNode], bool]) -> GraphNode | None:
    """The node itself or the first match above it, parents in order, depth first."""
    if matches(start):
        return start
    for parent in start.parents:
        if matches(parent):
            return parent
        found = _ancestor(parent, matches)
        if found is not None:
            return found
    return None


def _simplify_self_joins(graph: Graph) -> None:
    """Leaves one store to a stream that is joined with itself, whatever the kind of the join.

    That is where both sides come to the join from the same node (``rewriteSingleStoreSelfJoin``, 4.3.1).
    """
    for node in graph.nodes():
        if isinstance(node, StreamStreamJoinNode) and len(node.parents) == 1:
            parent = node.parents[0]
            for child in list(parent.children):
                if child.name == node.other_windowed:
                    parent.remove_child(child)
            node.joins_itself = True
