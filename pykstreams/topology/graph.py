"""The logical graph that the DSL builds: what the user said, before the optimizer and without any store or thread.

A node knows its parents and children and can write itself to a ``Topology``. ``operator`` is a callable, since some
choices about a table (does it keep a store, does it send old values?) fall only when something downstream needs them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from pykstreams.core.errors import TopologyError
from pykstreams.core.names import NodeNamer, changelog_of
from pykstreams.core.timestamps import FailOnInvalidTimestamp
from pykstreams.core.types import AnyPartitioner, SinkTopic, TimestampExtractor
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.topology.contradiction import Contradiction
from pykstreams.topology.definition import Supplier
from pykstreams.topology.offset_reset import AutoOffsetReset
from pykstreams.topology.placement.key_placement import KeyPlacement
from pykstreams.topology.placement.reference_partitioner import PartPartitioner
from pykstreams.topology.placement.windowed_partitioner import windowed_partitioner
from pykstreams.topology.stores import StoreFactory
from pykstreams.topology.topology import Topology

_FAIL_ON_INVALID_TIMESTAMP: Final = FailOnInvalidTimestamp()


class Effect(Enum):
    """The kinds of operations on a stream that the optimizer tells apart, by what they do to its records."""

    KEEPS = auto()
    CHANGES_VALUE = auto()
    CHANGES_KEY = auto()
    """And maybe the value."""
    MERGES = auto()
    """Puts the records of several streams into one, as they are."""


@dataclass(frozen=True, slots=True)
class WindowClosing:
    """When the windows of an aggregation close.

    ``grace_ms`` is how long after its end a window may change. ``when_idle`` lets windows close by the wall clock, too,
    after so many ms without input; ``None`` where they cannot.
    """

    grace_ms: int
    when_idle: Callable[[int], None] | None = None


class GraphNode:
    """A logical node. Subclasses say in ``write`` what it becomes.

    ``joins_null_keys`` marks joins that give results for records without key: repartition topics above keep these.
    ``versioned`` says whether the table of this node is kept in a versioned store; ``None``: it is like its parents.
    ``closing`` is that of an aggregation in windows; ``None``: the node has no windows of its own.
    """

    def __init__(
        self,
        name: str,
        *,
        effect: Effect = Effect.KEEPS,
        closing: WindowClosing | None = None,
        joins_null_keys: bool = False,
        versioned: bool | None = None,
    ) -> None:
        self.name = name
        self.effect = effect
        self.closing = closing
        self.joins_null_keys = joins_null_keys
        self.versioned = versioned
        self.priority = 0
        self.graph: Graph | None = None
        self.parents: list[GraphNode] = []
        self.children: list[GraphNode] = []

    def add_child(self, child: GraphNode) -> None:
        if child not in self.children:
            self.children.append(child)
            child.parents.append(self)

    def remove_child(self, child: GraphNode) -> None:
        self.children.remove(child)
        child.parents.remove(self)

    @property
    def parent_names(self) -> tuple[str, ...]:
        return tuple(parent.name for parent in self.parents)

    def write(self, topology: Topology) -> None:
        """Adds what this node stands for; called once, after all parents."""


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """How a source reads; ``None`` means the default of the configuration, and of ``placement`` that of murmur2."""

    key_deserializer: object
    value_deserializer: object
    timestamp_extractor: TimestampExtractor | None
    offset_reset: AutoOffsetReset | None
    placement: KeyPlacement | None = None


class StreamSourceNode(GraphNode):
    """Reads topics, or all topics that match a pattern."""

    def __init__(
        self, name: str, topics: tuple[str, ...], pattern: re.Pattern[str] | None, settings: SourceSettings
    ) -> None:
        super().__init__(name)
        self.topics = topics
        self.pattern = pattern
        self.settings = settings

    @property
    def read(self) -> str:
        """The topics, or the pattern, as text."""
        return self.pattern.pattern if self.pattern else ", ".join(self.topics)

    def write(self, topology: Topology) -> None:
        _add_source(topology, self.name, self.settings, self.pattern or self.topics)


@dataclass(frozen=True, slots=True)
class Step:
    """One of several processors of a node, with the stores that it brings."""

    name: str
    operator: Supplier
    stores: tuple[StoreFactory, ...] = ()

    def write(self, topology: Topology, *parents: str) -> None:
        topology.add_processor(self.name, self.operator, *parents)
        for store in self.stores:
            topology.add_state_store(store, self.name)


class TableSourceNode(GraphNode):
    """Reads a topic as a table; ``stores`` is empty while nothing needs the table kept.

    With a step for ``reordering`` the table differs from its topic by what waits and what came too late, and where
    ``rows_go`` by themselves by those that are gone, so the topic never serves as its changelog.
    """

    def __init__(
        self,
        name: str,
        source_name: str,
        topic: str,
        settings: SourceSettings,
        operator: Callable[[], Supplier],
        stores: Callable[[], tuple[StoreFactory, ...]],
        reordering: Step | None = None,
        *,
        versioned: bool,
        rows_go: bool = False,
    ) -> None:
        super().__init__(name, versioned=versioned)
        self.rows_go = rows_go
        self.source_name = source_name
        self.topic = topic
        self.settings = settings
        self.operator = operator
        self.stores = stores
        self.reordering = reordering
        self.reuses_topic = False

    def write(self, topology: Topology) -> None:
        _add_source(topology, self.source_name, self.settings, (self.topic,))
        above, reordering = self.source_name, self.reordering
        if reordering is not None:
            reordering.write(topology, above)
            above = reordering.name
        topology.add_processor(self.name, self.operator(), above)
        for store in self.stores():
            topology.add_state_store(store, self.name)
            if self.reuses_topic and reordering is None and not self.rows_go:
                topology.reuse_topic_as_changelog(store.name, self.topic)


class GlobalStoreNode(GraphNode):
    """Reads a topic into a store that every worker keeps whole; ``supplier`` writes it."""

    def __init__(
        self,
        name: str,
        source_name: str,
        topic: str,
        settings: SourceSettings,
        supplier: Supplier,
        store: StoreFactory,
    ) -> None:
        super().__init__(name)
        self.source_name = source_name
        self.topic = topic
        self.settings = settings
        self.supplier = supplier
        self.store = store

    def write(self, topology: Topology) -> None:
        topology.add_global_store(
            self.store,
            self.source_name,
            self.topic,
            self.name,
            self.supplier,
            timestamp_extractor=self.settings.timestamp_extractor,
            key_deserializer=self.settings.key_deserializer,
            value_deserializer=self.settings.value_deserializer,
        )


class OperatorNode(GraphNode):
    """Runs an operator; adds the stores that it brings and connects those that it names."""

    def __init__(
        self,
        name: str,
        operator: Callable[[], Supplier],
        *,
        stores: Callable[[], tuple[StoreFactory, ...]] = tuple,
        connect: tuple[str, ...] = (),
        effect: Effect = Effect.KEEPS,
        closing: WindowClosing | None = None,
        joins_null_keys: bool = False,
        versioned: bool | None = None,
    ) -> None:
        super().__init__(name, effect=effect, closing=closing, joins_null_keys=joins_null_keys, versioned=versioned)
        self.operator = operator
        self.stores = stores
        self.connect = connect

    def write(self, topology: Topology) -> None:
        topology.add_processor(self.name, self.operator(), *self.parent_names)
        for store in self.stores():
            topology.add_state_store(store, self.name)
        if self.connect:
            topology.connect_processor_and_state_stores(self.name, *self.connect)


@dataclass(frozen=True, slots=True)
class RepartitionSettings:
    """A repartition topic with the sink before and the source behind it.

    ``timestamp_extractor`` is that of the source; ``None`` means the default of the configuration. ``placement`` says
    where the partitioner puts keys, ``None``: where murmur2 does.
    """

    topic: str
    sink_name: str
    source_name: str
    key_serde: SerdeOrDefault
    value_serde: SerdeOrDefault
    partitioner: AnyPartitioner | None = None
    num_partitions: int | None = None
    timestamp_extractor: TimestampExtractor | None = _FAIL_ON_INVALID_TIMESTAMP
    placement: KeyPlacement | None = None


class RepartitionNode(GraphNode):
    """Sends records through a topic of the application's own, so that they come back partitioned by their key.

    ``filter_operator`` drops records without key; where ``keeps_null_keys`` says that a join further down wants them
    ``pass_operator`` stands in its place. The optimizer may replace one that is ``optimizable``.
    """

    def __init__(
        self,
        settings: RepartitionSettings,
        filter_name: str,
        filter_operator: Supplier,
        pass_operator: Supplier,
        *,
        optimizable: bool,
    ) -> None:
        super().__init__(settings.source_name)
        self.settings = settings
        self.filter_name = filter_name
        self.filter_operator = filter_operator
        self.pass_operator = pass_operator
        self.optimizable = optimizable
        self.keeps_null_keys = False

    def write(self, topology: Topology) -> None:
        topology.add_internal_topic(self.settings.topic, self.settings.num_partitions)
        operator = self.pass_operator if self.keeps_null_keys else self.filter_operator
        topology.add_processor(self.filter_name, operator, *self.parent_names)
        write_topic_between(topology, self.settings, (self.filter_name,))


class PlainRepartitionNode(GraphNode):
    """Sends everything as it is through a topic of the application's own, such as the changes of a grouped table."""

    def __init__(self, settings: RepartitionSettings) -> None:
        super().__init__(settings.source_name)
        self.settings = settings

    def write(self, topology: Topology) -> None:
        topology.add_internal_topic(self.settings.topic, self.settings.num_partitions)
        write_topic_between(topology, self.settings, self.parent_names)


