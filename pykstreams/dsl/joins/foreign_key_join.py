"""Foreign-key joins of tables: what ``KTable.join`` and its like with ``foreign_key_extractor=`` put into the graph.

Source: ``KTableImpl.doJoinOnForeignKey``, ``SubscriptionStoreFactory``, 4.3.1. Names are taken in the order in which
Kafka Streams takes them, since all count on; and as there, both topics are read with the default timestamp extractor,
unlike other repartition topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Generic, TypeVar

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import TopologyError
from pykstreams.core.names import (
    FOREIGN_KEY_JOIN_PREFIX,
    REGISTRATION_PREFIX,
    REGISTRATION_SUFFIX,
    RESPONSE_PREFIX,
    RESPONSE_SUFFIX,
    SUBSCRIPTION_STORE_SUFFIX,
    SUBSCRIPTION_TOPIC_SUFFIX,
)
from pykstreams.core.types import KR, V1, V2, VR, K, KeyValueMapper, StreamPartitioner, V, ValueJoiner
from pykstreams.dsl.annotations.inference import value_serde
from pykstreams.dsl.joins.foreign_key_types import check_foreign_key
from pykstreams.dsl.joins.optional_sides import over_missing_rows
from pykstreams.dsl.joins.repartitioned_join import combined_serde
from pykstreams.dsl.joins.table_placement import check_referred_placement
from pykstreams.dsl.options import Materialized, TableJoined, expected
from pykstreams.dsl.place import Place
from pykstreams.dsl.stores.materialization import options_of, table_params, table_store
from pykstreams.dsl.stores.table_logic import SourceTable
from pykstreams.dsl.table import Table
from pykstreams.processors import (
    ForeignKeyResolver,
    ForeignKeySerdes,
    ForeignTableJoin,
    RightRowCheck,
    SubscriptionJoin,
    SubscriptionReceive,
    SubscriptionSend,
)
from pykstreams.serdes.base import AnySerde
from pykstreams.serdes.defaults import OverDefault, SerdeOrDefault, over_default
from pykstreams.serdes.primitives import SIMPLE_SERDES
from pykstreams.serdes.subscription import (
    SubscriptionResponseWrapperSerde,
    SubscriptionWrapperSerde,
)
from pykstreams.serdes.told_topic import ToldTopic
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.key_values.subscriptions import subscription_store
from pykstreams.state.spec import StoreBuilder
from pykstreams.topology.graph import (
    Effect,
    Graph,
    GraphNode,
    OperatorNode,
    PlainRepartitionNode,
    RepartitionNode,
    RepartitionSettings,
    StreamSourceNode,
    TableSourceNode,
    is_versioned,
)
from pykstreams.topology.placement.answer_partitioner import AnswerPartitioner
from pykstreams.topology.placement.reference_partitioner import GivenPartitioner, ReferencePartitioner
from pykstreams.topology.placement.windowed_partitioner import windowed_partitioner

KO = TypeVar("KO")

_PROCESSOR = f"{FOREIGN_KEY_JOIN_PREFIX}SUBSCRIPTION-PROCESSOR-"
_STORE = f"{FOREIGN_KEY_JOIN_PREFIX}SUBSCRIPTION-STATE-STORE-"
_OUTPUT = f"{FOREIGN_KEY_JOIN_PREFIX}OUTPUT-"
_SINK, _SOURCE = "KTABLE-SINK-", "KTABLE-SOURCE-"


@dataclass(frozen=True, slots=True)
class SubscriptionStoreFactory:
    """The store of the subscriptions, which has a changelog and no cache."""

    name: str
    serdes: ForeignKeySerdes
    logging: bool = True

    def builder(self, config: StreamsConfig) -> StoreBuilder[TaskStore]:
        topic = f"{config.application_id}-{self.serdes.topic}"
        foreign, primary = self.serdes.foreign_key, self.serdes.primary_key
        serde = combined_serde(
            over_default(foreign, lambda keys: ToldTopic(keys, f"{topic}-fk")),
            over_default(primary, lambda keys: ToldTopic(keys, f"{topic}-pk")),
        )
        return StoreBuilder(
            config.dsl_store_suppliers.key_value_store(table_params(self.name, serde, config)),
            subscription_store,
            serde,
            _subscriptions(primary, f"{topic}-pk"),
            logging=self.logging,
        )


@dataclass(frozen=True, slots=True)
class OnePartition(Generic[K]):
    """A partitioner of ``TableJoined``: it sees keys only, and chooses one partition, or ``None`` for the default."""

    chosen_by: StreamPartitioner[K, None]

    def __call__(self, topic: str, key: K, value: object, partitions: int) -> int | None:
        chosen = self.chosen_by(topic, key, None, partitions)
        if chosen is None or isinstance(chosen, int):
            return chosen
        if len(chosen) != 1:
            raise ValueError(
                f"partitioner {self.chosen_by!r} chose the partitions {sorted(chosen)!r} of topic {topic!r} for key "
                f"{key!r}; in a foreign-key join it must choose exactly one"
            )
        (partition,) = chosen
        return partition


@dataclass(frozen=True, slots=True)
class ForeignKey(Generic[K, V, KO]):
    """How rows refer to those of another table: ``extractor(key, value)``; names and partitioners of the join.

    :param given: the function as the user gave it.
    """

    extractor: KeyValueMapper[K, V, KO | None]
    joined: TableJoined[K, KO]
    given: Callable[..., KO | None]

    @classmethod
    def of(
        cls,
        extractor: Callable[..., KO | None] | None,
        with_key: bool,
        joined: TableJoined[K, KO] | None,
        name: str | None,
    ) -> ForeignKey[K, V, KO] | None:
        """Reads what a user gave; ``None`` for a join by the keys of both tables."""
        if extractor is None:
            if with_key or joined is not None:
                given = "table_joined" if joined is not None else "extractor_with_key"
                raise ValueError(
                    f"{given} is for joins on a foreign key; give foreign_key_extractor, too, or leave it out"
                )
            return None
        options: TableJoined[K, KO] = expected("table_joined", joined, TableJoined) or TableJoined()
        if name is not None:
            if options.name not in (None, name):
                raise ValueError(
                    f"a foreign-key join is named {name!r} and, by table_joined, {options.name!r}; give one of the two"
                )
            options = options.replace(name=name)
        return cls(extractor if with_key else _by_value(extractor), options, extractor)


def join_on_foreign_key(
    left: Table,
    right: Table,
    foreign: ForeignKey[K, V, KO],
    joiner: ValueJoiner[V1, V2, VR | None],
    materialized: Materialized[KR, VR] | str | None,
    *,
    keeps_left: bool,
) -> Table:
    """Adds the join and returns the joined table."""
    check_foreign_key(foreign.given, right.place, right.place.key_serde)
    _check_serdes(right.place)
    if foreign.joined.other_partitioner is None:
        check_referred_placement(right.place)
    right.logic.send_old_values(force=True)
    left.logic.send_old_values(force=True)
    join = _Join.of(left, right, foreign, joiner, keeps_left)
    asked = join.add_subscriptions()
    answers = join.add_answers(asked)
    answered = join.add_answer_topic(answers)
    return join.add_result(answered, materialized)


@dataclass(frozen=True, slots=True)
class _Join(Generic[K, V, KO, V1, V2, VR]):
    """The join while it is put into the graph, step by step; each step takes the next names."""

    left: Table
    right: Table
    foreign: ForeignKey[K, V, KO]
    joiner: ValueJoiner[V1, V2, VR | None]
    keeps_left: bool
    serdes: ForeignKeySerdes
    by_foreign_key: OnePartition[KO] | None

    @classmethod
    def of(
        cls,
        left: Table,
        right: Table,
        foreign: ForeignKey[K, V, KO],
        joiner: ValueJoiner[V1, V2, VR | None],
        keeps_left: bool,
    ) -> _Join[K, V, KO, V1, V2, VR]:
        """Names the topic of subscriptions, and with it the serdes."""
        joined, left_place = foreign.joined, left.place
        namer = left_place.graph.namer
        topic = namer.suffixed(joined.name, REGISTRATION_SUFFIX, REGISTRATION_PREFIX) + SUBSCRIPTION_TOPIC_SUFFIX
        serdes = ForeignKeySerdes(topic, right.place.key_serde, left_place.key_serde, left_place.value_serde)
        by_foreign_key = None if joined.other_partitioner is None else OnePartition(joined.other_partitioner)
        return cls(left, right, foreign, joiner, keeps_left, serdes, by_foreign_key)

    @property
    def graph(self) -> Graph:
        """Both tables are in it."""
        return self.left.place.graph

    def name(self, suffix: str, prefix: str) -> str:
        """Returns the next name of a node or store."""
        return self.graph.namer.suffixed(self.foreign.joined.name, suffix, prefix)

    def add_subscriptions(self) -> PlainRepartitionNode:
        """Adds what sends the subscriptions of left rows, and their topic."""
        graph, left, right, serdes = self.graph, self.left.place, self.right.place, self.serdes
        extractor, keeps_left = self.foreign.extractor, self.keeps_left
        send = OperatorNode(
            self.name(f"{REGISTRATION_SUFFIX}-processor", REGISTRATION_PREFIX),
            lambda: SubscriptionSend(extractor, serdes, keeps_left, is_versioned(left.node)),
        )
        graph.add(send, left.node)
        asked = PlainRepartitionNode(
            RepartitionSettings(
                serdes.topic,
                self.name(f"{REGISTRATION_SUFFIX}-sink", _SINK),
                self.name(f"{REGISTRATION_SUFFIX}-source", _SOURCE),
                right.key_serde,
                _subscriptions(left.key_serde),
                self.by_foreign_key or windowed_partitioner(getattr(right.key_serde, "serializer", None)),
                timestamp_extractor=None,
            )
        )
        graph.add(asked, send)
        graph.copartitioned.append({*right.sources, asked.name})
        return asked

    def add_answers(self, asked: PlainRepartitionNode) -> tuple[OperatorNode, OperatorNode]:
        """Adds what keeps subscriptions, and what answers them: when they come, and when right rows change."""
        graph, right, serdes = self.graph, self.right.place, self.serdes
        store = SubscriptionStoreFactory(self.name(SUBSCRIPTION_STORE_SUFFIX, _STORE), serdes)
        foreign, given = attrgetter("prefix"), self.by_foreign_key
        graph.partitioners[store.name] = (
            ReferencePartitioner(foreign, right.key_serde) if given is None else GivenPartitioner(foreign, given)
        )
        receive = OperatorNode(
            self.name("-subscription-receive", _PROCESSOR),
            lambda: SubscriptionReceive(store.name, serdes),
            stores=lambda: (store,),
        )
        graph.add(receive, asked)
        right_view = self.right.logic.materialize_view()
        answer = OperatorNode(
            self.name("-subscription-join-foreign", _PROCESSOR),
            lambda: SubscriptionJoin(right_view, serdes),
            connect=right_view.stores,
        )
        graph.add(answer, receive)
        check = RightRowCheck(frozenset(topic for topic, _ in _key_sources(right.node)), self.by_foreign_key)
        fan_out = OperatorNode(
            self.name("-foreign-join-subscription", _PROCESSOR),
            lambda: ForeignTableJoin(store.name, serdes, check, is_versioned(right.node)),
            stores=lambda: (store,),
        )
        graph.add(fan_out, right.node)
        return answer, fan_out

    def add_answer_topic(self, answers: tuple[OperatorNode, OperatorNode]) -> PlainRepartitionNode:
        """Adds the topic on which answers go back to the left rows."""
        left, partitioner = self.left.place, self.foreign.joined.partitioner
        answered = PlainRepartitionNode(
            RepartitionSettings(
                self.name(RESPONSE_SUFFIX, RESPONSE_PREFIX) + SUBSCRIPTION_TOPIC_SUFFIX,
                self.name(f"{RESPONSE_SUFFIX}-sink", _SINK),
                self.name(f"{RESPONSE_SUFFIX}-source", _SOURCE),
                left.key_serde,
                _answers(self.right.place.value_serde),
                AnswerPartitioner() if partitioner is None else OnePartition(partitioner),
                timestamp_extractor=None,
                placement=left.placement,
            )
        )
        self.graph.place_keys(answered.name, left.placement)
        self.graph.add(answered, *answers)
        self.graph.copartitioned.append({*left.sources, answered.name})
        return answered

    def add_result(self, answered: PlainRepartitionNode, materialized: Materialized[KR, VR] | str | None) -> Table:
        """Adds what makes results of answers, and the table of them."""
        graph, left, serdes = self.graph, self.left.place, self.serdes
        joiner, keeps_left = over_missing_rows(self.joiner), self.keeps_left
        left_view = self.left.logic.materialize_view()
        resolve_name = self.name(f"{RESPONSE_SUFFIX}-resolver", f"{RESPONSE_PREFIX}RESOLVER-PROCESSOR-")
        result_name = self.name("-result", _OUTPUT)
        kept = table_store(graph, options_of(materialized), _OUTPUT, left.key_serde, value_serde(self.joiner))
        logic = SourceTable(kept)
        resolve = OperatorNode(
            resolve_name,
            lambda: ForeignKeyResolver(left_view, serdes, joiner, keeps_left),
            connect=left_view.stores,
        )
        graph.add(resolve, answered)
        result = OperatorNode(result_name, logic.operator, stores=logic.stores, versioned=kept.history_ms is not None)
        graph.add(result, resolve)
        sources = left.sources | {answered.name}
        return Table(Place(graph, result, result_name, left.key_serde, kept.value_serde, sources), logic, kept)


def _by_value(extractor: Callable[[V], KO | None]) -> KeyValueMapper[K, V, KO | None]:
    def extract(key: K, value: V) -> KO | None:
        return extractor(value)

    return extract


def _subscriptions(primary_key: SerdeOrDefault, told: str | None = None) -> AnySerde | OverDefault:
    """The serde of subscriptions; primary keys are told that topic, or the one of the subscription with ``-pk``."""

    def wrap(serde: AnySerde) -> AnySerde:
        return SubscriptionWrapperSerde(ToldTopic(serde, told, "" if told else "-pk"))

    return over_default(primary_key, wrap, of_keys=True)


def _answers(value: SerdeOrDefault) -> AnySerde | OverDefault:
    return over_default(value, SubscriptionResponseWrapperSerde)


def _key_sources(node: GraphNode) -> Iterator[tuple[str, object]]:
    """The topics that the rows of a table are read from under the keys that they have in the table, with the
    deserializers of these keys.
    """
    if isinstance(node, TableSourceNode):
        yield node.topic, node.settings.key_deserializer
    elif isinstance(node, StreamSourceNode):
        for topic in node.topics:
            yield topic, node.settings.key_deserializer
    elif isinstance(node, RepartitionNode | PlainRepartitionNode):
        serde = node.settings.key_serde
        yield node.settings.topic, None if serde is None else serde.deserializer
    elif node.effect is not Effect.CHANGES_KEY:
        for parent in node.parents:
            yield from _key_sources(parent)


def _check_serdes(right: Place) -> None:
    """Refuses a right table whose rows are not written as foreign keys will be; types tell where both are simple."""
    serde = right.key_serde
    if not isinstance(serde, SIMPLE_SERDES):
        return
    for topic, read_by in _key_sources(right.node):
        if isinstance(read_by, SIMPLE_SERDES) and read_by != serde:
            raise TopologyError(
                f"foreign-key join with {right.name}: keys of its topic {topic!r} are read by {read_by!r}, but "
                f"foreign keys would be written by {serde!r}, the key serde of the table, so the two would not meet; "
                "give both the same key serde (Consumed, Materialized)"
            )
