"""Which stores have their keys where murmur2 does not put them, since the sources above them name a partitioner."""

from __future__ import annotations

from pykstreams.topology.placement.key_placement import KeyPlacement
from pykstreams.topology.plan import ProcessorNode, SinkNode, SubtopologyPlan


def placed_nodes(part: SubtopologyPlan) -> dict[str, KeyPlacement]:
    """Returns the nodes below such sources, with where the keys lie of what they get; elsewhere murmur2 decides."""
    found: dict[str, KeyPlacement] = {}
    for source in part.sources:
        if source.placement is None:
            continue
        below: set[str] = {*source.children}
        for name, node in part.nodes.items():  # parents come first
            if name in below and not isinstance(node, SinkNode):
                below.update(node.children)
        found.update(dict.fromkeys(below, source.placement))
    return found


def placed_stores(part: SubtopologyPlan) -> dict[str, KeyPlacement]:
    """Returns the stores of such nodes, with where their keys lie."""
    placed = placed_nodes(part)
    return {
        store: placed[name]
        for name, node in part.nodes.items()
        if name in placed and isinstance(node, ProcessorNode)
        for store in node.stores
    }
