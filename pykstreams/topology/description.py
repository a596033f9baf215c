"""``Topology.describe()``: the nodes by sub-topology, and the very text that Kafka Streams prints.

The text lists nodes by how many paths lie below them, then by name; the names behind an arrow are ordered the same
way, but by the counts at the moment the arrow was drawn. So the arrows are drawn here in the order in which Kafka
Streams draws them (``InternalTopologyBuilder.describeSubtopology``, 4.3.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from pykstreams.core.config import StreamsConfig
from pykstreams.core.types import SinkTopic
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.state.spec import user_store
from pykstreams.topology.checks.written_types import known_type
from pykstreams.topology.definition import (
    NodeDefinition,
    ProcessorDefinition,
    SinkDefinition,
    SourceDefinition,
    TopologyDefinition,
)
from pykstreams.topology.drawings import drawing, picture
from pykstreams.topology.drawings.drawing import PlainDescription
from pykstreams.topology.java.hash_order import hash_set_order
from pykstreams.topology.java.tree_set import TreeSet
from pykstreams.topology.plan import InternalTopic
from pykstreams.topology.planner import make_plan
from pykstreams.topology.step_facts import StepFacts, facts_of
from pykstreams.topology.stores import StoreFactory


class Node:
    """A node with its neighbours."""

    kind: Literal["Source", "Processor", "Sink"]

    def __init__(self, name: str) -> None:
        self.name = name
        self.ordered_predecessors = TreeSet(_stands_before)
        self.ordered_successors = TreeSet(_stands_before)
        self.weight = 1

    @property
    def predecessors(self) -> frozenset[Node]:
        return frozenset(self.ordered_predecessors)

    @property
    def successors(self) -> frozenset[Node]:
        return frozenset(self.ordered_successors)

    def detail(self) -> str:
        """The text in brackets behind the name."""
        raise TypeError(f"{type(self).__name__} is not a kind of node")

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.name} ({self.detail()})"]
        if not isinstance(self, Sink):
            lines.append(f"      --> {_names(self.ordered_successors)}")
        if not isinstance(self, Source):
            lines.append(f"      <-- {_names(self.ordered_predecessors)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"{self.kind}({self.name!r})"


class Source(Node):
    """A source with its topics, or the pattern that they match."""

    kind = "Source"

    def __init__(self, name: str, topics: tuple[str, ...], pattern: re.Pattern[str] | None) -> None:
        super().__init__(name)
        self._topics = hash_set_order(topics, copied=True)
        self.topic_pattern = pattern

    @property
    def topic_set(self) -> frozenset[str]:
        return frozenset(self._topics)

    def detail(self) -> str:
        if self.topic_pattern is not None:
            return f"topics: {self.topic_pattern.pattern}"
        return f"topics: [{', '.join(self._topics)}]"


class Processor(Node):
    """A processor with the names of its stores."""

    kind = "Processor"

    def __init__(self, name: str, stores: tuple[str, ...]) -> None:
        super().__init__(name)
        self._stores = hash_set_order(stores, copied=True)

    @property
    def stores(self) -> frozenset[str]:
        return frozenset(self._stores)

    def detail(self) -> str:
        return f"stores: [{', '.join(self._stores)}]"


def _said(extractor: object) -> str:
    """An extractor as it says itself, or else its name: no address, so that a text is the same in each process."""
    kind = type(extractor)
    if hasattr(extractor, "__qualname__"):
        return f"{extractor.__module__}.{extractor.__qualname__}"
    if any(name in vars(base) for base in kind.__mro__[:-1] for name in ("__str__", "__repr__")):
        return str(extractor)
    return f"{kind.__module__}.{kind.__qualname__}"


class Sink(Node):
    """A sink with its topic, or what chooses the topic per record."""

    kind = "Sink"

    def __init__(self, name: str, topic: SinkTopic) -> None:
        super().__init__(name)
        self.topic = topic if isinstance(topic, str) else None
        self.topic_name_extractor = None if isinstance(topic, str) else topic

    def detail(self) -> str:
        if self.topic is not None:
            return f"topic: {self.topic}"
        return f"extractor class: {_said(self.topic_name_extractor)}"


class Subtopology:
    """Nodes that are connected by anything but topics."""

    def __init__(self, number: int, nodes: list[Node]) -> None:
        self.id = number
        self.ordered_nodes = tuple(sorted(nodes, key=lambda node: (-node.weight, node.name)))

    @property
    def nodes(self) -> frozenset[Node]:
        return frozenset(self.ordered_nodes)

    def __str__(self) -> str:
        return f"Sub-topology: {self.id}\n" + "".join(f"    {node}\n" for node in self.ordered_nodes) + "\n"


class GlobalStore:
    """A store that every worker keeps whole, with the source and the processor that feed it."""

    def __init__(self, number: int, source: Source, processor: Processor) -> None:
        self.id = number
        self.source = source
        self.processor = processor

    def __str__(self) -> str:
        return (
            f"Sub-topology: {self.id} for global store (will not generate tasks)\n"
            f"    {self.source}\n    {self.processor}\n"
        )


class TopologyDescription:
    """The result of ``Topology.describe()``; ``str()`` equals Kafka Streams' text, without the application id."""

    Node: TypeAlias = Node
    Source: TypeAlias = Source
    Processor: TypeAlias = Processor
    Sink: TypeAlias = Sink
    Subtopology: TypeAlias = Subtopology
    GlobalStore: TypeAlias = GlobalStore

    def __init__(
        self,
        subtopologies: tuple[Subtopology, ...],
        global_stores: tuple[GlobalStore, ...],
        definition: TopologyDefinition,
        config: StreamsConfig,
    ) -> None:
        self.subtopologies = subtopologies
        self.global_stores = global_stores
        self._definition = definition
        self._config = config

    def __repr__(self) -> str:
        parts, stores = len(self.subtopologies), len(self.global_stores)
        return f"<TopologyDescription, sub-topologies: {parts}, global stores: {stores}>"

    @property
    def internal_topics(self) -> list[InternalTopic]:
        """Every repartition and changelog topic, sorted by name, with the partitions and settings of Kafka Streams.

        Names start with the ``application.id`` of the configuration given to the builder; without one this is a
        ``ConfigError``. Sub-topologies that read by pattern only are left out, since nothing is known of their topics
        until the pattern has matched (``InternalTopologyBuilder.subtopologyToTopicsInfo``, 4.3.1).
        """
        plan = make_plan(self._definition, self._config)
        waiting = {name for part in plan.subtopologies if not part.source_topics for name in part.changelog_topics}
        return [topic for topic in plan.internal_topics if topic.name not in waiting]

    def owns(self, topic: str) -> bool:
        """Whether a topic (named without the application id) is the application's own."""
        return topic in self._definition.internal_topics

    def to_mermaid(self) -> str:
        """A Mermaid flowchart: sub-topologies as boxes, topics and stores in shapes of their own."""
        return drawing.mermaid(self.to_dict())

    def to_dot(self) -> str:
        """The same drawing for Graphviz."""
        return drawing.dot(self.to_dict())

    def to_svg(self) -> str:
        """The same as a picture that any browser shows; needs no other program."""
        return picture.svg(self.to_dict())

    def to_html(self) -> str:
        """The picture in a page of its own, to be moved and enlarged there; needs no network."""
        return picture.html(self.to_dict())

    def to_dict(self) -> PlainDescription:
        """The description as plain values, for tools and tests.

        Types are text, ``null`` where they are not known; a topic has those of the source or sink beside it.
        """
        return {
            "subtopologies": [
                {
                    "id": part.id,
                    "nodes": [self._node_dict(node) for node in part.ordered_nodes],
                }
                for part in self.subtopologies
            ],
            "global_stores": [
                {"id": store.id, "nodes": [self._node_dict(store.source), self._node_dict(store.processor)]}
                for store in self.global_stores
            ],
            "stores": {name: self._store_dict(factory) for name, factory in self._factories()},
        }

    def _factories(self) -> Iterator[tuple[str, StoreFactory]]:
        yield from self._definition.stores.items()
        yield from ((name, one.store) for name, one in self._definition.global_stores.items())

    def _store_dict(self, factory: StoreFactory) -> PlainDescription:
        # some stores ask for the name of the application, which no type depends on
        named = {} if "application.id" in self._config else {"application.id": "unnamed"}
        builder = factory.builder(self._config.replace(named))
        if builder.make is user_store:  # its author alone knows
            return {"key_type": None, "value_type": None}
        values = builder.value_serde if isinstance(builder.value_serde, tuple) else (builder.value_serde,)
        known = dict.fromkeys(known_type(one, "value", self._config) for one in values)
        value = None if None in known else " | ".join(filter(None, known))
        return {"key_type": known_type(builder.key_serde, "key", self._config), "value_type": value}

    def _node_dict(self, node: Node) -> PlainDescription:
        result: PlainDescription = {
            "name": node.name,
            "type": node.kind.lower(),
            "successors": [other.name for other in node.ordered_successors],
        }
        definition = self._definition.nodes[node.name]
        result["key_type"], result["value_type"] = self._types(definition)
        if isinstance(node, Source):
            pattern = node.topic_pattern
            result["topics"] = [{"name": topic, "internal": self.owns(topic)} for topic in sorted(node.topic_set)]
            result["pattern"] = None if pattern is None else pattern.pattern
        elif isinstance(node, Processor):
            result["stores"] = sorted(node.stores)
            facts = facts_of(definition.operator) if isinstance(definition, ProcessorDefinition) else StepFacts()
            result["functions"] = list(facts.functions)
            result["windows"] = facts.windows
            result["global_stores"] = [name for name in facts.tables if name in self._definition.global_stores]
        elif isinstance(node, Sink):
            fixed = node.topic is not None
            result["topic"] = {"name": node.topic, "internal": self.owns(node.topic)} if node.topic else None
            result["dynamic"] = not fixed
        return result

    def _types(self, node: NodeDefinition) -> tuple[str | None, str | None]:
        """The types of keys and values: that a source reads, that a sink writes, and that leave any other step."""
        if isinstance(node, SourceDefinition):
            given: tuple[object, object] = node.key_deserializer, node.value_deserializer
        elif isinstance(node, SinkDefinition):
            given = node.key_serializer, node.value_serializer
        else:
            key, value = self._definition.stream_serdes.get(node.name, (None, None))
            return _given_type(key, "key", self._config), _given_type(value, "value", self._config)
        return known_type(given[0], "key", self._config), known_type(given[1], "value", self._config)

    def __str__(self) -> str:
        parts: dict[int, object] = {part.id: part for part in self.subtopologies}
        parts.update({store.id: store for store in self.global_stores})
        return "Topologies:\n " + "".join(f"  {parts[number]}" for number in sorted(parts))


