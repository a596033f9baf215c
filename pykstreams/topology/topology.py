"""``Topology``: the low-level way to say what is connected to what, and where the DSL's graph ends up."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable, Mapping
from typing import cast

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import TopologyError
from pykstreams.core.names import topic_name
from pykstreams.core.processor import Processor
from pykstreams.core.processor_wrapper import ProcessorWrapper
from pykstreams.core.shown_values import with_noun
from pykstreams.core.types import AnyPartitioner, SinkTopic, TimestampExtractor
from pykstreams.core.user_code.functions import describe_function, stores_of
from pykstreams.core.user_code.suppliers import check_supplier
from pykstreams.serdes.by_type import SerdeOrType, given_serde
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.spec import StoreBuilder
from pykstreams.topology.contradiction import Contradiction
from pykstreams.topology.definition import (
    GlobalStoreDefinition,
    ProcessorDefinition,
    SinkDefinition,
    SourceDefinition,
    Supplier,
    TopologyDefinition,
)
from pykstreams.topology.description import TopologyDescription, describe
from pykstreams.topology.offset_reset import AutoOffsetReset
from pykstreams.topology.placement.key_placement import KeyPartitioner, placement_of
from pykstreams.topology.placement.reference_partitioner import PartPartitioner
from pykstreams.topology.plan import TopologyPlan
from pykstreams.topology.planner import make_plan
from pykstreams.topology.stores import StoreFactory, factory_of, is_same_store
from pykstreams.topology.wrapping import WrapsUserCode, wrapped


def check_topology(given: object) -> None:
    """``TypeError``, with what to call, for what is no ``Topology``."""
    if isinstance(given, Topology):
        return
    hint = ""
    if callable(getattr(given, "build", None)):
        hint = ", which its build() makes: give builder.build(), not the builder"
    elif inspect.isroutine(given):
        hint = f": call the function, {describe_function(given)}, and give what it returns"
    raise TypeError(f"topology is {given!r}; expected a Topology{hint}")


class Topology:
    """Sources, processors, sinks and stores by name; every ``add_*`` gives the topology back.

    Names are unique (``TopologyError``); parents are added before their children. A type may stand for a serializer or
    deserializer: that of its serde. Source: ``Topology`` and ``InternalTopologyBuilder``, 4.3.1.
    """

    def __init__(self, config: StreamsConfig | Mapping[str, object] | None = None) -> None:
        self._config = StreamsConfig(config)
        self._definition = TopologyDefinition()
        self._wrapper = cast("ProcessorWrapper | None", self._config.processor_wrapper)

    def add_source(
        self,
        name: str,
        *topics: str | re.Pattern[str],
        offset_reset_policy: AutoOffsetReset | str | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        key_deserializer: object = None,
        value_deserializer: object = None,
        partitioner: KeyPartitioner | str | None = None,
    ) -> Topology:
        """Adds a source of topics by name, or of all topics that match one compiled pattern.

        A topic can have one source only (``TopologyError``). ``None`` means the default of the configuration.
        ``partitioner`` says where those who write the topics put keys, as in ``Consumed``; nothing is repartitioned.
        """
        self._check_new(name)
        names = tuple(topic for topic in topics if isinstance(topic, str))
        patterns = [topic for topic in topics if isinstance(topic, re.Pattern)]
        if not topics or len(names) + len(patterns) != len(topics) or (patterns and len(topics) > 1):
            raise TopologyError(f"source {name!r} needs topic names or exactly one compiled pattern, got {topics!r}")
        pattern = patterns[0] if patterns else None
        self._check_topics_are_free(name, names, pattern)
        self._definition.add(
            SourceDefinition(
                name,
                names,
                pattern,
                AutoOffsetReset.of(offset_reset_policy),
                timestamp_extractor,
                _serde(name, "key_deserializer", key_deserializer),
                _serde(name, "value_deserializer", value_deserializer),
                placement=placement_of(partitioner),
            )
        )
        return self

    def add_processor(self, name: str, supplier: Supplier, *parent_names: str) -> Topology:
        """Adds a processor below its parents; below one that is named twice it gets each record twice.

        ``supplier`` is a callable without arguments that gives a new ``Processor`` at each call (a class, for one);
        if it has a method ``stores()``, the builders that it gives are added and connected.
        """
        self._check_new(name)
        self._check_parents(name, parent_names)
        _check_supplier(name, supplier)
        brought = () if hasattr(supplier, "build") else stores_of(supplier)  # the DSL adds those of its operators
        unwrapped: Supplier | None = None
        if self._wrapper is not None:
            unwrapped, supplier = supplier, wrapped(self._wrapper, name, supplier)
            _check_supplier(name, supplier)
            known = {builder.name for builder in _stores_of(unwrapped)}
            brought += tuple(builder for builder in _stores_of(supplier) if builder.name not in known)
        self._definition.add(ProcessorDefinition(name, parent_names, supplier, unwrapped=unwrapped))
        for builder in brought:
            self.add_state_store(builder, name)
        return self

    def add_sink(
        self,
        name: str,
        topic: SinkTopic,
        *parent_names: str,
        key_serializer: object = None,
        value_serializer: object = None,
        partitioner: AnyPartitioner | None = None,
    ) -> Topology:
        """Adds a sink that writes to a topic, or to the one that ``topic(key, value, record context)`` names."""
        self._check_new(name)
        self._check_parents(name, parent_names)
        if not isinstance(topic, str) and not callable(topic):
            raise TypeError(f"topic of sink {name!r} is {topic!r}; expected a name or a callable")
        key = _serde(name, "key_serializer", key_serializer)
        value = _serde(name, "value_serializer", value_serializer)
        self._definition.add(SinkDefinition(name, parent_names, topic, key, value, partitioner))
        return self

    def add_state_store(self, builder: StoreBuilder[TaskStore] | StoreFactory, *processor_names: str) -> Topology:
        """Adds a store and connects it to processors; a second store of that name is refused.

        The very same builder may be added again, to connect it to more processors; one that is merely equal may not.
        """
        factory = factory_of(builder)
        stores = self._definition.stores
        if factory.name in self._definition.global_stores:
            raise TopologyError(
                f"a global store named {factory.name!r} has already been added; give one of the two another name"
            )
        if factory.name in stores and not is_same_store(stores[factory.name], factory):
            holders = self._definition.store_users.get(factory.name, ())
            of_first = f", for {self._placed(holders)}" if holders else ""
            of_second = f", and another is for {self._placed(processor_names)}" if processor_names else ""
            raise TopologyError(
                f"a different store named {factory.name!r} has already been added{of_first}{of_second}; give one of "
                "the two another name, or both the same builder object if processors are to share the store"
            )
        stores[factory.name] = factory
        for processor in processor_names:
            self._connect(processor, factory.name)
        return self

    def add_read_only_state_store(
        self,
        builder: StoreBuilder[TaskStore],
        source_name: str,
        topic: str,
        processor_name: str,
        supplier: Supplier,
        *,
        timestamp_extractor: TimestampExtractor | None = None,
        key_deserializer: object = None,
        value_deserializer: object = None,
    ) -> Topology:
        """Adds a source, and a processor that writes what it reads to a store; the topic is the store's changelog.

        So the processor must put each record as it is: after a restart the store holds the records of the topic
        without having asked the processor. The topic should be compacted. Other processors are connected by
        ``connect_processor_and_state_stores``, and should read only.
        """
        self.add_source(
            source_name,
            topic,
            offset_reset_policy=AutoOffsetReset.EARLIEST,
            timestamp_extractor=timestamp_extractor,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
        )
        self._add_writer(processor_name, supplier, source_name)
        self.add_state_store(builder, processor_name)
        self.reuse_topic_as_changelog(builder.name, topic)
        return self

    def add_global_store(
        self,
        builder: StoreBuilder[TaskStore] | StoreFactory,
        source_name: str,
        topic: str,
        processor_name: str,
        supplier: Supplier,
        *,
        timestamp_extractor: TimestampExtractor | None = None,
        key_deserializer: object = None,
        value_deserializer: object = None,
    ) -> Topology:
        """Adds a store that every worker keeps whole, and the one processor that writes it.

        All partitions of the topic are read before any task starts, and on from there; the processor sees every record,
        those that are read again after a restart included. Any processor may read the store without being connected to
        it; only its own may write. It has no changelog but its topic. The timestamp extractor is accepted and, as in
        Kafka Streams, never asked (``GlobalStateUpdateTask.update``, 4.3.1).
        """
        factory = factory_of(builder)
        definition = self._definition
        self._check_new(source_name)
        self._check_topics_are_free(source_name, (topic_name(topic),), None)
        self._check_new(processor_name)
        if source_name == processor_name:
            raise TopologyError(
                f"source and processor of global store {factory.name!r} are both named {source_name!r}; give one of "
                "the two another name"
            )
        if factory.name in definition.stores or factory.name in definition.global_stores:
            raise TopologyError(
                f"a store named {factory.name!r} has already been added; give one of the two another name"
            )
        key = _serde(source_name, "key_deserializer", key_deserializer)
        value = _serde(source_name, "value_deserializer", value_deserializer)
        definition.add(SourceDefinition(source_name, (topic,), None, None, timestamp_extractor, key, value))
        self._add_writer(processor_name, supplier, source_name, stores=[factory.name])
        # an operator of the DSL puts records as they are; what a user's processor makes of them only it knows
        definition.global_stores[factory.name] = GlobalStoreDefinition(
            source_name, processor_name, topic, factory, reprocesses=not hasattr(supplier, "build")
        )
        return self

    def connect_processor_and_state_stores(self, processor_name: str, *state_store_names: str) -> Topology:
        """Connects a processor with stores that have been added; a store joins the sub-topologies of its users."""
        if not state_store_names:
            raise TopologyError(f"no store was named that processor {processor_name!r} should be connected to")
        if isinstance(self._definition.nodes.get(processor_name), SourceDefinition | SinkDefinition):
            raise TopologyError(f"{processor_name!r} is a source or a sink, which cannot be connected to stores")
        for store in state_store_names:
            self._connect(processor_name, store)
        return self

    def describe(self) -> TopologyDescription:
        """The nodes by sub-topology; ``str()`` of it is the text that Kafka Streams prints."""
        return describe(self._definition, self._config)

    def to_svg(self) -> str:
        """The topology as a picture that any browser shows."""
        return self.describe().to_svg()

    def _repr_html_(self) -> str:
        """The picture, in a notebook."""
        return self.to_svg().partition("\n")[2]

    def __repr__(self) -> str:
        definition = self._definition
        return f"<Topology of {len(definition.nodes)} nodes and {len(definition.stores)} stores>"

    def to_mermaid(self) -> str:
        """A Mermaid flowchart of what ``describe`` shows."""
        return self.describe().to_mermaid()

    def plan(self, config: StreamsConfig) -> TopologyPlan:
        """The frozen plan that the runtime works from."""
        return make_plan(self._definition, config)

    # What the DSL adds beside nodes and stores.

    def add_internal_topic(self, topic: str, partitions: int | None, *, decides: bool = False) -> None:
        """Marks a topic as the application's own; its name gets the application id in front.

        One that ``decides`` goes before other repartition topics where numbers of partitions must be equal.
        """
        if topic in self._definition.internal_topics:
            raise TopologyError(
                f"two steps send their records through the topic {topic!r}, which is named after what they have in "
                "common; give each a name of its own, by the name of its Grouped, Joined, StreamJoined or Repartitioned"
            )
        self._definition.internal_topics[topic] = partitions
        if decides:
            self._definition.deciding_topics.add(topic)

    def reuse_topic_as_changelog(self, store: str, topic: str) -> None:
        """Restores a store from a source topic instead of a changelog of its own."""
        if store in self._definition.changelog_sources:
            raise TopologyError(f"store {store!r} is restored from a topic already")
        self._definition.changelog_sources[store] = topic

    def note_serdes(self, serdes: Mapping[str, tuple[SerdeOrDefault, SerdeOrDefault]]) -> None:
        """Notes the serdes of keys and values that leave nodes, for descriptions."""
        self._definition.stream_serdes.update(serdes)

    def note_makers(self, makers: Mapping[tuple[str, str], str]) -> None:
        """Notes the functions that make keys or values, for messages."""
        self._definition.makers.update(makers)

    def note_contradictions(self, noted: Iterable[Contradiction]) -> None:
        """Notes what is said twice and not alike."""
        self._definition.contradictions += [one for one in noted if one not in self._definition.contradictions]

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """Things that are said twice and not alike: what a function is annotated to take, and is called with."""
        return tuple(self._definition.contradictions)

    def note_partitioners(self, partitioners: Mapping[str, PartPartitioner]) -> None:
        """Notes of stores whose keys lie where a part of them does what says where."""
        self._definition.partitioners.update(partitioners)

    def note_generated_names(self, generated: str) -> None:
        """Notes the stores and internal topics whose names nobody gave, as text."""
        self._definition.generated_names = generated

    def copartition(self, sources: Iterable[str]) -> None:
        """Demands equal partition counts of the topics of these sources."""
        group = set(sources)
        self._definition.copartitioned.append(group)

    def check_copartitioning(self) -> None:
        """Raises ``TopologyError`` where the user gave unequal partition counts to topics that belong together."""
        nodes, given = self._definition.nodes, self._definition.internal_topics
        for group in self._definition.copartitioned:
            members = (nodes.get(name) for name in group)
            topics = {t for node in members if isinstance(node, SourceDefinition) for t in node.topics}
            counts = {topic: given.get(topic) for topic in sorted(topics)}
            if len(set(counts.values())) > 1 and None not in counts.values():
                listed = ", ".join(f"{topic} ({with_noun(count, 'partition')})" for topic, count in counts.items())
                raise TopologyError(
                    f"the topics {listed} are joined or merged by key and need equal partition counts; "
                    "give the same num_partitions to each Repartitioned"
                )

    def _placed(self, processors: Iterable[str]) -> str:
        """Returns the names of processors, with the topics that they come from."""
        return " and ".join(
            f"{name} (below {', '.join(topics)})" if (topics := self._definition.topics_above(name)) else name
            for name in processors
        )

    def _add_writer(self, name: str, supplier: Supplier, source_name: str, *, stores: Collection[str] = ()) -> None:
        """Adds the processor of a store that a topic feeds; what ``supplier.stores()`` gives is not added."""
        self._check_new(name)
        _check_supplier(name, supplier)
        self._definition.add(ProcessorDefinition(name, (source_name,), supplier, list(stores)))

    def _check_new(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name of a node is {name!r}; expected a str")
        if name in self._definition.nodes:
            raise TopologyError(f"a node named {name!r} has already been added; give one of the two another name")

    def _check_parents(self, name: str, parents: tuple[str, ...]) -> None:
        if not parents:
            raise TopologyError(f"node {name!r} has no parents; name at least one source or processor")
        for parent in parents:
            node = self._definition.nodes.get(parent)
            if node is None:
                hint = "it cannot be its own parent" if parent == name else "add it first"
                raise TopologyError(f"parent {parent!r} of node {name!r} is unknown; {hint}")
            if isinstance(node, SinkDefinition):
                raise TopologyError(f"{parent!r} is a sink and cannot be a parent of {name!r}")
            if parent in self._definition.global_nodes:
                raise TopologyError(
                    f"{parent!r} feeds a global store and nothing else, so it cannot be a parent of {name!r}; read the "
                    "store with context.get_state_store, from any processor"
                )

    def _check_topics_are_free(self, name: str, topics: tuple[str, ...], pattern: re.Pattern[str] | None) -> None:
        taken = self._definition.source_topics()
        for number, topic in enumerate(topics):
            if topic in topics[:number]:
                raise TopologyError(f"source {name!r} reads topic {topic!r} twice; name each topic once")
            if topic in taken:
                raise TopologyError(
                    f"topic {topic!r} of source {name!r} is read by source {taken[topic]!r} already; "
                    "use that source for both, a stream with to_table() or a table with to_stream()"
                )
        for node in self._definition.nodes.values():
            if isinstance(node, SourceDefinition) and node.pattern is not None:
                for topic in topics:
                    if node.pattern.fullmatch(topic):
                        raise TopologyError(
                            f"topic {topic!r} of source {name!r} matches the pattern {node.pattern.pattern!r} "
                            f"of source {node.name!r}; narrow the pattern"
                        )
        for topic in taken if pattern is not None else ():
            # the topic of a global store may be read a second time by a pattern, as in Kafka Streams
            if pattern is not None and pattern.fullmatch(topic) and taken[topic] not in self._definition.global_nodes:
                raise TopologyError(
                    f"pattern {pattern.pattern!r} of source {name!r} matches topic {topic!r}, "
                    f"which source {taken[topic]!r} reads already; narrow the pattern"
                )

    def _connect(self, processor: str, store: str) -> None:
        definition = self._definition
        if store in definition.global_stores:
            raise TopologyError(
                f"global store {store!r} need not be connected to {processor!r}, and cannot be: any processor may read "
                "it; leave its name out"
            )
        if store not in definition.stores:
            raise TopologyError(f"store {store!r} of processor {processor!r} is unknown; call add_state_store first")
        node = definition.nodes.get(processor)
        if node is None:
            raise TopologyError(f"processor {processor!r}, which uses store {store!r}, is unknown; add it first")
        if not isinstance(node, ProcessorDefinition):
            raise TopologyError(f"{processor!r} is a source or a sink, which cannot be connected to stores")
        users = definition.store_users.setdefault(store, [])
        if users:
            definition.groups.unite(users[0], (processor,))
        users.append(processor)
        if store not in node.connected:
            node.connected.append(store)


def _stores_of(supplier: Supplier) -> tuple[StoreBuilder[TaskStore], ...]:
    """The stores that a user's supplier brings, also where an operator of the DSL runs it."""
    user_code = supplier.supplier if isinstance(supplier, WrapsUserCode) else supplier
    return () if hasattr(user_code, "build") else stores_of(user_code)


def _serde(node: str, part: str, given: object) -> object:
    """The serializer or deserializer that was given to a node; for a type its serde."""
    try:
        return given_serde(cast("SerdeOrType[object]", given), is_key=part.startswith("key"))
    except TypeError as error:
        raise TypeError(f"{part} of {node!r}: {error}") from error


def _check_supplier(name: str, supplier: Supplier) -> None:
    if hasattr(supplier, "build"):  # an operator of the DSL, which is checked there
        return
    if not callable(supplier):
        raise TypeError(f"supplier of processor {name!r} is {supplier!r}; expected a callable without arguments")
    check_supplier(supplier, Processor, "process", "record")
