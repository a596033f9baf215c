"""Parts of a task that makes state which nobody sees: a sub-topology without sinks, a producer that sends nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pykstreams.core.types import Forward, Headers
from pykstreams.topology.plan import Node, ProcessorNode, SinkNode, SubtopologyPlan


def only_stores(plan: SubtopologyPlan) -> SubtopologyPlan:
    """The same sub-topology without sinks and without nodes that lead to no store; their names stay, as dead ends."""
    leading: set[str] = set()
    nodes: dict[str, Node] = {}
    for name in reversed(list(plan.nodes)):
        node = plan.nodes[name]
        stores, children = getattr(node, "stores", ()), getattr(node, "children", ())
        if stores or leading.intersection(children):
            leading.add(name)
            nodes[name] = node
        elif isinstance(node, SinkNode | ProcessorNode):
            nodes[name] = ProcessorNode(name, _DeadEnd(), (), ())
        else:
            nodes[name] = replace(node, children=())
    return replace(plan, nodes={name: nodes[name] for name in plan.nodes})


class Nowhere:
    """A producer for the shadow's task: nothing is sent."""

    def produce(self, *_: object, **__: object) -> None:
        """Drops a record."""

    def poll(self, timeout_s: float, /) -> int:
        return 0

    def flush(self, timeout_s: float, /) -> int:
        return 0


class _DeadEnd:
    """An operator that does nothing."""

    def build(self, context: Any) -> Forward:
        def nothing(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            """Drops a row that the live task has forwarded."""

        return nothing
