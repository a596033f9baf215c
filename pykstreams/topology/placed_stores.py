"""Which stores have their keys where murmur2 does not put them, since the sources above them name a partitioner."""

from __future__ import annotations

from pykstreams.core.key_placement import KeyPlacement
from pykstreams.topology.plan import ProcessorNode, SourceNode, SubtopologyPlan, TopologyPlan


def placed_stores(plan: TopologyPlan) -> dict[str, KeyPlacement]:
    """Returns these stores by name, with where their keys lie; in all others murmur2 decides."""
    found: dict[str, KeyPlacement] = {}
    for part in plan.subtopologies:
        for source in part.sources:
            if source.placement is not None:
                found.update(dict.fromkeys(_stores_below(part, source), source.placement))
    return found


def _stores_below(part: SubtopologyPlan, source: SourceNode) -> list[str]:
    below: set[str] = {source.name}
    stores: list[str] = []
    for name, node in part.nodes.items():  # parents come first
        if name not in below or not isinstance(node, SourceNode | ProcessorNode):
            continue
        below.update(node.children)
        if isinstance(node, ProcessorNode):
            stores += node.stores
    return stores
