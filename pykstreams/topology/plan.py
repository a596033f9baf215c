"""The plan of a topology: frozen, with full topic names; all that the runtime ever sees of it.

Invariant: within a plan, nodes stand in the order in which they were added, so parents come before their children,
and the children of a node are listed in the order in which they were added.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pykstreams.core.names import changelog_name
from pykstreams.core.processor import AnyProcessorSupplier, OperatorSupplier
from pykstreams.core.types import AnyPartitioner, SinkTopic, TimestampExtractor
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.spec import StoreBuilder
from pykstreams.topology.offset_reset import AutoOffsetReset
from pykstreams.topology.placement.key_placement import KeyPlacement
from pykstreams.topology.placement.reference_partitioner import PartPartitioner


@dataclass(frozen=True, slots=True)
class SourceNode:
    """Reads topics (or all that match a pattern); ``None`` for a serde or extractor means the default.

    ``placement`` says where the keys lie of what it reads; ``None``: where murmur2 puts them.
    """

    name: str
    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None
    key_deserializer: object
    value_deserializer: object
    timestamp_extractor: TimestampExtractor | None
    offset_reset: AutoOffsetReset | None
    children: tuple[str, ...]
    placement: KeyPlacement | None = None


@dataclass(frozen=True, slots=True)
class ProcessorNode:
    """Runs an operator, or a user's ``Processor`` (``supplier`` without ``build``); ``stores`` are those connected.

    ``unwrapped`` is what a ``ProcessorWrapper`` got and made the supplier of.
    """

    name: str
    supplier: OperatorSupplier | AnyProcessorSupplier
    stores: tuple[str, ...]
    children: tuple[str, ...]
    unwrapped: OperatorSupplier | AnyProcessorSupplier | None = None

    @property
    def operator(self) -> OperatorSupplier | AnyProcessorSupplier:
        """The supplier before any wrapper, which tells what the node does; that of a wrapper tells nothing."""
        return self.supplier if self.unwrapped is None else self.unwrapped


@dataclass(frozen=True, slots=True)
class SinkNode:
    """Writes to a topic, fixed or chosen per record."""

    name: str
    topic: SinkTopic
    key_serializer: object
    value_serializer: object
    partitioner: AnyPartitioner | None


Node: TypeAlias = SourceNode | ProcessorNode | SinkNode


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that the application owns, as Kafka Streams would create it.

    ``partitions`` is what the user asked for, ``None`` when it follows from the sources; ``config`` holds the topic
    settings as text. A topic that ``decides`` has as many as what is written to it comes from, and other repartition
    topics that it is joined with take that number, unless one of them cannot.
    """

    name: str
    kind: Literal["repartition", "changelog"]
    partitions: int | None
    config: Mapping[str, str] = field(default_factory=dict)
    decides: bool = False
    least_retention_ms: int | None = None
    """How long it must keep records for a store of windows or sessions to be restored as a whole."""


@dataclass(frozen=True, slots=True)
class SubtopologyPlan:
    """One sub-topology: nodes that are connected by anything but topics."""

    id: int
    nodes: Mapping[str, Node]
    stores: Mapping[str, StoreBuilder[TaskStore]]
    """Stores in the order in which they are registered, which is the order in which caches are flushed."""
    source_topics: tuple[str, ...]
    source_patterns: tuple[re.Pattern[str], ...]
    sink_topics: tuple[str, ...]
    repartition_topics: Mapping[str, InternalTopic]
    """Repartition topics that this sub-topology reads."""
    changelogs: Mapping[str, str]
    """Store -> topic that it is restored from and, unless it is a source topic, logged to."""
    changelog_topics: Mapping[str, InternalTopic]
    """Changelog topics that are the application's own (source topics that serve as changelog are not here)."""
    reused_changelogs: Mapping[str, InternalTopic]
    """Source topics that serve as changelog, with the settings that their stores would want; never created."""
    copartition_groups: tuple[frozenset[str], ...]
    """Topics that need equal partition counts."""
    makers: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """The functions that made the keys (``"key"``) or values (``"value"``) which a sink writes or a step makes, as
    texts, where they are annotated to return what these are written as.
    """

    @property
    def takes_back(self) -> bool:
        """Whether an operator sends what only a store knows: deletions of what was before, or records that waited."""
        return self._any_operator("takes_back")

    @property
    def reads_messages(self) -> bool:
        """Whether an operator looks at the raw keys of input records, those of cached rows too."""
        return self._any_operator("reads_messages")

    def _any_operator(self, says: str) -> bool:
        return any(
            isinstance(node, ProcessorNode) and getattr(node.operator, says, False) for node in self.nodes.values()
        )

    @property
    def sources(self) -> tuple[SourceNode, ...]:
        return tuple(node for node in self.nodes.values() if isinstance(node, SourceNode))


@dataclass(frozen=True, slots=True)
class GlobalStorePlan:
    """A store that every worker keeps whole: it belongs to no task, and is restored from the topic that feeds it.

    ``reprocesses``: when the store is restored, records go through the processor, too, instead of into the store as
    they are (``GlobalStateManagerImpl.reprocessState``, 4.3.1).
    """

    topic: str
    source: SourceNode
    processor: ProcessorNode
    store: StoreBuilder[TaskStore]
    reprocesses: bool


@dataclass(frozen=True, slots=True)
class TopologyPlan:
    """A whole topology for one application id."""

    application_id: str
    subtopologies: tuple[SubtopologyPlan, ...]
    whole: SubtopologyPlan
    """All sub-topologies as one, for the test driver's single task."""
    global_stores: tuple[GlobalStorePlan, ...] = ()
    """Apart from the sub-topologies, whose numbers leave room for them."""
    ordered_copartition_groups: tuple[tuple[str, ...], ...] = ()
    """The groups of topics with equal partition counts as Kafka Streams tells them to brokers."""
    partitioners: Mapping[str, PartPartitioner] = field(default_factory=dict)
    """Of stores whose keys lie where a part of them does, what says where."""

    @property
    def internal_topics(self) -> tuple[InternalTopic, ...]:
        """Every repartition and changelog topic, source topics that serve as changelog included, sorted by name."""
        found: dict[str, InternalTopic] = {}
        for part in self.subtopologies:
            found.update(part.repartition_topics)
            found.update(part.changelog_topics)
            found.update(part.reused_changelogs)
        return tuple(found[name] for name in sorted(found))

    def serde_topic(self, store: str) -> str:
        """The topic that the serdes of a store get: its changelog, there or not; of a global store its records' own."""
        feeds = {one.store.name: one.topic for one in self.global_stores}
        logs = {name: topic for part in self.subtopologies for name, topic in part.changelogs.items()}
        return (feeds | logs).get(store) or changelog_name(self.application_id, store)
