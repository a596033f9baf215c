"""Subscriptions and assignments as every consumer group has them, around the user data of Kafka Streams.

Layout (``ConsumerProtocolSubscription.json`` and ``ConsumerProtocolAssignment.json``, 4.3.1); lengths and counts are
ints, texts have a short in front, and -1 is null::

    subscription                                        assignment
    short   version                                     short   version
    array   of text: topics                             array   of text topic, array of int partition
    bytes   user data                                   bytes   user data
    array   of text topic, array of int partition:
            what is owned (version 1)
    int     generation of what is owned (version 2)
    text    rack (version 3)

What later versions add comes behind, and is not looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.membership.protocol.user_data import UserDataReader, UserDataWriter

_VERSION: Final = 3
_OWNED, _GENERATION, _RACK = 1, 2, 3
_SHORTEST_TEXT = 2
_SHORTEST_TOPIC = _SHORTEST_TEXT + 4
_PARTITION = 4
NO_GENERATION: Final = -1


@dataclass(frozen=True, slots=True)
class ConsumerSubscription:
    """A member's word when it joins.

    :param owned: the partitions that it works on, in the generation that it names.
    """

    topics: frozenset[str]
    user_data: bytes
    owned: frozenset[TopicPartition] = frozenset()
    generation: int = NO_GENERATION
    rack: str | None = None

    def encode(self) -> bytes:
        """Returns the bytes; topics and partitions are in their order."""
        out = UserDataWriter("subscription")
        out.int16(_VERSION)
        out.int32(len(self.topics))
        for topic in sorted(self.topics):
            out.short_text(topic)
        out.blob(self.user_data)
        _write_partitions(out, self.owned)
        out.int32(self.generation)
        out.short_text(self.rack)
        return out.finish()


@dataclass(frozen=True, slots=True)
class ConsumerAssignment:
    """The leader's word to a member."""

    partitions: frozenset[TopicPartition]
    user_data: bytes

    def encode(self) -> bytes:
        """Returns the bytes; partitions are in their order."""
        out = UserDataWriter("assignment")
        out.int16(_VERSION)
        _write_partitions(out, self.partitions)
        out.blob(self.user_data)
        return out.finish()


def decode_consumer_subscription(data: bytes) -> ConsumerSubscription:
    """Reads a subscription of any version; ``MalformedUserDataError``: it is none."""
    found = UserDataReader(data, "subscription of a consumer")
    version = _version(found)
    topics = frozenset(_topic(found) for _ in range(found.count(_SHORTEST_TEXT)))
    user_data = found.optional_blob()
    owned = _partitions(found) if version >= _OWNED else frozenset()
    generation = found.int32() if version >= _GENERATION else NO_GENERATION
    rack = found.short_text() if version >= _RACK else None
    return ConsumerSubscription(topics, user_data, owned, generation, rack)


def decode_consumer_assignment(data: bytes) -> ConsumerAssignment:
    """Reads an assignment of any version; ``MalformedUserDataError``: it is none."""
    found = UserDataReader(data, "assignment of a consumer")
    _version(found)
    partitions = _partitions(found)
    return ConsumerAssignment(partitions, found.optional_blob())


def _version(found: UserDataReader) -> int:
    version = found.int16()
    if version < 0:
        raise found.malformed(f"{version} is no version")
    return version


def _topic(found: UserDataReader) -> str:
    topic = found.short_text()
    if topic is None:
        raise found.malformed("a topic has no name")
    return topic


def _partitions(found: UserDataReader) -> frozenset[TopicPartition]:
    partitions: set[TopicPartition] = set()
    for _ in range(found.count(_SHORTEST_TOPIC)):
        topic = _topic(found)
        for _ in range(found.count(_PARTITION)):
            partition = TopicPartition(topic, found.int32())
            if partition in partitions:
                raise found.malformed(f"{partition} is there twice")
            partitions.add(partition)
    return frozenset(partitions)


def _write_partitions(out: UserDataWriter, partitions: Iterable[TopicPartition]) -> None:
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(partitions):
        by_topic[topic].append(partition)
    out.int32(len(by_topic))
    for topic, numbers in by_topic.items():
        out.short_text(topic)
        out.int32(len(numbers))
        for number in numbers:
            out.int32(number)
