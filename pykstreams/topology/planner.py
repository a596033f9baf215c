"""Makes the plan of a topology for one configuration: full topic names, stores as they will be built."""

from __future__ import annotations

from collections.abc import Iterable

from pykstreams.core.config import StreamsConfig
from pykstreams.core.names import changelog_name, internal_topic_name
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.spec import StoreBuilder
from pykstreams.topology import generated_names
from pykstreams.topology.definition import (
    GlobalStoreDefinition,
    NodeDefinition,
    ProcessorDefinition,
    SinkDefinition,
    SourceDefinition,
    TopologyDefinition,
)
from pykstreams.topology.internal_topics import changelog_topic, repartition_topic
from pykstreams.topology.java.copartition_groups import java_copartition_groups
from pykstreams.topology.java.hash_order import hash_set_order
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
from pykstreams.topology.stores import global_store_for_run, store_for_run


def make_plan(definition: TopologyDefinition, config: StreamsConfig) -> TopologyPlan:
    """Plans every sub-topology, and all of them as one.

    ``TopologyError``: names are missing that the configuration wants (``ensure.explicit.internal.resource.naming``).
    """
    if config.ensure_explicit_internal_resource_naming:
        generated_names.refuse(definition.generated_names)
    planner = _Planner(definition, config)
    of_global_stores = definition.global_nodes
    parts = tuple(
        planner.part(i, names)
        for i, names in enumerate(definition.groups.groups())
        if of_global_stores.keys().isdisjoint(names)
    )
    whole = planner.part(0, [name for name in definition.nodes if name not in of_global_stores])
    stores = tuple(planner.global_store(one) for one in definition.global_stores.values())
    return TopologyPlan(
        planner.application_id,
        parts,
        whole,
        stores,
        planner.ordered_copartition_groups(),
        definition.partitioners,
    )


class _Planner:
    def __init__(self, definition: TopologyDefinition, config: StreamsConfig) -> None:
        self.application_id = config.application_id
        self._definition = definition
        self._config = config
        self._children: dict[str, list[str]] = {name: [] for name in definition.nodes}
        for node in definition.nodes.values():
            for parent in node.predecessors:
                self._children[parent].append(node.name)
        self._stores: dict[str, StoreBuilder[TaskStore]] = {}
        self._copartitioned = self._copartition_groups()

    def part(self, number: int, names: Iterable[str]) -> SubtopologyPlan:
        """The plan of some of the nodes."""
        wanted = frozenset(names)
        members = [node for name, node in self._definition.nodes.items() if name in wanted]
        sources = [node for node in members if isinstance(node, SourceDefinition)]
        stores = {
            name: self._store(name) for node in members if isinstance(node, ProcessorDefinition) for name in node.stores
        }
        source_topics = tuple(self._full(topic) for node in sources for topic in node.topics)
        changelogs = {name: self._changelog(name) for name, store in stores.items() if self._is_restored(store)}
        reused = self._definition.changelog_sources
        topics = {name: changelog_topic(topic, stores[name], self._config) for name, topic in changelogs.items()}
        return SubtopologyPlan(
            id=number,
            nodes={node.name: self._node(node) for node in members},
            stores=stores,
            source_topics=source_topics,
            source_patterns=tuple(node.pattern for node in sources if node.pattern is not None),
            sink_topics=tuple(
                dict.fromkeys(
                    self._full(node.topic)
                    for node in members
                    if isinstance(node, SinkDefinition) and isinstance(node.topic, str)
                )
            ),
            repartition_topics=self._repartition_topics(sources),
            changelogs=changelogs,
            changelog_topics={topic.name: topic for name, topic in topics.items() if name not in reused},
            reused_changelogs={topic.name: topic for name, topic in topics.items() if name in reused},
            copartition_groups=tuple(group for group in self._copartitioned if group & set(source_topics)),
            makers={
                (node.name, part): made
                for node in members
                for part in ("key", "value")
                if isinstance(node, SinkDefinition) or (node.name, part) in self._definition.makers
                if (made := self._definition.makers_of(node.name, part))
            },
        )

    def global_store(self, given: GlobalStoreDefinition) -> GlobalStorePlan:
        """The plan of a global store."""
        source, processor = self._definition.nodes[given.source], self._definition.nodes[given.processor]
        assert isinstance(source, SourceDefinition) and isinstance(processor, ProcessorDefinition)
        store = global_store_for_run(given.store, self._config)
        return GlobalStorePlan(given.topic, self._source(source), self._processor(processor), store, given.reprocesses)

    def _node(self, node: NodeDefinition) -> Node:
        if isinstance(node, SourceDefinition):
            return self._source(node)
        if isinstance(node, ProcessorDefinition):
            return self._processor(node)
        topic = self._full(node.topic) if isinstance(node.topic, str) else node.topic
        return SinkNode(node.name, topic, node.key_serializer, node.value_serializer, node.partitioner)

    def _source(self, node: SourceDefinition) -> SourceNode:
        return SourceNode(
            node.name,
            tuple(self._full(topic) for topic in node.topics),
            node.pattern,
            node.key_deserializer,
            node.value_deserializer,
            node.timestamp_extractor,
            node.offset_reset,
            tuple(self._children[node.name]),
            node.placement,
        )

    def _processor(self, node: ProcessorDefinition) -> ProcessorNode:
        children = tuple(self._children[node.name])
        return ProcessorNode(node.name, node.supplier, node.stores, children, node.unwrapped)

    def _store(self, name: str) -> StoreBuilder[TaskStore]:
        if name not in self._stores:
            own_changelog = name not in self._definition.changelog_sources
            self._stores[name] = store_for_run(self._definition.stores[name], self._config, logging=own_changelog)
        return self._stores[name]

    def _is_restored(self, store: StoreBuilder[TaskStore]) -> bool:
        return store.logging or store.name in self._definition.changelog_sources

    def _changelog(self, store: str) -> str:
        reused = self._definition.changelog_sources.get(store)
        return changelog_name(self.application_id, store) if reused is None else self._full(reused)

    def _full(self, topic: str) -> str:
        return internal_topic_name(self.application_id, topic) if topic in self._definition.internal_topics else topic

    def _repartition_topics(self, sources: list[SourceDefinition]) -> dict[str, InternalTopic]:
        owned = self._definition.internal_topics
        return {
            self._full(topic): repartition_topic(
                self._full(topic), owned[topic], self._config, decides=topic in self._definition.deciding_topics
            )
            for node in sources
            for topic in node.topics
            if topic in owned
        }

    def ordered_copartition_groups(self) -> tuple[tuple[str, ...], ...]:
        """The groups as Kafka Streams tells them to brokers."""
        return java_copartition_groups(
            self._topics_of(hash_set_order(sorted(names), copied=True)) for names in self._definition.copartitioned
        )

    def _topics_of(self, names: Iterable[str]) -> list[str]:
        members = (self._definition.nodes.get(name) for name in names)
        return [self._full(topic) for node in members if isinstance(node, SourceDefinition) for topic in node.topics]

    def _copartition_groups(self) -> tuple[frozenset[str], ...]:
        """Groups of topics; groups that share a topic are one."""
        groups: list[set[str]] = []
        for names in self._definition.copartitioned:
            topics = {*self._topics_of(names)}
            for other in [group for group in groups if group & topics]:
                topics |= other
                groups.remove(other)
            groups.append(topics)
        return tuple(frozenset(group) for group in groups)
