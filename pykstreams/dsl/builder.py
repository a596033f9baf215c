"""``StreamsBuilder``: where a topology script starts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias, TypeVar, overload

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import TopologyError
from pykstreams.core.names import topic_name, valid_name
from pykstreams.core.processor import AnyProcessorSupplier
from pykstreams.core.shown_values import with_noun
from pykstreams.core.types import Duration
from pykstreams.dsl.global_table import GlobalKTable
from pykstreams.dsl.kstream import KStream
from pykstreams.dsl.ktable import KTable
from pykstreams.dsl.options import Consumed, Materialized, consumed_of, expected
from pykstreams.dsl.place import Place
from pykstreams.dsl.repartitioning import repartition_node
from pykstreams.dsl.stores.materialization import options_of, table_store
from pykstreams.dsl.stores.reordering import reordering_of
from pykstreams.dsl.stores.table_logic import SourceTable
from pykstreams.dsl.table import Table
from pykstreams.dsl.user_calls import calls
from pykstreams.processors import StoredView, TableSource
from pykstreams.serdes.by_type import SerdeOrType
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.spec import StoreBuilder
from pykstreams.topology.compiler import compile_graph
from pykstreams.topology.definition import Supplier
from pykstreams.topology.graph import (
    GlobalStoreNode,
    Graph,
    RepartitionNode,
    SourceSettings,
    StateStoreNode,
    StreamSourceNode,
    TableSourceNode,
)
from pykstreams.topology.offset_reset import AutoOffsetReset
from pykstreams.topology.optimizer import optimize
from pykstreams.topology.placement.key_placement import placement_of
from pykstreams.topology.stores import StoreFactory, given_store
from pykstreams.topology.topology import Topology

K = TypeVar("K")
V = TypeVar("V")

Topics: TypeAlias = str | Iterable[str] | re.Pattern[str]
"""A topic, several, or a pattern of their names."""


class StreamsBuilder:
    """Reads topics as streams and tables, and builds the ``Topology`` of all that was made of them.

    ``config`` is needed where the script itself depends on it (``ensure.explicit.internal.resource.naming``,
    ``dsl.store.suppliers.class``); optimization is switched on by the one given to ``build``. Source:
    ``StreamsBuilder``, 4.3.1.
    """

    def __init__(self, config: StreamsConfig | Mapping[str, object] | None = None) -> None:
        self._config = StreamsConfig(config)
        self._graph = Graph()
        self._topology: Topology | None = None

    def __repr__(self) -> str:
        return f"<StreamsBuilder of {with_noun(len(self._graph.nodes()), 'step')}>"

    @overload
    def stream(self, topics: Topics, consumed: Consumed[K, V] | None = None) -> KStream[K, V]: ...
    @overload
    def stream(self, topics: Topics, key: SerdeOrType[K], value: SerdeOrType[V], /) -> KStream[K, V]: ...
    @calls()
    def stream(
        self,
        topics: Topics,
        consumed: Consumed[K, V] | SerdeOrType[K] | None = None,
        value: SerdeOrType[V] | None = None,
    ) -> KStream[K, V]:
        """Reads one topic, several, or all that match a compiled pattern, as a stream.

        The types of keys and values, or their serdes, may stand in place of ``consumed``, as in ``stream("orders", str,
        Order)``. Several topics are read by one source, with no order between them; one that is named twice is read
        once.
        """
        pattern = topics if isinstance(topics, re.Pattern) else None
        names = () if isinstance(topics, re.Pattern) else _names_of(topics)
        graph, options = self._graph, consumed_of(consumed, value) or Consumed()
        name = graph.namer.named(options.name, "KSTREAM-SOURCE-")
        node = StreamSourceNode(name, names, pattern, _settings(options))
        graph.add(node, graph.root)
        graph.place_keys(name, node.settings.placement)
        return KStream(Place(graph, node, name, options.key_serde, options.value_serde, frozenset({name})))

    @overload
    def table(
        self,
        topic: str,
        consumed: Consumed[K, V] | None = None,
        *,
        materialized: Materialized[K, V] | str | None = None,
        reorder_grace: Duration | None = None,
    ) -> KTable[K, V]: ...
    @overload
    def table(
        self,
        topic: str,
        key: SerdeOrType[K],
        value: SerdeOrType[V],
        /,
        *,
        materialized: Materialized[K, V] | str | None = None,
        reorder_grace: Duration | None = None,
    ) -> KTable[K, V]: ...
    @calls()
    def table(
        self,
        topic: str,
        consumed: Consumed[K, V] | SerdeOrType[K] | None = None,
        value: SerdeOrType[V] | None = None,
        *,
        materialized: Materialized[K, V] | str | None = None,
        reorder_grace: Duration | None = None,
    ) -> KTable[K, V]:
        """Reads a topic as a table: the last record of a key is its row, ``None`` deletes; null keys are dropped.

        The types of keys and values, or their serdes, may stand in place of ``consumed``. Serdes of either are used for
        the store too, those of ``materialized`` for both where neither is given.

        :param reorder_grace: how late records may come (a ``timedelta``, or an ``int`` of ms) and be put in the order
            of their timestamps nevertheless: each waits until the newest timestamp of its partition is later than its
            own by that much, and records of one timestamp keep their order. So the table and all that is made of it lag
            behind by the grace, but see no older record after a newer one. Those that come later still are dropped,
            with a warning and a count. What is newer than the last timestamp less the grace stays in the buffer
            until the topic goes on, also at its end. The buffer is a store on disk with a changelog.
        """
        topic_name(topic)
        graph, given = self._graph, options_of(materialized)
        options = consumed_of(consumed, value) or _consumed_as(given)
        kept = given.replace(key_serde=options.key_serde, value_serde=options.value_serde)
        store = table_store(graph, kept, f"{topic}-", None, None, of_records=True)
        logic = SourceTable(store)
        source = graph.namer.suffixed(options.name, "-source", "KSTREAM-SOURCE-")
        name = graph.namer.named(options.name, "KTABLE-SOURCE-")
        reordering = reordering_of(
            graph, name, reorder_grace, options.key_serde, options.value_serde, named=options.name is not None
        )
        node = TableSourceNode(
            name,
            source,
            topic,
            _settings(options),
            logic.operator,
            logic.stores,
            reordering,
            versioned=store.history_ms is not None,
            rows_go=store.expiry is not None,
        )
        graph.add(node, graph.root)
        graph.place_keys(source, node.settings.placement)
        place = Place(graph, node, name, options.key_serde, options.value_serde, frozenset({source}))
        return KTable(Table(place, logic, store))

    @overload
    def global_table(
        self,
        topic: str,
        consumed: Consumed[K, V] | None = None,
        *,
        materialized: Materialized[K, V] | str | None = None,
        reorder_grace: None = None,
    ) -> GlobalKTable[K, V]: ...
    @overload
    def global_table(
        self,
        topic: str,
        key: SerdeOrType[K],
        value: SerdeOrType[V],
        /,
        *,
        materialized: Materialized[K, V] | str | None = None,
        reorder_grace: None = None,
    ) -> GlobalKTable[K, V]: ...
    @calls()
    def global_table(
        self,
        topic: str,
        consumed: Consumed[K, V] | SerdeOrType[K] | None = None,
        value: SerdeOrType[V] | None = None,
        *,
        materialized: Materialized[K, V] | str | None = None,
        reorder_grace: None = None,
    ) -> GlobalKTable[K, V]:
        """Reads a topic as a table that every worker keeps whole; null keys are dropped.

        The types of keys and values, or their serdes, may stand in place of ``consumed``; where neither is given, the
        serdes are those of ``materialized``. The topic serves as
        changelog: it should be compacted, and its partitions may be of any number. That is why its records cannot be
        put in the order of their timestamps: a ``reorder_grace`` is a ``TopologyError``.
        """
        topic_name(topic)
        graph, given = self._graph, options_of(materialized)
        if reorder_grace is not None:
            raise TopologyError(
                f"global table of {topic!r} is given reorder_grace={reorder_grace!r}; it cannot be re-ordered, "
                "since its topic is its changelog: after a restart it has every record in the order of the topic. "
                "Leave reorder_grace away, or read the topic as a table"
            )
        if materialized is not None and given.store_name is None:
            raise ValueError(
                f"global table of {topic!r} is given {given!r} without the name of a store; name it, or leave "
                "materialized out"
            )
        options = consumed_of(consumed, value) or _consumed_as(given)
        kept = given.replace(key_serde=options.key_serde, value_serde=options.value_serde, logging=False)
        store = table_store(graph, kept, f"{topic}-", None, None)
        if store.history_ms is not None:
            raise TopologyError(
                f"global table of {topic!r} is given the versioned store {store.name!r}; it cannot be, since "
                "joins read a global table as it is, and its records are read in no order with theirs. Give it another "
                "store, or read the topic as a table"
            )
        node = self._add_global(topic, options, TableSource(store.name), store)
        place = Place(graph, node, node.name, options.key_serde, options.value_serde, frozenset({node.source_name}))
        return GlobalKTable(place, StoredView(store.name), store.queryable_name)

    def add_global_store(
        self,
        builder: StoreBuilder[TaskStore],
        topic: str,
        supplier: AnyProcessorSupplier,
        consumed: Consumed[K, V] | None = None,
    ) -> StreamsBuilder:
        """Adds a store that every worker keeps whole, and the one processor that writes it from a topic.

        ``supplier`` is any callable without arguments that gives a new ``Processor``; it sees every record of the
        topic, those that are read again after a restart included. Every processor may read the store, by its name;
        none but this one may write it. It has no changelog but its topic.
        """
        topic_name(topic)
        store = given_store(builder)
        valid_name(store.name)
        self._add_global(topic, expected("consumed", consumed, Consumed) or Consumed(), supplier, store)
        return self

    def _add_global(
        self, topic: str, options: Consumed[K, V], supplier: Supplier, store: StoreFactory
    ) -> GlobalStoreNode:
        namer = self._graph.namer
        source = namer.suffixed(options.name, "-source", "KSTREAM-SOURCE-")
        name = namer.named(options.name, "KTABLE-SOURCE-")
        node = GlobalStoreNode(name, source, topic, _settings(options), supplier, store)
        self._graph.add(node, self._graph.root)
        return node

    def add_state_store(self, builder: StoreBuilder[TaskStore]) -> StreamsBuilder:
        """Adds a store that processors can name."""
        store = given_store(builder)
        valid_name(store.name)
        self._graph.add(StateStoreNode(store), self._graph.root)
        return self

    def build(self, config: StreamsConfig | Mapping[str, object] | None = None) -> Topology:
        """Returns the topology; ``topology.optimization`` of the configuration given here is applied.

        Nothing can be added to the builder afterwards (``TopologyError``); called again, it gives the same topology.
        """
        if self._topology is not None:
            return self._topology
        topology = Topology(self._config)
        optimize(self._graph, StreamsConfig(config).optimizations, self._merged_repartition)
        explicit_names = any(c.ensure_explicit_internal_resource_naming for c in (self._config, StreamsConfig(config)))
        compile_graph(self._graph, topology, explicit_names=explicit_names)
        self._topology, self._graph.finished = topology, True
        return topology

    def _merged_repartition(
        self, topic: str, key_serde: SerdeOrDefault, value_serde: SerdeOrDefault
    ) -> RepartitionNode:
        return repartition_node(self._graph, topic, key_serde, value_serde, named=True)


def _names_of(topics: str | Iterable[str]) -> tuple[str, ...]:
    """Each topic once; ``TypeError`` for what is no name, and not several."""
    if isinstance(topics, str):
        return (topics,)
    names = tuple(topics) if isinstance(topics, Iterable) else (topics,)
    if not all(isinstance(name, str) for name in names):
        wanted = "the name of a topic, several names, or a pattern of names that re.compile made"
        raise TypeError(f"topics are {topics!r}; expected {wanted}")
    return tuple(dict.fromkeys(names))


def _consumed_as(materialized: Materialized[K, V]) -> Consumed[K, V]:
    return Consumed(key_serde=materialized.key_serde, value_serde=materialized.value_serde)


def _settings(options: Consumed[K, V]) -> SourceSettings:
    key, value = options.key_serde, options.value_serde
    return SourceSettings(
        None if key is None else key.deserializer,
        None if value is None else value.deserializer,
        options.timestamp_extractor,
        AutoOffsetReset.of(options.offset_reset_policy),
        placement_of(options.partitioner),
    )