class StreamStreamJoinNode(GraphNode):
    """Joins two streams behind the nodes that keep the records of each side, and merges the results of both sides.

    The optimizer makes a stream that is joined with itself a ``self_join``: one step, one store, and the node that
    keeps the right side is gone (``StreamStreamJoinNode``, 4.3.1).
    """

    def __init__(
        self,
        *,
        this_windowed: str,
        other_windowed: str,
        this_join: Step,
        other_join: Step,
        merge: Step,
        self_join: Step,
        joins_null_keys: bool,
    ) -> None:
        super().__init__(merge.name, joins_null_keys=joins_null_keys)
        self.this_windowed = this_windowed
        self.other_windowed = other_windowed
        self.joins_itself = False
        self._steps = this_join, other_join, merge
        self._self_join = self_join

    def write(self, topology: Topology) -> None:
        if self.joins_itself:
            self._self_join.write(topology, self.this_windowed)
            return
        this_join, other_join, merge = self._steps
        this_join.write(topology, self.this_windowed)
        other_join.write(topology, self.other_windowed)
        merge.write(topology, this_join.name, other_join.name)


class StreamSinkNode(GraphNode):
    """Writes to a topic, fixed or chosen per record."""

    def __init__(
        self,
        name: str,
        topic: SinkTopic,
        key_serializer: object,
        value_serializer: object,
        partitioner: AnyPartitioner | None,
    ) -> None:
        super().__init__(name)
        self.topic = topic
        self.key_serializer = key_serializer
        self.value_serializer = value_serializer
        self.partitioner = partitioner

    def write(self, topology: Topology) -> None:
        topology.add_sink(
            self.name,
            self.topic,
            *self.parent_names,
            key_serializer=self.key_serializer,
            value_serializer=self.value_serializer,
            partitioner=self.partitioner or windowed_partitioner(self.key_serializer),
        )


