"""The content of a topology so far: nodes by name, stores, internal topics, and who belongs together."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

from pykstreams.core.processor import AnyProcessorSupplier, OperatorSupplier
from pykstreams.core.types import AnyPartitioner, SinkTopic, TimestampExtractor
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.topology.contradiction import Contradiction
from pykstreams.topology.java.hash_order import hash_set_order
from pykstreams.topology.offset_reset import AutoOffsetReset
from pykstreams.topology.placement.key_placement import KeyPlacement
from pykstreams.topology.placement.reference_partitioner import PartPartitioner
from pykstreams.topology.stores import StoreFactory
from pykstreams.topology.subtopologies import NodeGroups

Supplier: TypeAlias = OperatorSupplier | AnyProcessorSupplier
"""The supplier of a processor node: an operator of the DSL, or a user's ``Processor`` by the callable that makes it."""


@dataclass(frozen=True, slots=True)
class SourceDefinition:
    """A source; topics are without the application id."""

    name: str
    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None
    offset_reset: AutoOffsetReset | None
    timestamp_extractor: TimestampExtractor | None
    key_deserializer: object
    value_deserializer: object
    predecessors: tuple[str, ...] = ()
    placement: KeyPlacement | None = None


@dataclass(frozen=True, slots=True)
class ProcessorDefinition:
    """A processor; stores are connected to it later, so the list of their names grows.

    ``unwrapped`` is what a ``ProcessorWrapper`` got and made the supplier of.
    """

    name: str
    predecessors: tuple[str, ...]
    supplier: Supplier
    connected: list[str] = field(default_factory=list)
    unwrapped: Supplier | None = None

    @property
    def operator(self) -> Supplier:
        """The supplier before any wrapper, which tells what the node does; that of a wrapper tells nothing."""
        return self.supplier if self.unwrapped is None else self.unwrapped

    @property
    def stores(self) -> tuple[str, ...]:
        """The connected stores in the order in which Kafka Streams goes through them."""
        return hash_set_order(self.connected)


@dataclass(frozen=True, slots=True)
class SinkDefinition:
    """A sink; a topic name is without the application id."""

    name: str
    predecessors: tuple[str, ...]
    topic: SinkTopic
    key_serializer: object
    value_serializer: object
    partitioner: AnyPartitioner | None


NodeDefinition: TypeAlias = SourceDefinition | ProcessorDefinition | SinkDefinition


@dataclass(frozen=True, slots=True)
class GlobalStoreDefinition:
    """A store that every worker keeps whole: the source that reads its topic, and the processor that writes it.

    ``reprocesses``: when the store is restored, records go through the processor, too, instead of into the store as
    they are.
    """

    source: str
    processor: str
    topic: str
    store: StoreFactory
    reprocesses: bool


@dataclass(slots=True)
class TopologyDefinition:
    """Everything in the order of adding. The checks are in ``Topology``; here it is only kept."""

    nodes: dict[str, NodeDefinition] = field(default_factory=dict)
    stores: dict[str, StoreFactory] = field(default_factory=dict)
    store_users: dict[str, list[str]] = field(default_factory=dict)
    global_stores: dict[str, GlobalStoreDefinition] = field(default_factory=dict)
    """By the name of the store; these are not among ``stores``, their nodes are among ``nodes``."""
    internal_topics: dict[str, int | None] = field(default_factory=dict)
    """Repartition topics, without the application id, with the number of partitions that the user asked for."""
    deciding_topics: set[str] = field(default_factory=set)
    """Those of them whose number the topics that they are joined with take."""
    changelog_sources: dict[str, str] = field(default_factory=dict)
    """Stores that are restored from a topic that is there anyway."""
    stream_serdes: dict[str, tuple[SerdeOrDefault, SerdeOrDefault]] = field(default_factory=dict)
    """The serdes of keys and values that leave a node, where the DSL knows them."""
    copartitioned: list[set[str]] = field(default_factory=list)
    """Names of sources whose topics need equal partition counts."""
    groups: NodeGroups = field(default_factory=NodeGroups)
    generated_names: str = ""
    """The stores and topics whose names nobody gave, as text."""
    makers: dict[tuple[str, str], str] = field(default_factory=dict)
    """The function that made the keys (``"key"``) or values (``"value"``) that leave a node, as text."""
    contradictions: list[Contradiction] = field(default_factory=list)
    partitioners: dict[str, PartPartitioner] = field(default_factory=dict)
    """Of stores whose keys lie where a part of them does, what says where."""

    def add(self, node: NodeDefinition) -> None:
        self.nodes[node.name] = node
        self.groups.add(node.name)
        self.groups.unite(node.name, node.predecessors)

    def makers_of(self, node: str, part: str) -> tuple[str, ...]:
        """The functions that made what comes to a node, or leaves it, as texts; none behind a step of which nothing is
        known.
        """
        found: dict[str, None] = {}
        waiting, seen = [node], set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            text = self.makers.get((name, part))
            if text is None:
                waiting += self.nodes[name].predecessors
            elif text:
                found[text] = None
        return tuple(found)

    def topics_above(self, node: str) -> tuple[str, ...]:
        """The topics, or patterns of topics, that records of a node come from."""
        found: dict[str, None] = {}
        waiting, seen = [node], set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen or name not in self.nodes:
                continue
            seen.add(name)
            one = self.nodes[name]
            if isinstance(one, SourceDefinition):
                found |= dict.fromkeys(one.topics or ([one.pattern.pattern] if one.pattern is not None else []))
            waiting += one.predecessors
        return tuple(found)

    @property
    def global_nodes(self) -> dict[str, GlobalStoreDefinition]:
        """The sources and processors of global stores, each with its store."""
        return {name: one for one in self.global_stores.values() for name in (one.source, one.processor)}

    def source_topics(self) -> dict[str, str]:
        """Each topic that some source reads by name, with that source."""
        return {
            topic: node.name
            for node in self.nodes.values()
            if isinstance(node, SourceDefinition)
            for topic in node.topics
        }
