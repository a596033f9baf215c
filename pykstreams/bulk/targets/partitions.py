"""Which task a row belongs to: that of Kafka's partitioner for its serialized key, or of the user's.

The client library hashes one key at a time at 3.8 million a second, murmur2 written with numpy took batches of them at
1.9 to 2.8 million, as keys come as Python's bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pykstreams.bulk.application import StorePlace, tasks_of
from pykstreams.core.errors import StreamsError
from pykstreams.core.types import AnyPartitioner
from pykstreams.core.user_code.functions import describe_function
from pykstreams.runtime.clients.partitioner import partition_for_key
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.topology.placed_stores import placed_stores
from pykstreams.topology.placement.key_placement import KeyPartitioner

ChoosePartition: TypeAlias = Callable[[object, object, bytes], int]
"""(key, value, serialized partition key) -> partition"""


def row_chooser(store: StorePlace, partitioner: AnyPartitioner | None, layout: TopicLayout) -> ChoosePartition:
    """Makes the function that chooses the tasks of a store's rows.

    Without a partitioner that is the one which the source above the store names, or else Kafka's.
    """
    by_key = placed_stores(store.part).get(store.name, partition_for_key)
    return partition_chooser(partitioner, store.serde_topic, tasks_of(layout, store.part), by_key)


def partition_chooser(
    partitioner: AnyPartitioner | None, topic: str, partitions: int, by_key: KeyPartitioner = partition_for_key
) -> ChoosePartition:
    """Makes the function that chooses partitions of a topic.

    A partitioner that returns ``None`` leaves it to ``by_key``, as in Kafka Streams to the default one; several
    partitions are refused, since a row of a store is in one task.
    """
    if partitioner is None:

        def choose_by_hash(key: object, value: object, raw: bytes) -> int:
            return by_key(raw, partitions)

        return choose_by_hash
    chosen_by = partitioner

    def choose(key: object, value: object, raw: bytes) -> int:
        chosen = chosen_by(topic, key, value, partitions)
        if chosen is None:
            return by_key(raw, partitions)
        if not isinstance(chosen, int) or not 0 <= chosen < partitions:
            raise StreamsError(
                f"partitioner {describe_function(chosen_by)} chose partition {chosen!r} for key {key!r}; expected a "
                f"number from 0 to {partitions - 1}"
            )
        return chosen

    return choose
