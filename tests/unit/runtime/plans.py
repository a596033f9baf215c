"""Small plans for tests of the runtime, made without a topology."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pykstreams.core.config import StreamsConfig
from pykstreams.processors import TableSource
from pykstreams.state import Stores
from pykstreams.state.spec import StoreBuilder
from pykstreams.topology.internal_topics import repartition_topic
from pykstreams.topology.plan import (
    GlobalStorePlan,
    InternalTopic,
    Node,
    ProcessorNode,
    SinkNode,
    SourceNode,
    SubtopologyPlan,
    TopologyPlan,
)

APPLICATION = "shop"


def source(name: str, *topics: str, pattern: str | None = None, reset: Any = None) -> SourceNode:
    return SourceNode(
        name=name,
        topics=topics,
        pattern=re.compile(pattern) if pattern else None,
        key_deserializer=None,
        value_deserializer=None,
        timestamp_extractor=None,
        offset_reset=reset,
        children=(),
    )


def sink(name: str, topic: str) -> SinkNode:
    return SinkNode(name, topic, None, None, None)


def part(
    number: int,
    *nodes: Node,
    repartition: Iterable[tuple[str, int | None]] = (),
    changelogs: Mapping[str, InternalTopic] | None = None,
    copartition: Iterable[Iterable[str]] = (),
    stores: Mapping[str, Any] | None = None,
) -> SubtopologyPlan:
    sources = [node for node in nodes if isinstance(node, SourceNode)]
    logs = dict(changelogs or {})
    return SubtopologyPlan(
        id=number,
        nodes={node.name: node for node in nodes},
        stores=dict(stores or {}),
        source_topics=tuple(topic for node in sources for topic in node.topics),
        source_patterns=tuple(node.pattern for node in sources if node.pattern),
        sink_topics=tuple(node.topic for node in nodes if isinstance(node, SinkNode) and isinstance(node.topic, str)),
        repartition_topics={name: repartition_topic(name, count, StreamsConfig()) for name, count in repartition},
        changelogs={store: topic.name for store, topic in logs.items()},
        changelog_topics={topic.name: topic for topic in logs.values()},
        reused_changelogs={},
        copartition_groups=tuple(frozenset(group) for group in copartition),
    )


def plan(*parts: SubtopologyPlan, global_stores: Iterable[GlobalStorePlan] = ()) -> TopologyPlan:
    return TopologyPlan(APPLICATION, parts, parts[0], tuple(global_stores))


def global_store(name: str, topic: str) -> GlobalStorePlan:
    """The plan of a global table."""
    builder: StoreBuilder[Any] = Stores.key_value_store_builder(Stores.in_memory_key_value_store(name), logging=False)
    writer = ProcessorNode("KTABLE-SOURCE-9", TableSource(name), (name,), ())
    return GlobalStorePlan(topic, source("KSTREAM-SOURCE-9", topic), writer, builder, False)
