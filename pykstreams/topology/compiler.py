"""Writes the logical graph into a ``Topology``: each node once, after its parents, by the order of adding."""

from __future__ import annotations

import heapq
import logging

from pykstreams.core.errors import TopologyError
from pykstreams.topology.graph import Graph, GraphNode
from pykstreams.topology.topology import Topology

log = logging.getLogger(__name__)


def compile_graph(graph: Graph, topology: Topology, *, explicit_names: bool) -> None:
    """Adds every node of the graph, then checks what can be checked without a cluster.

    ``explicit_names`` refuses names of internal topics and stores that nobody gave (KIP-1111).
    """
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
            node.write(topology)
            written.add(node)
            offer(node.children)
    for group in graph.copartitioned:
        topology.copartition(group)
    topology.check_copartitioning()
    _check_names(graph, explicit_names)


def _check_names(graph: Graph, explicit_names: bool) -> None:
    unnamed = str(graph.implicit_names)
    if not unnamed:
        return
    if explicit_names:
        raise TopologyError(
            f"ensure.explicit.internal.resource.naming is on, and these have generated names: {unnamed}; "
            "name them by Materialized, Grouped, Repartitioned or StreamJoined"
        )
    log.info("names that change when the script changes (name them to keep state over changes): %s", unnamed)
