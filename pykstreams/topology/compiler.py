"""Writes the logical graph into a ``Topology``: each node once, after its parents, by the order of adding."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterator

from pykstreams.topology import generated_names
from pykstreams.topology.graph import (
    GlobalStoreNode,
    Graph,
    GraphNode,
    OperatorNode,
    StateStoreNode,
    StreamStreamJoinNode,
    TableSourceNode,
)
from pykstreams.topology.step_facts import facts_of
from pykstreams.topology.topology import Topology

log = logging.getLogger(__name__)


def compile_graph(graph: Graph, topology: Topology, *, explicit_names: bool) -> None:
    """Adds every node of the graph, then checks what can be checked without a cluster.

    ``explicit_names`` refuses names of internal topics and stores that nobody gave (KIP-1111).
    """
    for node in _in_order(graph):
        node.write(topology)
    for group in graph.copartitioned:
        topology.copartition(group)
    topology.check_copartitioning()
    topology.note_serdes(graph.serdes)
    topology.note_makers(graph.makers)
    topology.note_contradictions(graph.contradictions)
    topology.note_partitioners(graph.partitioners)
    for one in topology.contradictions:
        log.warning("%s", one)
    generated = str(graph.implicit_names)
    topology.note_generated_names(generated)
    if explicit_names:
        generated_names.refuse(generated)
    elif generated:
        log.info("names that change when the script changes (name them to keep state over changes): %s", generated)


def topology_above(graph: Graph, node: GraphNode) -> Topology:
    """Returns a topology of a node and all that it needs, as they are now: what is above it, and the stores it reads.

    It is for drawings.
    """
    nodes = {one.name: one for one in graph.nodes()}
    homes = {name: one for one in nodes.values() for name in _brought(one)}
    needed: set[GraphNode] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one not in needed:
            needed.add(one)
            waiting += [*one.parents, *(homes[name] for name in _read(one) if name in homes)]
            if isinstance(one, StreamStreamJoinNode):
                waiting += [nodes[name] for name in (one.this_windowed, one.other_windowed) if name in nodes]
    topology = Topology()
    for one in _in_order(graph):
        if one in needed:
            one.write(topology)
    topology.note_serdes(graph.serdes)
    return topology


def _brought(node: GraphNode) -> Iterator[str]:
    """The stores that come with a node."""
    if isinstance(node, OperatorNode | TableSourceNode):
        yield from (store.name for store in node.stores())
    elif isinstance(node, GlobalStoreNode | StateStoreNode):
        yield node.store.name


def _read(node: GraphNode) -> tuple[str, ...]:
    """The stores that a node reads, which may have come with others."""
    return (*node.connect, *facts_of(node.operator()).tables) if isinstance(node, OperatorNode) else ()


def _in_order(graph: Graph) -> Iterator[GraphNode]:
    """Each node once, after its parents, by the order of adding."""
    written = {graph.root}
    queue: list[tuple[int, int, GraphNode]] = []
    added = 0

    def offer(children: list[GraphNode]) -> None:
        nonlocal added
        for child in children:
            heapq.heappush(queue, (child.priority, added, child))
            added += 1

    offer(graph.root.children)
    while queue:
        node = heapq.heappop(queue)[2]
        if node not in written and written.issuperset(node.parents):
            yield node
            written.add(node)
            offer(node.children)
