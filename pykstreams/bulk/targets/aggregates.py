"""Aggregates by the application's own operator: it runs over a store in memory, key by key, records in order of time.

The operator is the one of the plan, so initializer, aggregator and merger are the application's, and so is what it
makes of windows and sessions. Nothing is late: each key has an operator of its own, which has seen no later time.

The value of a record travels to the fold as what it is (``carried_values``): in a stream it would have come through
the serde of the grouped stream, which a plan does not tell; what the user's ``value`` gives must be what the aggregator
takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from pykstreams.bulk.application import StorePlace
from pykstreams.bulk.sources.rows import RowParts
from pykstreams.bulk.targets.carried_values import dumps, loads
from pykstreams.bulk.targets.entries import codec_of
from pykstreams.bulk.targets.partitions import row_chooser
from pykstreams.bulk.targets.store_in_memory import OfflineNode, StoreInMemory
from pykstreams.bulk.targets.target import (
    Add,
    EncodedRow,
    EncodeRow,
    FoldOrder,
    FoldRows,
    Refuse,
    RowError,
    checked_time,
    no_key,
)
from pykstreams.core.types import Forward, StreamPartitioner
from pykstreams.core.windows import EmitStrategy
from pykstreams.processors.aggregates.session_aggregate import SessionAggregate
from pykstreams.processors.aggregates.sliding_aggregate import SlidingAggregate
from pykstreams.processors.aggregates.stream_aggregate import StreamAggregate, StreamCount, StreamReduce
from pykstreams.processors.aggregates.table_aggregate import TableAggregate, TableReduce
from pykstreams.processors.aggregates.window_aggregate import WindowAggregate
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.interfaces.store import ChangelogRow
from pykstreams.topology.plan import ProcessorNode

_WINDOWED: Final = (WindowAggregate, SlidingAggregate, SessionAggregate)
_OF_STREAMS: Final = (StreamAggregate, StreamReduce, StreamCount)
_OF_TABLES: Final = (TableAggregate, TableReduce)

_key_of = itemgetter(0)


@dataclass(frozen=True)
class Aggregates:
    """Aggregates of records.

    :param node: the operator that takes the records.
    """

    store: StorePlace
    node: ProcessorNode
    partitioner: StreamPartitioner[object, object] | None = None
    row_key = None
    keeps_last = False

    @property
    def order(self) -> FoldOrder:
        """Windows are kept by time."""
        return FoldOrder.BY_KEY if isinstance(self.node.supplier, _WINDOWED) else FoldOrder.AS_STORED

    def encoder(self, layout: TopicLayout) -> EncodeRow:
        name, encode_key = self.store.name, codec_of(self.store).encode_key
        choose = row_chooser(self.store, self.partitioner, layout)

        def encode(parts: RowParts, add: Add) -> None:
            key, value, timestamp, _, _ = parts
            if key is None:
                raise no_key(name)
            time = checked_time(key, timestamp, name)
            raw = encode_key(key, ())
            add(choose(key, value, raw), raw, time, None if value is None else dumps(value), ())

        return encode

    def folder(self) -> FoldRows:
        decode_key = codec_of(self.store).decode_key
        kept = StoreInMemory(self.store, self.store.task(0))
        supplier: Any = self.node.supplier
        windowed, of_table = isinstance(supplier, _WINDOWED), isinstance(supplier, _OF_TABLES)
        if windowed:
            supplier = replace(supplier, emit_strategy=EmitStrategy.ON_WINDOW_UPDATE, late_child=None)
        supplier = replace(supplier, send_old_values=False)

        def operator() -> Forward:
            node = OfflineNode(self.node.name, kept.context.config, kept.context.task_id, {self.store.name: kept.store})
            process: Forward = supplier.build(node)
            return process

        def fold(rows: Iterator[EncodedRow], refuse: Refuse) -> Iterator[ChangelogRow]:
            process = operator()
            for raw, records in groupby(rows, _key_of):
                key = decode_key(raw, ())
                if windowed:
                    process = operator()
                for record in records:
                    _, time, data, headers = record
                    value = None if data is None else loads(data)
                    kept.at(time, headers)
                    try:
                        process(key, (value, None, True) if of_table else value, time, headers)
                    except RowError as error:
                        refuse(error, record)
                yield from kept.take()

        return fold


def aggregating_node(place: StorePlace, name: str | None) -> ProcessorNode | None:
    """The node whose operator keeps aggregates in that store; ``None`` where there is none.

    :param name: which of several it is.
    """
    found = [
        node
        for node in place.part.nodes.values()
        if isinstance(node, ProcessorNode)
        and isinstance(node.supplier, (*_WINDOWED, *_OF_STREAMS, *_OF_TABLES))
        and node.supplier.store == place.name
        and name in (None, node.name)
    ]
    if len(found) > 1:
        raise RowError(
            f"store {place.name!r} is written by several operators, {[node.name for node in found]}; name the one that "
            'takes these records (node=...), or give the aggregates as they are (content="entries")'
        )
    return found[0] if found else None
