"""Partitions and offsets, as the clients want them and as they give them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from pykstreams.core.ids import TopicPartition

BEGINNING: int = OFFSET_BEGINNING
END: int = OFFSET_END

CONFIRM_S: Final = 15.0
"""How long brokers must say that a partition ends before an offset that was read or written, until it is believed: one
that was stopped says so before it knows its successor. Longer than the session of a broker, 9 s by default."""

Offsets: TypeAlias = Mapping[TopicPartition, tuple[int, str]]
"""Partition -> next offset to read, and the metadata that is committed with it."""


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """The offsets that a group has committed, as far as they are settled.

    :param offsets: those of the partitions that have one.
    :param unsettled: the partitions whose next offset is in a transaction that is still open.
    """

    offsets: Offsets
    unsettled: frozenset[TopicPartition] = frozenset()


class OffsetReader(Protocol):
    """The methods of an administrative client that ask leaders for the ends of partitions."""

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> Mapping[TopicPartition, int]: ...

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> Mapping[TopicPartition, int]: ...


def place_of(message: Message) -> TopicPartition:
    partition = message.partition()
    return TopicPartition(message.topic() or "?", -1 if partition is None else partition)


def at_positions(positions: Mapping[TopicPartition, int]) -> list[KafkaTopicPartition]:
    """Partitions with offsets, as the client wants them."""
    return [KafkaTopicPartition(place.topic, place.partition, offset) for place, offset in positions.items()]


def without_positions(partitions: Iterable[TopicPartition]) -> list[KafkaTopicPartition]:
    """Partitions, as the client wants them."""
    return [KafkaTopicPartition(place.topic, place.partition) for place in partitions]


def ours(partitions: Iterable[KafkaTopicPartition]) -> list[TopicPartition]:
    return [TopicPartition(place.topic, place.partition) for place in partitions]
