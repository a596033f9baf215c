"""Stores of joins by reference from the rows of the left table: subscriptions of a foreign-key join, repartitioned
rows of a one-to-many or non-key join.

The rows go the way that they went when they were new: the application's own operator sends them (it knows extractor,
instruction and hash), the sink of the plan chooses the partition, and the operator behind the topic keeps them. So what
such a store looks like is not said here again::

    SubscriptionSend | RepartitionRows | RepartitionMapped ── sink ── topic ── source ──
    SubscriptionReceive | KeepRepartitioned | KeepMapped

A subscription of a row that never changed its foreign key is what the job writes for every row: a snapshot does not
tell of changes. Where the join is an inner one the instruction of both differs, and nobody reads it from a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from pykstreams.bulk.application import StorePlace, tasks_of
from pykstreams.bulk.sources.rows import RowParts
from pykstreams.bulk.targets.entries import newest_of_keys
from pykstreams.bulk.targets.partitions import partition_chooser
from pykstreams.bulk.targets.store_in_memory import OfflineNode, StoreInMemory
from pykstreams.bulk.targets.target import Add, EncodeRow, FoldOrder, FoldRows, RowError, checked_time, no_key
from pykstreams.core.ids import TaskId
from pykstreams.core.types import Forward, Headers, StreamPartitioner
from pykstreams.processors.foreign_keys.foreign_key_join import SubscriptionReceive, SubscriptionSend
from pykstreams.processors.foreign_keys.mapped_rows import KeepMapped, RepartitionMapped
from pykstreams.processors.foreign_keys.repartitioned_rows import KeepRepartitioned, RepartitionRows
from pykstreams.runtime.clients.partitioner import partition_for_key
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.serdes.base import bind_deserializer, bind_serializer
from pykstreams.serdes.defaults import or_default
from pykstreams.state.interfaces.store import ChangelogRow
from pykstreams.topology.placed_stores import placed_nodes
from pykstreams.topology.placement.reference_partitioner import ReferencePartitioner
from pykstreams.topology.plan import ProcessorNode, SinkNode, SourceNode, SubtopologyPlan

_SENDS: Final = (SubscriptionSend, RepartitionRows, RepartitionMapped)
_KEEPS: Final = (SubscriptionReceive, KeepRepartitioned, KeepMapped)

Choose = Callable[[object, object, bytes], int]


class Way(NamedTuple):
    """The way of a row from one sub-topology to the store in another."""

    left_part: SubtopologyPlan
    send: ProcessorNode
    sink: SinkNode
    source: SourceNode
    keep: ProcessorNode


@dataclass(frozen=True)
class LeftTableRows:
    """Rows of the left table: key, value and timestamp as they are in that table.

    :param latest: whether a row may be there several times.
    :param partitioner: of the left table.
    """

    store: StorePlace
    way: Way
    latest: bool
    partitioner: StreamPartitioner[object, object] | None = None
    keeps_last = True
    order = FoldOrder.AS_STORED

    @property
    def row_key(self) -> Callable[[], Callable[[object], bytes]]:
        """Rows that refer to different rows lie under different keys, also if they are versions of one row."""
        return self._row_key

    def encoder(self, layout: TopicLayout) -> EncodeRow:
        name, send = self.store.name, self.way.send
        sent: list[tuple[int, ChangelogRow]] = []
        hand_over = self._receiver(layout, sent)
        partitions = tasks_of(layout, self.way.left_part)
        encode_key, choose = self._left_key(partitions)
        operators: dict[int, Forward] = {}

        def operator(partition: int) -> Forward:
            node = self._node(send, partition, hand_over)
            built: Forward = cast("Any", send.supplier).build(node)
            operators[partition] = built
            return built

        def encode(parts: RowParts, add: Add) -> None:
            key, value, timestamp, _, _ = parts
            if key is None:
                raise no_key(name)
            time = checked_time(key, timestamp, name)
            partition = choose(key, value, encode_key(key, ()))
            sent.clear()
            process = operators.get(partition) or operator(partition)
            process(key, (value, None, True), time, ())
            for at, (raw, data, row_time, headers) in sent:
                add(at, raw, row_time, data, headers)

        return encode

    def folder(self) -> FoldRows:
        return newest_of_keys(self.store.name, self.latest)

    def _receiver(self, layout: TopicLayout, sent: list[tuple[int, ChangelogRow]]) -> Forward:
        """Receives what the sending operator forwards, and notes what the store's changelog would hold, and where."""
        _, _, sink, source, keep = self.way
        config = self.store.application.config
        topic = source.topics[0]
        encode_key = bind_serializer(or_default(sink.key_serializer, lambda: config.default_key_serde), topic)
        decode_key = bind_deserializer(or_default(source.key_deserializer, lambda: config.default_key_serde), topic)
        partitioner = sink.partitioner
        if isinstance(partitioner, ReferencePartitioner):
            partitioner = partitioner.over_default(lambda: config.default_key_serde, partition_for_key)
        choose = partition_chooser(partitioner, topic, layout.partitions[topic])
        process, take = self._keeper(keep)

        def receive(key: object, value: object, timestamp: int, headers: Headers) -> None:
            raw = encode_key(key, headers)
            if raw is None:  # a left join asks without a foreign key, too, and nothing is kept of that
                return
            partition = choose(key, value, raw)
            process(decode_key(raw, headers), value, timestamp, headers)
            sent.extend((partition, row) for row in take())

        return receive

    def _keeper(self, keep: ProcessorNode) -> tuple[Forward, Callable[[], list[ChangelogRow]]]:
        """Makes the function that keeps a row that has arrived, and the one that takes the changelog rows of that."""
        if isinstance(keep.supplier, SubscriptionReceive):
            noted = _NotedSubscriptions()
            receiving = self._node(keep, 0, None, noted)
            return keep.supplier.build(cast("Any", receiving)), noted.take
        kept = StoreInMemory(self.store, self.store.task(0))
        node = self._node(keep, 0, None, kept.store)
        built: Forward = cast("Any", keep.supplier).build(node)

        def process(key: object, value: object, timestamp: int, headers: Headers) -> None:
            kept.at(timestamp, headers)
            built(key, value, timestamp, headers)

        return process, kept.take

    def _node(self, node: ProcessorNode, partition: int, forward: Forward | None, store: object = None) -> OfflineNode:
        config = self.store.application.config
        part = self.store.part if store is not None else self.way.left_part
        stores = {} if store is None else {self.store.name: store}
        return OfflineNode(node.name, config, TaskId(part.id, partition), stores, forward, drops=True)

    def _row_key(self) -> Callable[[object], bytes]:
        if not isinstance(self.way.send.supplier, SubscriptionSend):
            return lambda key: repr(key).encode()  # nobody needs the bytes of keys that are a part of others
        encode_key, _ = self._left_key(1)
        return lambda key: cast("bytes", encode_key(key, ()))

    def _left_key(self, partitions: int) -> tuple[Any, Choose]:
        """How rows of the left table are partitioned, of which subscriptions keep a note."""
        supplier = self.way.send.supplier
        if not isinstance(supplier, SubscriptionSend):
            return (lambda key, headers: b""), (lambda key, value, raw: 0)
        node = self._node(self.way.send, 0, None)
        by_key = placed_nodes(self.way.left_part).get(self.way.send.name, partition_for_key)
        choose = partition_chooser(self.partitioner, self.way.send.name, partitions, by_key)
        return supplier.serdes.encode_primary_key(cast("Any", node)), choose


