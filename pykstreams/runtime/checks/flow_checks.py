"""Where records of a topology go: steps whose results nobody takes, and topics that are written to be read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pykstreams.processors import Filter, FlatMap, FlatMapValues, Map, MapValues, SelectKey
from pykstreams.runtime.checks.finding import Finding, Severity
from pykstreams.topology.plan import ProcessorNode, SinkNode, SourceNode, SubtopologyPlan, TopologyPlan

_ONLY_FORWARD: Final = (Filter, FlatMap, FlatMapValues, Map, MapValues, SelectKey)
"""Steps that are there for what they make; their functions may do something, too, which is what ``foreach`` is for."""


def flow_findings(plan: TopologyPlan) -> Iterator[Finding]:
    """Finds steps without successors that are there for what they make, and topics whose records come round again."""
    for part in plan.subtopologies:
        for node in part.nodes.values():
            if isinstance(node, ProcessorNode) and not node.children and isinstance(node.operator, _ONLY_FORWARD):
                yield Finding(
                    Severity.WARNING,
                    "topology",
                    "what it makes goes nowhere",
                    node.name,
                    "go on with what the step returns (a stream itself does not change), or take foreach, if its "
                    "function is there for what it does",
                )
    internal = {topic.name for topic in plan.internal_topics}
    for topic in sorted(_coming_back(plan) - internal):
        yield Finding(
            Severity.WARNING,
            "topology",
            "what this topology makes of its records comes back to it, without an end",
            topic,
            "write to another topic, or see to it that a step drops what has gone round",
        )


def _coming_back(plan: TopologyPlan) -> set[str]:
    """The topics that are written with what comes of their own records."""
    written: dict[str, set[str]] = {}
    for part in plan.subtopologies:
        for source in part.sources:
            below = _written_below(part, source)
            for topic in source.topics:
                written.setdefault(topic, set()).update(below)
    return {topic for topic in written if topic in _reached(written, topic)}


def _written_below(part: SubtopologyPlan, source: SourceNode) -> set[str]:
    """The topics that a source leads to within its sub-topology."""
    below, topics = {*source.children}, set[str]()
    for name, node in part.nodes.items():  # parents come first
        if name not in below:
            continue
        if isinstance(node, SinkNode):
            topics.update([node.topic] if isinstance(node.topic, str) else [])
        else:
            below.update(node.children)
    return topics


def _reached(written: Mapping[str, set[str]], topic: str) -> set[str]:
    """The topics that a topic leads to, by way of others too."""
    reached: set[str] = set()
    waiting = [topic]
    while waiting:
        new = written.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached
