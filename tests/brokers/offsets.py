"""Committed offsets of a group, as tests ask for them."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition

from pykstreams.core.ids import TopicPartition as Place
from pykstreams.runtime.clients import committed_offsets


def committed(consumer: Consumer, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    """As ``Consumer.committed``, which fails at times on metadata that another client has committed."""
    found = committed_offsets.committed(consumer, [Place(one.topic, one.partition) for one in partitions], 60)
    return [
        TopicPartition(one.topic, one.partition, found.get(Place(one.topic, one.partition), (OFFSET_INVALID, ""))[0])
        for one in partitions
    ]
