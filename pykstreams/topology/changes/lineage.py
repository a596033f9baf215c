"""The way to a store, or to a topic that the application writes: the topics from which records reach it."""

from __future__ import annotations

from collections.abc import Iterable

from pykstreams.topology.plan import Node, ProcessorNode, SinkNode, SourceNode, SubtopologyPlan, TopologyPlan


def read_topics(source: SourceNode) -> tuple[str, ...]:
    """The topics of a source; a pattern stands as ``/pattern/``."""
    return source.topics if source.pattern is None else (f"/{source.pattern.pattern}/",)


def topics_of_store(part: SubtopologyPlan, store: str) -> tuple[str, ...]:
    """The topics from which records reach a store.

    Operators that keep their rows in it count; where none says so, all that are connected to it do.
    """
    connected = [node for node in part.nodes.values() if isinstance(node, ProcessorNode) and store in node.stores]
    writers = [node for node in connected if getattr(node.operator, "store", None) == store]
    return _above(part, (node.name for node in writers or connected))


def written_topics(plan: TopologyPlan) -> dict[str, tuple[str, ...]]:
    """The topics that sinks write, those whose names are chosen per record apart, each with what leads to it."""
    found: dict[str, set[str]] = {}
    for part in plan.subtopologies:
        for node in part.nodes.values():
            if isinstance(node, SinkNode) and isinstance(node.topic, str):
                found.setdefault(node.topic, set()).update(_above(part, (node.name,)))
    return {topic: tuple(sorted(found[topic])) for topic in sorted(found)}


def _above(part: SubtopologyPlan, names: Iterable[str]) -> tuple[str, ...]:
    """The topics of the sources above some nodes: parents come before their children."""
    wanted = set(names)
    topics: set[str] = set()
    for node in reversed(list(part.nodes.values())):
        if isinstance(node, SourceNode) and (node.name in wanted or not wanted.isdisjoint(node.children)):
            topics.update(read_topics(node))
        elif not wanted.isdisjoint(_children(node)):
            wanted.add(node.name)
    return tuple(sorted(topics))


def _children(node: Node) -> tuple[str, ...]:
    return () if isinstance(node, SinkNode) else node.children