class StateStoreNode(GraphNode):
    """A store that processors name when they are added."""

    def __init__(self, store: StoreFactory) -> None:
        super().__init__(store.name)
        self.store = store

    def write(self, topology: Topology) -> None:
        topology.add_state_store(self.store)


def is_versioned(node: GraphNode) -> bool:
    """Whether the table of a node is versioned: by its own store, or else by those of all its parents
    (``InternalStreamsBuilder.isVersionedOrVersionedUpstream``, 4.3.1).
    """
    if node.versioned is not None:
        return node.versioned
    return bool(node.parents) and all(is_versioned(parent) for parent in node.parents)


class Graph:
    """Everything that was said to one ``StreamsBuilder``.

    Once it is ``finished`` a topology has been made of it, and nothing can be added any more.
    """

    def __init__(self) -> None:
        self.root = GraphNode("root")
        self.root.graph = self
        self.finished = False
        self.namer = NodeNamer()
        self.copartitioned: list[set[str]] = []
        self.implicit_names = ImplicitNames()
        self.makers: dict[tuple[str, str], str] = {}
        """The function that made the keys (``"key"``) or values (``"value"``) that leave a processor, as text; empty
        where it is not annotated to return what they are written as.
        """
        self.contradictions: list[Contradiction] = []
        self.join_repartitions: dict[object, RepartitionNode] = {}
        """The node by which a stream was repartitioned for a join, by the place of the stream and where its keys lie
        then.
        """
        self.serdes: dict[str, tuple[SerdeOrDefault, SerdeOrDefault]] = {}
        """The serdes of keys and values that leave a processor, where they are known."""
        self.partitioners: dict[str, PartPartitioner] = {}
        """Of stores whose keys lie where a part of them does, what says where."""
        self._placements: dict[str, KeyPlacement] = {}
        self._next_priority = 0

    def add(self, node: GraphNode, *parents: GraphNode) -> None:
        """Adds a node below its parents, each time with the next priority for being written.

        ``TopologyError`` for parents that are in the graph of another builder, and for a graph that is finished.
        """
        if self.finished:
            raise TopologyError(
                f"{node.name} is added to a StreamsBuilder that has been built; the topology would be without it, so "
                "call build() when all is said, or begin with a new StreamsBuilder"
            )
        self.check_own(*parents)
        node.graph = self
        for parent in parents:
            parent.add_child(node)
            node.priority = self._next_priority
            self._next_priority += 1

    def check_own(self, *nodes: GraphNode) -> None:
        """``TopologyError`` for nodes that are in the graph of another builder."""
        for node in nodes:
            if node.graph is not self:
                raise TopologyError(
                    f"{node.name} belongs to another StreamsBuilder; make all that is put together with one builder"
                )

    def note_serdes(self, processor: str, key: SerdeOrDefault, value: SerdeOrDefault) -> None:
        """Notes the serdes of what leaves a processor; the default, ``None``, says nothing new."""
        known_key, known_value = self.serdes.get(processor, (None, None))
        self.serdes[processor] = (key or known_key, value or known_value)

    def place_keys(self, source: str, placement: KeyPlacement | None) -> None:
        """Notes where the keys of a source lie."""
        if placement is not None:
            self._placements[source] = placement

    def placements(self, sources: Iterable[str]) -> frozenset[KeyPlacement | None]:
        """Where the keys of some sources lie; ``None`` stands for murmur2."""
        return frozenset(self._placements.get(source) for source in sources)

    def replace_source(self, old: str, new: str) -> None:
        """Lets the topics of another source stand for those of one that is gone, in the groups of equal counts."""
        for group in self.copartitioned:
            if old in group:
                group.remove(old)
                group.add(new)

    def nodes(self) -> list[GraphNode]:
        """Every node that hangs below the root, in the order of adding."""
        found: dict[GraphNode, None] = {}
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found[node] = None
                waiting.extend(node.children)
        return sorted((node for node in found if node is not self.root), key=lambda node: node.priority)


