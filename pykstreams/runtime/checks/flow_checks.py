"""Where records of a topology go: steps whose results nobody takes, and topics that are written to be read again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pykstreams.processors import Filter, FlatMap, FlatMapValues, Map, MapValues, SelectKey
from pykstreams.runtime.checks.finding import Finding, Severity
from pykstreams.topology.changes.lineage import written_topics
from pykstreams.topology.plan import ProcessorNode, TopologyPlan

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
    """The topics that are written with what comes of their own records, by way of others too."""
    sources = written_topics(plan)

    def comes_back(topic: str) -> bool:
        above: set[str] = set()
        waiting = [topic]
        while waiting:
            new = set(sources.get(waiting.pop(), ())) - above
            above |= new
            waiting += new
        return topic in above

    return set(filter(comes_back, sources))
