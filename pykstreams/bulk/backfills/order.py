"""In which order sub-topologies run over history: each after all that send to it.

Where some send to each other in a circle, as the two sides of a foreign-key join do, they are run in turns until none
has anything left to read.
"""

from __future__ import annotations

from graphlib import TopologicalSorter

from pykstreams.topology.plan import SinkNode, SubtopologyPlan, TopologyPlan


def in_order(plan: TopologyPlan) -> list[tuple[SubtopologyPlan, ...]]:
    """The sub-topologies in groups: those of a circle together, every group after those that send to it."""
    parts = plan.subtopologies
    reached = {part.id: {other.id for other in parts if _sends_to(part, other)} for part in parts}
    for between in reached:
        for found in reached.values():
            if between in found:
                found |= reached[between]
    group = {
        part: min([part, *(other for other in others if part in reached[other])]) for part, others in reached.items()
    }
    sorter: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(sorted(set(group.values())), ()))
    for part, others in reached.items():
        for other in sorted(others):
            if group[other] != group[part]:
                sorter.add(group[other], group[part])
    return [tuple(part for part in parts if group[part.id] == number) for number in sorter.static_order()]


def reads(part: SubtopologyPlan, topic: str) -> bool:
    """Whether a sub-topology reads a topic."""
    return topic in part.source_topics or any(pattern.fullmatch(topic) for pattern in part.source_patterns)


def _sends_to(part: SubtopologyPlan, other: SubtopologyPlan) -> bool:
    """Whether it may: topics that are chosen per record may be any that is not the application's own."""
    if any(reads(other, topic) for topic in part.sink_topics):
        return True
    chooses = any(isinstance(node, SinkNode) and not isinstance(node.topic, str) for node in part.nodes.values())
    return chooses and (bool(other.source_patterns) or not set(other.source_topics) <= set(other.repartition_topics))