class ImplicitNames:
    """Names of topics and stores that nobody gave; they change when the script changes."""

    def __init__(self) -> None:
        self.changelogs: list[str] = []
        self.stores: list[str] = []
        self.repartitions: list[str] = []

    def add_store(self, name: str, *, logging: bool) -> None:
        """Notes a store, with its changelog if it has one."""
        self.stores.append(name)
        if logging:
            self.add_changelog(name)

    def add_changelog(self, store: str) -> None:
        """Notes the changelog of a store."""
        self.changelogs.append(changelog_of(store))

    def __str__(self) -> str:
        kinds = (
            ("changelog topics", self.changelogs),
            ("state stores", self.stores),
            ("repartition topics", self.repartitions),
        )
        return "; ".join(f"{kind} {', '.join(names)}" for kind, names in kinds if names)


def _add_source(
    topology: Topology, name: str, settings: SourceSettings, topics: re.Pattern[str] | Iterable[str]
) -> None:
    topology.add_source(
        name,
        *((topics,) if isinstance(topics, re.Pattern) else topics),
        offset_reset_policy=settings.offset_reset,
        timestamp_extractor=settings.timestamp_extractor,
        key_deserializer=settings.key_deserializer,
        value_deserializer=settings.value_deserializer,
        partitioner=settings.placement,
    )


def write_topic_between(topology: Topology, settings: RepartitionSettings, parents: tuple[str, ...]) -> None:
    """Adds the sink and the source of a repartition topic."""
    key, value = settings.key_serde, settings.value_serde
    topology.add_sink(
        settings.sink_name,
        settings.topic,
        *parents,
        key_serializer=None if key is None else key.serializer,
        value_serializer=None if value is None else value.serializer,
        partitioner=settings.partitioner,
    )
    topology.add_source(
        settings.source_name,
        settings.topic,
        timestamp_extractor=settings.timestamp_extractor,
        key_deserializer=None if key is None else key.deserializer,
        value_deserializer=None if value is None else value.deserializer,
        partitioner=settings.placement,
    )