def _given_type(serde: SerdeOrDefault, side: str, config: StreamsConfig) -> str | None:
    """The type of what leaves a step; the default says nothing of it, since no topic need follow."""
    return None if serde is None else known_type(serde, side, config)


def describe(definition: TopologyDefinition, config: StreamsConfig) -> TopologyDescription:
    """Describes what has been added so far."""
    parts: list[Subtopology] = []
    stores: list[GlobalStore] = []
    of_global_stores = definition.global_nodes
    for number, names in enumerate(definition.groups.groups()):
        nodes = _connected(definition, names)
        if of_global_stores.keys().isdisjoint(names):
            parts.append(Subtopology(number, nodes))
        else:
            stores.append(_global_store(number, nodes))
    return TopologyDescription(tuple(parts), tuple(stores), definition, config)


def _global_store(number: int, nodes: list[Node]) -> GlobalStore:
    source = next(node for node in nodes if isinstance(node, Source))
    processor = next(node for node in nodes if isinstance(node, Processor))
    return GlobalStore(number, source, processor)


def _connected(definition: TopologyDefinition, names: tuple[str, ...]) -> list[Node]:
    # Kafka Streams copies the names from a hash set to a hash map before it goes through them.
    ordered = hash_set_order(hash_set_order(names))
    nodes = {name: _describe_node(definition.nodes[name]) for name in ordered}
    for name, node in nodes.items():
        for parent in definition.nodes[name].predecessors:
            above = nodes[parent]
            node.ordered_predecessors.add(above)
            above.ordered_successors.add(node)
            _grow(above, node.weight)
    return list(nodes.values())


def _describe_node(node: NodeDefinition) -> Node:
    if isinstance(node, SourceDefinition):
        return Source(node.name, node.topics, node.pattern)
    if isinstance(node, ProcessorDefinition):
        return Processor(node.name, node.stores)
    return Sink(node.name, node.topic)


def _stands_before(node: Node, other: Node) -> bool:
    """Heavier nodes stand first, those of one weight by name."""
    return (-node.weight, node.name) < (-other.weight, other.name)


def _grow(node: Node, weight: int) -> None:
    node.weight += weight
    for above in node.ordered_predecessors:
        _grow(above, weight)


def _names(nodes: Iterable[Node]) -> str:
    return ", ".join(node.name for node in nodes) or "none"