class _NotedSubscriptions:
    """Stands for the store of subscriptions, of which the operator says itself which bytes it puts."""

    def __init__(self) -> None:
        self._rows: list[ChangelogRow] = []

    def put_subscription(self, key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        self._rows.append((key, value, timestamp, headers))

    def subscriptions(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Nothing: no right row changes here, so nobody is answered."""
        return iter(())

    def take(self) -> list[ChangelogRow]:
        """Removes and returns the rows that were put since the last call."""
        rows, self._rows = self._rows, []
        return rows


def way_of(place: StorePlace) -> Way | None:
    """The way to a store that holds what a left table sends; ``None`` for any other store."""
    keep = next(
        (
            node
            for node in place.part.nodes.values()
            if isinstance(node, ProcessorNode)
            and isinstance(node.supplier, _KEEPS)
            and node.supplier.store == place.name
        ),
        None,
    )
    if keep is None:
        return None
    source = next(node for node in place.part.sources if keep.name in node.children)
    for part in place.application.plan.subtopologies:
        for node in part.nodes.values():
            if not isinstance(node, ProcessorNode) or not isinstance(node.supplier, _SENDS):
                continue
            for child in node.children:
                sink = part.nodes[child]
                if isinstance(sink, SinkNode) and sink.topic in source.topics:
                    return Way(part, node, sink, source, keep)
    raise RowError(f"nothing in the plan writes to {source.topics[0]!r}, from which store {place.name!r} is kept")
