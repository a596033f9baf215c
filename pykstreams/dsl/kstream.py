"""``KStream``: an unbounded stream of records, each an event of its own."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Generic, Literal, TextIO, TypeVar, cast, overload

from pykstreams.core.names import topic_name
from pykstreams.core.processor import FixedKeyProcessorSupplier, ProcessorSupplier
from pykstreams.core.types import Duration, ForeachAction, KeyValueMapper, Predicate, TopicNameExtractor, duration_ms
from pykstreams.core.user_code.tells_where import TellsWhere
from pykstreams.core.windows import JoinWindows
from pykstreams.dsl.annotations.inference import (
    awaited_serde,
    fixed_key_processor_serde,
    key_serde,
    merged,
    pair_serdes,
    pairs_serdes,
    passed_on,
    processor_serdes,
    value_serde,
    values_serde,
)
from pykstreams.dsl.branching import BranchedKStream
from pykstreams.dsl.global_table import GlobalKTable
from pykstreams.dsl.grouped import KGroupedStream
from pykstreams.dsl.joins.join_kind import JoinKind
from pykstreams.dsl.joins.stream_joins import JoinOptions, join_with_global_table, join_with_stream, join_with_table
from pykstreams.dsl.joins.stream_table_join import OnExpiredHistory
from pykstreams.dsl.key_types import keys_of, stand_in, values_of
from pykstreams.dsl.ktable import KTable
from pykstreams.dsl.options import (
    Grouped,
    Joined,
    Materialized,
    Produced,
    Repartitioned,
    StreamJoined,
    expected,
    unexpected,
)
from pykstreams.dsl.other_steps import TO_GROUPS
from pykstreams.dsl.place import Place, record_serdes_of
from pykstreams.dsl.record_serdes import RecordSerdes
from pykstreams.dsl.repartitioning import repartition_node
from pykstreams.dsl.retry import Retry, retried
from pykstreams.dsl.sql_sinks import add_sql_sink
from pykstreams.dsl.stream_table import table_of_stream
from pykstreams.dsl.user_calls import calls, check_function
from pykstreams.dsl.user_nodes import add_user_node
from pykstreams.processors import (
    Filter,
    FlatMap,
    FlatMapValues,
    ForEach,
    Lookup,
    LookupCache,
    Map,
    MapValues,
    MapValuesAsync,
    PassThrough,
    Peek,
    Print,
    SelectKey,
    UserFixedKeyProcessor,
    UserProcessor,
)
from pykstreams.processors.process import FunctionOperator
from pykstreams.processors.sinks.sql_sink import SqlSink
from pykstreams.serdes.base import Serde
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.topology.graph import Effect, OperatorNode, Step, StreamSinkNode

K = TypeVar("K")
V = TypeVar("V")
KR = TypeVar("KR")
VR = TypeVar("VR")
KG = TypeVar("KG")
VO = TypeVar("VO")

_CHOOSES_TOPIC: Final = "key, value, record context"


class KStream(TellsWhere, Generic[K, V]):
    """A stream of records; every operation returns a new stream and leaves this one as it is.

    Functions must not change the keys and values they are given: other branches see the same objects. Steps that
    may change the key mark the stream, and grouping or joining it goes through a repartition topic. Source:
    ``KStream``, 4.3.1.
    """

    _elsewhere = dict.fromkeys(("aggregate", "cogroup", "count", "reduce", "windowed_by"), TO_GROUPS) | {
        "branch": "split it first: split().branch(...)",
        "default_branch": "split it first: split().branch(...).default_branch()",
        "suppress": "only tables are suppressed: those of an aggregation, or to_table().suppress(...)",
        "to_stream": "it is one",
    }

    def __init__(self, place: Place) -> None:
        self._place = place

    def __repr__(self) -> str:
        return self._place.shown_as("KStream")

    def _repr_html_(self) -> str:
        """The stream in a notebook, with the steps that lead to it."""
        return self._place.drawn_as("KStream")

    @property
    def _record_serdes(self) -> RecordSerdes:
        return record_serdes_of(self._place)

    @calls(predicate="key, value")
    def filter(
        self, predicate: Predicate[K, V], *, retry: Retry[K, V] | None = None, name: str | None = None
    ) -> KStream[K, V]:
        """Keeps the records for which ``predicate(key, value)`` holds.

        With ``retry``, here and in other steps, a record whose function has failed waits, and is tried again later.
        """
        return self._keeping(self._tried("KSTREAM-FILTER-", name, Filter(predicate), retry))

    @calls(predicate="key, value")
    def filter_not(
        self, predicate: Predicate[K, V], *, retry: Retry[K, V] | None = None, name: str | None = None
    ) -> KStream[K, V]:
        """Keeps the records for which ``predicate(key, value)`` does not hold."""
        return self._keeping(self._tried("KSTREAM-FILTER-", name, Filter(predicate, negate=True), retry))

    @calls(mapper="key, value -> key")
    def select_key(
        self, mapper: KeyValueMapper[K, V, KR], *, retry: Retry[K, V] | None = None, name: str | None = None
    ) -> KStream[KR, V]:
        """Sets the key of each record to ``mapper(key, value)``; marks the stream for repartitioning."""
        return self._with_selected_keys(mapper, retry, name)

    @calls(mapper="key, value -> pair")
    def map(
        self,
        mapper: KeyValueMapper[K, V, tuple[KR, VR]],
        *,
        retry: Retry[K, V] | None = None,
        name: str | None = None,
    ) -> KStream[KR, VR]:
        """Maps each record to the pair ``mapper(key, value)``; marks the stream for repartitioning."""
        return self._rekeyed(self._tried("KSTREAM-MAP-", name, Map(mapper), retry), *pair_serdes(mapper))

    @overload
    def map_values(
        self,
        mapper: Callable[[V], VR],
        *,
        with_key: Literal[False] = False,
        retry: Retry[K, V] | None = None,
        name: str | None = None,
    ) -> KStream[K, VR]: ...
    @overload
    def map_values(
        self,
        mapper: Callable[[K, V], VR],
        *,
        with_key: Literal[True],
        retry: Retry[K, V] | None = None,
        name: str | None = None,
    ) -> KStream[K, VR]: ...
    @calls(mapper="key?, value -> value")
    def map_values(
        self,
        mapper: Callable[..., VR],
        *,
        with_key: bool = False,
        retry: Retry[K, V] | None = None,
        name: str | None = None,
    ) -> KStream[K, VR]:
        """Maps each value by ``mapper(value)``, or ``mapper(key, value)`` with ``with_key``; keys stay."""
        step = self._tried("KSTREAM-MAPVALUES-", name, MapValues(mapper, with_key), retry)
        return self._with_new_values(step, value_serde(mapper))

    @overload
    def map_values_async(
        self,
        fn: Callable[[V], Awaitable[VR]],
        *,
        with_key: Literal[False] = False,
        max_in_flight: int = 100,
        timeout: Duration | None = None,
        retries: int = 0,
        name: str | None = None,
    ) -> KStream[K, VR]: ...
    @overload
    def map_values_async(
        self,
        fn: Callable[[K, V], Awaitable[VR]],
        *,
        with_key: Literal[True],
        max_in_flight: int = 100,
        timeout: Duration | None = None,
        retries: int = 0,
        name: str | None = None,
    ) -> KStream[K, VR]: ...
    @calls(fn="await key?, value -> value")
    def map_values_async(
        self,
        fn: Callable[..., Awaitable[VR]],
        *,
        with_key: bool = False,
        max_in_flight: int = 100,
        timeout: Duration | None = None,
        retries: int = 0,
        name: str | None = None,
    ) -> KStream[K, VR]:
        """Maps each value by ``await fn(value)``, or ``fn(key, value)``, many at a time; keys stay.

        Records of one key leave in the order in which they came, and offsets are committed only when nothing is in
        flight. Beyond Kafka Streams; see docs/guides/asynchronous-enrichment.md.

        :param max_in_flight: how many calls run at a time in each task; the task takes no more records meanwhile.
        :param timeout: of one call; ``None`` waits for ever, and commits wait with it.
        :param retries: how often a call that raised or timed out is repeated, ``retry.backoff.ms`` apart; then the
            processing exception handler is asked.
        """
        timeout_ms = None if timeout is None else duration_ms(timeout, "timeout")
        operator = MapValuesAsync(fn, with_key, max_in_flight, timeout_ms, retries)
        return self._with_new_values(Step(self._named("KSTREAM-MAPVALUESASYNC-", name), operator), awaited_serde(fn))

    @calls(fn="await key asked for", joiner="value, answer -> value", key="key, value")
    def lookup(
        self,
        fn: Callable[[KG], Awaitable[VO | None]],
        joiner: Callable[[V, VO | None], VR],
        *,
        key: KeyValueMapper[K, V, KG | None],
        cache: LookupCache | None = None,
        max_in_flight: int = 100,
        timeout: Duration | None = None,
        retries: int = 0,
        name: str | None = None,
    ) -> KStream[K, VR]:
        """Maps each value by ``joiner(value, answer)``, with the answer of ``await fn(key(key, value))``; keys stay.

        Equal keys are asked for once at a time, by all tasks of a process together, and answers are remembered as
        ``cache`` says. Where ``key`` gives ``None`` nobody is asked, and the answer is ``None``. All else is as in
        ``map_values_async``; ``timeout`` is that of one question. Beyond Kafka Streams; see
        docs/guides/asynchronous-enrichment.md.
        """
        timeout_ms = None if timeout is None else duration_ms(timeout, "timeout")
        operator = Lookup(fn, joiner, key, cache, max_in_flight, timeout_ms, retries)
        return self._with_new_values(Step(self._named("KSTREAM-LOOKUP-", name), operator), value_serde(joiner))

    @calls(mapper="key, value -> pairs")
    def flat_map(
        self,
        mapper: KeyValueMapper[K, V, Iterable[tuple[KR, VR]]],
        *,
        retry: Retry[K, V] | None = None,
        name: str | None = None,
    ) -> KStream[KR, VR]:
        """Maps each record to any number of pairs; a generator function will do. Marks for repartitioning."""
        operator = FlatMap(mapper, all_or_nothing=retry is not None)
        return self._rekeyed(self._tried("KSTREAM-FLATMAP-", name, operator, retry), *pairs_serdes(mapper))

    @overload
    def flat_map_values(
        self,
        mapper: Callable[[V], Iterable[VR]],
        *,
        with_key: Literal[False] = False,
        retry: Retry[K, V] | None = None,
        name: str | None = None,
    ) -> KStream[K, VR]: ...
    @overload
    def flat_map_values(
        self,
        mapper: Callable[[K, V], Iterable[VR]],
        *,
        with_key: Literal[True],
        retry: Retry[K, V] | None = None,
        name: str | None = None,
    ) -> KStream[K, VR]: ...
    @calls(mapper="key?, value -> values")
    def flat_map_values(
        self,
        mapper: Callable[..., Iterable[VR]],
        *,
        with_key: bool = False,
        retry: Retry[K, V] | None = None,
        name: str | None = None,
    ) -> KStream[K, VR]:
        """Maps each value to any number of values by ``mapper(value)``, or ``mapper(key, value)``; keys stay."""
        step = self._tried("KSTREAM-FLATMAPVALUES-", name, FlatMapValues(mapper, with_key), retry)
        return self._with_new_values(step, values_serde(mapper))

    @calls(action="key, value")
    def peek(
        self, action: ForeachAction[K, V], *, retry: Retry[K, V] | None = None, name: str | None = None
    ) -> KStream[K, V]:
        """Calls ``action(key, value)`` for each record and forwards the record."""
        return self._keeping(self._tried("KSTREAM-PEEK-", name, Peek(action), retry))

    @calls(action="key, value")
    def foreach(
        self, action: ForeachAction[K, V], *, retry: Retry[K, V] | None = None, name: str | None = None
    ) -> None:
        """Calls ``action(key, value)`` for each record; the stream ends here."""
        self._add(self._tried("KSTREAM-FOREACH-", name, ForEach(action), retry))

    @calls(formatter="key, value")
    def print(
        self,
        *,
        label: str | None = None,
        file: TextIO | str | os.PathLike[str] | None = None,
        formatter: Callable[[K, V], str] | None = None,
        name: str | None = None,
    ) -> None:
        """Prints each record as ``[label]: key, value`` to ``file`` (standard output); the stream ends here.

        ``label`` is the name of the stream if none is given; ``formatter(key, value)`` replaces what follows it.
        """
        operator = Print(self._place.name if label is None else label, file, formatter)
        self._add(Step(self._named("KSTREAM-PRINTER-", name), operator))

    def split(self, *, name: str | None = None) -> BranchedKStream[K, V]:
        """Starts to split the stream into branches; ``name`` is the prefix of their names."""
        return BranchedKStream(self._place, name, KStream)

    def merge(self, other: KStream[K, V], *, name: str | None = None) -> KStream[K, V]:
        """Puts the records of both streams into one, in no order between the two."""
        if not isinstance(other, KStream):
            topic = repr(other) if isinstance(other, str) else "..."
            write = "table.to_stream()" if isinstance(other, KTable) else f"builder.stream({topic})"
            raise unexpected("other", other, KStream, write)
        mine, theirs = self._place, other._place
        node = OperatorNode(mine.graph.namer.named(name, "KSTREAM-MERGE-"), PassThrough, effect=Effect.MERGES)
        mine.graph.add(node, mine.node, theirs.node)
        rekeyed = mine.rekeyed or theirs.rekeyed
        keys = merged(mine.key_serde, theirs.key_serde) or stand_in("merge", keys_of(mine), keys_of(theirs))
        values = merged(mine.value_serde, theirs.value_serde)
        values = values or stand_in("merge", values_of(mine), values_of(theirs))
        return KStream(Place(mine.graph, node, node.name, keys, values, mine.sources | theirs.sources, rekeyed))

    @calls()
    def repartition(self, repartitioned: Repartitioned[K, V] | None = None) -> KStream[K, V]:
        """Sends the records through a topic of the application's own, partitioned by their key.

        Creates ``<application.id>-<name>-repartition``; records without key are dropped.
        """
        place, options = self._place, expected("repartitioned", repartitioned, Repartitioned) or Repartitioned()
        values = options.value_serde or place.value_serde
        node = repartition_node(
            place.graph,
            options.name or place.graph.namer.node("KSTREAM-REPARTITION-"),
            options.key_serde or passed_on(place.key_serde),
            values,
            named=options.name is not None,
            optimizable=False,
            partitioner=options.partitioner,
            num_partitions=options.num_partitions,
        )
        place.graph.add(node, place.node)
        keys = options.key_serde or place.key_serde
        return KStream(Place(place.graph, node, node.name, keys, values, frozenset({node.name})))

    @calls()
    def to(self, topic: str | TopicNameExtractor[K, V], produced: Produced[K, V] | None = None) -> None:
        """Writes the records to a topic, or to the one that ``topic(key, value, record context)`` names.

        The topic must exist. Without a partitioner the key decides (murmur2, as in Java); null keys go anywhere.
        """
        if callable(topic):
            check_function("KStream.to", "topic", topic, _CHOOSES_TOPIC)
        else:
            topic_name(topic, f"the name of a topic, or a function that is called with ({_CHOOSES_TOPIC})")
        place, options = self._place, expected("produced", produced, Produced) or Produced()
        name = place.graph.namer.named(options.name, "KSTREAM-SINK-")
        keys, values = options.key_serde or place.key_serde, options.value_serde or place.value_serde
        node = StreamSinkNode(
            name,
            topic,
            None if keys is None else keys.serializer,
            None if values is None else values.serializer,
            options.partitioner,
        )
        place.graph.add(node, place.node)

    def to_sql(self, sink: SqlSink[K, V], *, name: str) -> None:
        """Writes the records as rows of a database, each once; the stream ends here.

        Rows and the offset behind their input record are committed in one transaction of the database, before Kafka's
        commit. ``name`` is under which the database keeps the offsets: give another one, and all that is read is
        written again. Steps above must forward records at once; others are a ``TopologyError`` when the topology is
        built. Beyond Kafka Streams; see docs/guides/effect-once-sinks.md.
        """
        add_sql_sink(self._place, sink, self._place.graph.namer.named(name, "KSTREAM-SQLSINK-"))

    @calls()
    def to_table(
        self,
        *,
        materialized: Materialized[K, V] | str | None = None,
        reorder_grace: Duration | None = None,
        name: str | None = None,
    ) -> KTable[K, V]:
        """Reads the stream as a table: the last record of a key is its row, ``None`` deletes.

        With ``materialized`` the store has its serdes, or else the defaults. Goes through a repartition topic if the
        key may have changed. Records without key are dropped. With ``reorder_grace`` records that come late by that
        much at most are put in the order of their timestamps first, see ``StreamsBuilder.table``.
        """
        return KTable(table_of_stream(self._place, materialized, reorder_grace, name))

    @calls()
    def group_by_key(self, grouped: Grouped[K, V] | None = None) -> KGroupedStream[K, V]:
        """Groups the records by their key; repartitions if the key may have changed."""
        options = expected("grouped", grouped, Grouped) or Grouped(
            key_serde=cast("Serde[K] | None", self._place.key_serde),  # or what stands for one around the default
            value_serde=cast("Serde[V] | None", self._place.value_serde),
        )
        return KGroupedStream(self._place, self._grouped(options), KStream)

    @calls(key_selector="key, value -> key")
    def group_by(
        self, key_selector: KeyValueMapper[K, V, KR], grouped: Grouped[KR, V] | None = None
    ) -> KGroupedStream[KR, V]:
        """Groups the records by ``key_selector(key, value)``, through a repartition topic."""
        options = expected("grouped", grouped, Grouped)
        options = options or Grouped(value_serde=cast("Serde[V] | None", self._place.value_serde))
        step = Step(self._named("KSTREAM-KEY-SELECT-", options.name), SelectKey(key_selector))
        selected: KStream[KR, V] = self._rekeyed(step, key_serde(key_selector), self._place.value_serde)
        return KGroupedStream(selected._place, selected._grouped(options), KStream)

    @overload
    def join(
        self,
        other: KStream[K, VO],
        joiner: Callable[[V, VO], VR],
        *,
        with_key: Literal[False] = False,
        windows: JoinWindows,
        stream_joined: StreamJoined[K, V, VO] | None = None,
    ) -> KStream[K, VR]: ...
    @overload
    def join(
        self,
        other: KStream[K, VO],
        joiner: Callable[[K, V, VO], VR],
        *,
        with_key: Literal[True],
        windows: JoinWindows,
        stream_joined: StreamJoined[K, V, VO] | None = None,
    ) -> KStream[K, VR]: ...
    @overload
    def join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[V, VO], VR],
        *,
        with_key: Literal[False] = False,
        joined: Joined[K, V, VO] | None = None,
        on_expired_history: OnExpiredHistory = "null",
    ) -> KStream[K, VR]: ...
    @overload
    def join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[K, V, VO], VR],
        *,
        with_key: Literal[True],
        joined: Joined[K, V, VO] | None = None,
        on_expired_history: OnExpiredHistory = "null",
    ) -> KStream[K, VR]: ...
    @overload
    def join(
        self,
        other: KTable[KG, VO],
        joiner: Callable[[V, VO], VR],
        *,
        with_key: Literal[False] = False,
        key_selector: KeyValueMapper[K, V, KG | None],
        joined: Joined[KG, V, VO] | None = None,
        repartitioned: Repartitioned[K, VR] | None = None,
        on_expired_history: OnExpiredHistory = "null",
    ) -> KStream[K, VR]: ...
    @overload
    def join(
        self,
        other: GlobalKTable[KG, VO],
        joiner: Callable[[V, VO], VR],
        *,
        with_key: Literal[False] = False,
        key_selector: KeyValueMapper[K, V, KG | None],
        name: str | None = None,
    ) -> KStream[K, VR]: ...
    @overload
    def join(
        self,
        other: KTable[KG, VO],
        joiner: Callable[[K, V, VO], VR],
        *,
        with_key: Literal[True],
        key_selector: KeyValueMapper[K, V, KG | None],
        joined: Joined[KG, V, VO] | None = None,
        repartitioned: Repartitioned[K, VR] | None = None,
        on_expired_history: OnExpiredHistory = "null",
    ) -> KStream[K, VR]: ...
    @overload
    def join(
        self,
        other: GlobalKTable[KG, VO],
        joiner: Callable[[K, V, VO], VR],
        *,
        with_key: Literal[True],
        key_selector: KeyValueMapper[K, V, KG | None],
        name: str | None = None,
    ) -> KStream[K, VR]: ...
    @calls(joiner="key?, value, other value -> value", key_selector="key, value")
    def join(
        self,
        other: KStream[K, VO] | KTable[KG, VO] | GlobalKTable[KG, VO],
        joiner: Callable[..., VR],
        *,
        with_key: bool = False,
        windows: JoinWindows | None = None,
        stream_joined: StreamJoined[K, V, VO] | None = None,
        joined: Joined[KG, V, VO] | None = None,
        on_expired_history: OnExpiredHistory = "null",
        key_selector: KeyValueMapper[K, V, KG | None] | None = None,
        repartitioned: Repartitioned[K, VR] | None = None,
        name: str | None = None,
    ) -> KStream[K, VR]:
        """Joins each record with its partners on the other side; without one there is no result.

        The partners are the records of another stream with the same key inside ``windows``, whichever side comes first;
        or the row that a table has for the key at that moment; a global table is asked for the key that
        ``key_selector(key, value)`` gives. The joiner gets (value, other value), or (key, value,
        other value) with ``with_key``; a result has the larger of both timestamps if the other side is a stream.

        Records without key or value are dropped. Both sides need equal partition counts; where keys may have changed
        they go through a repartition topic, named after ``stream_joined.name`` or ``joined.name``.

        With ``key_selector`` a table is joined by a foreign key: records go to its rows through a repartition topic,
        and results come back through another, with the stream's keys; ``repartitioned`` describes that one, and without
        value serde results are written by the default one. Records for which it gives ``None`` are dropped. Beyond
        Kafka Streams; see docs/guides/stream-foreign-key-joins.md.

        A versioned table is asked for the row of the record's own time. ``on_expired_history`` says what becomes of a
        record from before the table's history retention (ms, judged by the newest record of its store) for which nobody
        can tell whether there was a row. With ``"null"`` there was none: no result here, and one with ``None`` in
        ``left_join``. With ``"drop"`` either join drops the record, with a warning, and counts it in
        ``dropped-records-total``. A row that has not been replaced since is found in any case.
        """
        options = JoinOptions(
            joiner,
            with_key,
            windows,
            stream_joined,
            joined,
            key_selector,
            name,
            on_expired_history,
            repartitioned,
        )
        return self._joined(other, options, JoinKind.INNER)

    @overload
    def left_join(
        self,
        other: KStream[K, VO],
        joiner: Callable[[V, VO | None], VR],
        *,
        with_key: Literal[False] = False,
        windows: JoinWindows,
        stream_joined: StreamJoined[K, V, VO] | None = None,
    ) -> KStream[K, VR]: ...
    @overload
    def left_join(
        self,
        other: KStream[K, VO],
        joiner: Callable[[K, V, VO | None], VR],
        *,
        with_key: Literal[True],
        windows: JoinWindows,
        stream_joined: StreamJoined[K, V, VO] | None = None,
    ) -> KStream[K, VR]: ...
    @overload
    def left_join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[V, VO | None], VR],
        *,
        with_key: Literal[False] = False,
        joined: Joined[K, V, VO] | None = None,
        on_expired_history: OnExpiredHistory = "null",
    ) -> KStream[K, VR]: ...
    @overload
    def left_join(
        self,
        other: KTable[K, VO],
        joiner: Callable[[K, V, VO | None], VR],
        *,
        with_key: Literal[True],
        joined: Joined[K, V, VO] | None = None,
        on_expired_history: OnExpiredHistory = "null",
    ) -> KStream[K, VR]: ...
    @overload
    def left_join(
        self,
        other: KTable[KG, VO],
        joiner: Callable[[V, VO | None], VR],
        *,
        with_key: Literal[False] = False,
        key_selector: KeyValueMapper[K, V, KG | None],
        joined: Joined[KG, V, VO] | None = None,
        repartitioned: Repartitioned[K, VR] | None = None,
        on_expired_history: OnExpiredHistory = "null",
    ) -> KStream[K, VR]: ...
    @overload
    def left_join(
        self,
        other: GlobalKTable[KG, VO],
        joiner: Callable[[V, VO | None], VR],
        *,
        with_key: Literal[False] = False,
        key_selector: KeyValueMapper[K, V, KG | None],
        name: str | None = None,
    ) -> KStream[K, VR]: ...
    @overload
    def left_join(
        self,
        other: KTable[KG, VO],
        joiner: Callable[[K, V, VO | None], VR],
        *,
        with_key: Literal[True],
        key_selector: KeyValueMapper[K, V, KG | None],
        joined: Joined[KG, V, VO] | None = None,
        repartitioned: Repartitioned[K, VR] | None = None,
        on_expired_history: OnExpiredHistory = "null",
    ) -> KStream[K, VR]: ...
    @overload
    def left_join(
        self,
        other: GlobalKTable[KG, VO],
        joiner: Callable[[K, V, VO | None], VR],
        *,
        with_key: Literal[True],
        key_selector: KeyValueMapper[K, V, KG | None],
        name: str | None = None,
    ) -> KStream[K, VR]: ...
    @calls(joiner="key?, value, other value -> value", key_selector="key, value")
    def left_join(
        self,
        other: KStream[K, VO] | KTable[KG, VO] | GlobalKTable[KG, VO],
        joiner: Callable[..., VR],
        *,
        with_key: bool = False,
        windows: JoinWindows | None = None,
        stream_joined: StreamJoined[K, V, VO] | None = None,
        joined: Joined[KG, V, VO] | None = None,
        on_expired_history: OnExpiredHistory = "null",
        key_selector: KeyValueMapper[K, V, KG | None] | None = None,
        repartitioned: Repartitioned[K, VR] | None = None,
        name: str | None = None,
    ) -> KStream[K, VR]:
        """As ``join``, and a record of this stream that has no partner is joined with ``None``.

        With another stream that is known, and so the result is given, when the window and its grace period have passed.
        Records without key are joined with ``None`` at once; with a ``grace_period`` of a versioned table they are
        errors, as in Kafka Streams.
        """
        options = JoinOptions(
            joiner,
            with_key,
            windows,
            stream_joined,
            joined,
            key_selector,
            name,
            on_expired_history,
            repartitioned,
        )
        return self._joined(other, options, JoinKind.LEFT)

    @overload
    def outer_join(
        self,
        other: KStream[K, VO],
        joiner: Callable[[V | None, VO | None], VR],
        *,
        with_key: Literal[False] = False,
        windows: JoinWindows,
        stream_joined: StreamJoined[K, V, VO] | None = None,
    ) -> KStream[K, VR]: ...
    @overload
    def outer_join(
        self,
        other: KStream[K, VO],
        joiner: Callable[[K, V | None, VO | None], VR],
        *,
        with_key: Literal[True],
        windows: JoinWindows,
        stream_joined: StreamJoined[K, V, VO] | None = None,
    ) -> KStream[K, VR]: ...
    @calls(joiner="key?, value, other value -> value")
    def outer_join(
        self,
        other: KStream[K, VO],
        joiner: Callable[..., VR],
        *,
        with_key: bool = False,
        windows: JoinWindows | None = None,
        stream_joined: StreamJoined[K, V, VO] | None = None,
    ) -> KStream[K, VR]:
        """As ``left_join`` with a stream, and so are records of the other stream; tables cannot be joined so."""
        if not isinstance(other, KStream):
            raise TypeError(f"the other side of an outer join is {other!r}; expected a KStream")
        options: JoinOptions[K, V, VO, K, VR] = JoinOptions(joiner, with_key, windows, stream_joined, None, None, None)
        return self._joined(other, options, JoinKind.OUTER)

    def process(
        self, supplier: ProcessorSupplier[K, V, KR, VR], *state_store_names: str, name: str | None = None
    ) -> KStream[KR, VR]:
        """Runs a ``Processor`` on each record; connects the named stores and those of ``supplier.stores()``.

        ``supplier`` is any callable without arguments that gives a new processor. Marks for repartitioning.
        """
        place, operator = self._place, UserProcessor(supplier)
        node = add_user_node(place, "KSTREAM-PROCESSOR-", name, supplier, operator, state_store_names)
        return KStream(Place(place.graph, node, node.name, *processor_serdes(supplier), place.sources, rekeyed=True))

    def process_values(
        self, supplier: FixedKeyProcessorSupplier[K, V, VR], *state_store_names: str, name: str | None = None
    ) -> KStream[K, VR]:
        """Runs a ``FixedKeyProcessor`` on each record; keys stay, so nothing is repartitioned behind it."""
        place, operator = self._place, UserFixedKeyProcessor(supplier)
        node = add_user_node(place, "KSTREAM-PROCESSVALUES-", name, supplier, operator, state_store_names)
        values = fixed_key_processor_serde(supplier)
        return KStream(Place(place.graph, node, node.name, place.key_serde, values, place.sources, place.rekeyed))

    def _joined(self, other: object, options: JoinOptions[K, V, VO, KG, VR], kind: JoinKind) -> KStream[K, VR]:
        mine, graph = self._place, self._place.graph
        if isinstance(other, KStream):
            return KStream(join_with_stream(mine, other._place, options, kind))
        if isinstance(other, KTable):
            graph.check_own(other._table.place.node)
            return KStream(join_with_table(mine, other._table, options, keeps_left=kind.keeps_left))
        if isinstance(other, GlobalKTable):
            graph.check_own(other._place.node)
            return KStream(join_with_global_table(mine, other._place, other._view, options, keeps_left=kind.keeps_left))
        raise TypeError(f"the other side of a join is {other!r}; expected a KStream, a KTable or a GlobalKTable")

    def _with_selected_keys(
        self, mapper: KeyValueMapper[K, V, KR], retry: Retry[K, V] | None = None, name: str | None = None
    ) -> KStream[KR, V]:
        step = self._tried("KSTREAM-KEY-SELECT-", name, SelectKey(mapper), retry)
        return self._rekeyed(step, key_serde(mapper), self._place.value_serde)

    def _named(self, prefix: str, name: str | None) -> str:
        return self._place.graph.namer.named(name, prefix)

    def _tried(self, prefix: str, name: str | None, operator: FunctionOperator, retry: Retry[K, V] | None) -> Step:
        node_name = self._named(prefix, name)
        if retry is None:
            return Step(node_name, operator)
        return retried(self._place, node_name, operator, retry, named=name is not None)

    def _keeping(self, step: Step) -> KStream[K, V]:
        place, node = self._place, self._add(step)
        kept = Place(place.graph, node, node.name, place.key_serde, place.value_serde, place.sources, place.rekeyed)
        return KStream(kept)

    def _with_new_values(self, step: Step, values: SerdeOrDefault) -> KStream[K, VR]:
        place, node = self._place, self._add(step, Effect.CHANGES_VALUE)
        return KStream(Place(place.graph, node, node.name, place.key_serde, values, place.sources, place.rekeyed))

    def _rekeyed(self, step: Step, keys: SerdeOrDefault, values: SerdeOrDefault) -> KStream[KR, VR]:
        place, node = self._place, self._add(step, Effect.CHANGES_KEY)
        return KStream(Place(place.graph, node, node.name, keys, values, place.sources, rekeyed=True))

    def _grouped(self, options: Grouped[K, V]) -> Grouped[K, V]:
        """The options with the serdes of types where they have none."""
        place = self._place
        return options.replace(
            key_serde=options.key_serde or passed_on(place.key_serde),
            value_serde=options.value_serde or passed_on(place.value_serde),
        )

    def _add(self, step: Step, effect: Effect = Effect.KEEPS) -> OperatorNode:
        node = OperatorNode(step.name, lambda: step.operator, stores=lambda: step.stores, effect=effect)
        self._place.graph.add(node, self._place.node)
        return node
