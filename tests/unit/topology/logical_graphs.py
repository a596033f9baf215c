"""Logical graphs without the DSL: sources, steps and repartition topics by name."""

from __future__ import annotations

import re
from typing import Any

from pykstreams.processors import Filter, FilterNothing, PassThrough
from pykstreams.topology.graph import (
    Effect,
    Graph,
    GraphNode,
    OperatorNode,
    RepartitionNode,
    RepartitionSettings,
    SourceSettings,
    StreamSourceNode,
)
from pykstreams.topology.offset_reset import AutoOffsetReset


def add_source(graph: Graph, name: str, *topics: str, offset_reset: AutoOffsetReset | None = None) -> StreamSourceNode:
    """Adds a source of topics."""
    node = StreamSourceNode(name, topics, None, SourceSettings(None, None, None, offset_reset))
    graph.add(node, graph.root)
    return node


def add_pattern(graph: Graph, name: str, pattern: re.Pattern[str]) -> StreamSourceNode:
    """Adds a source of the topics that match a pattern."""
    node = StreamSourceNode(name, (), pattern, SourceSettings(None, None, None, None))
    graph.add(node, graph.root)
    return node


def add_step(
    graph: Graph,
    name: str,
    *parents: GraphNode,
    effect: Effect = Effect.KEEPS,
    joins_null_keys: bool = False,
) -> OperatorNode:
    """Adds a step that forwards what it gets."""
    node = OperatorNode(name, PassThrough, effect=effect, joins_null_keys=joins_null_keys)
    graph.add(node, *parents)
    return node


def make_repartition(
    topic: str, key_serde: Any = None, value_serde: Any = None, partitions: int | None = None
) -> RepartitionNode:
    """A repartition node that the optimizer may replace; its source is named after the topic."""
    settings = RepartitionSettings(
        topic, f"{topic}-sink", f"{topic}-source", key_serde, value_serde, num_partitions=partitions
    )
    return RepartitionNode(
        settings, f"{topic}-filter", Filter(lambda key, value: key is not None), FilterNothing(), optimizable=True
    )


def add_repartition(
    graph: Graph,
    topic: str,
    parent: GraphNode,
    *,
    key_serde: object = None,
    value_serde: object = None,
    partitions: int | None = None,
) -> RepartitionNode:
    """Adds such a node."""
    node = make_repartition(topic, key_serde, value_serde, partitions)
    graph.add(node, parent)
    return node
