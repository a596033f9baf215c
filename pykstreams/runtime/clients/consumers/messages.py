"""Batches of messages: sorted by partition, and freed of the events that come among them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, Protocol, cast

from confluent_kafka import Consumer, KafkaError, Message

from pykstreams.core.errors import ClusterError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.errors import Meaning, meaning_of
from pykstreams.runtime.clients.positions import place_of

log = logging.getLogger(__name__)

_UNKNOWN_TOPIC = frozenset((KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION))
"""Of a topic that was just made, too, and of one whose new leader has just started; whether a topic is really gone is
found out by ``TopicWatch``."""

_UNKNOWN_FAILURE: Final = KafkaError.UNKNOWN
"""A broker could not do it, and cannot say why (``UNKNOWN_SERVER_ERROR``): nothing is lost by asking it again
(``FetchCollector.handleInitializeErrors``, 4.3.1)."""

message_error = Message.error
_message_topic = Message.topic
_message_partition = Message.partition


class RecordMessage(Protocol):
    """A message that is a record, and so has a place, with the methods of ``confluent_kafka.Message`` that tasks call.

    Invariant: those of a client have come through ``by_partition``; ``RawMessage`` comes from no broker.
    """

    def topic(self) -> str: ...

    def partition(self) -> int: ...

    def offset(self) -> int: ...

    def timestamp(self) -> tuple[int, int]:
        """Kind (1: set by the producer) and time in ms."""
        ...

    def key(self) -> bytes | None: ...

    def value(self) -> bytes | None: ...

    def headers(self) -> list[tuple[str, bytes | None]] | None: ...


HELD_UP: Final = "reading %s is held up: %s; the client tries again by itself"
"""The warning for a partition, with the reason."""


@dataclass(slots=True)
class Fetched:
    """The messages and events of one fetch."""

    runs: dict[tuple[str, int], list[RecordMessage]] = field(default_factory=dict)
    lost_position: list[TopicPartition] = field(default_factory=list)
    """Partitions whose next offset does not exist (any more); they stand still until ``seek``."""
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    """Partitions of which everything was read that may be read now, and the position behind it."""
    held_up: dict[str, str] = field(default_factory=dict)
    """Partitions that cannot be read for the moment, and why; the client tries again by itself."""


def taken(consumer: Consumer, timeout_s: float, count: int) -> list[Message]:
    """Waits for the first message, and takes at once whatever else is there, ``count`` in all."""
    first = consumer.poll(timeout_s)
    return [] if first is None else [first, *consumer.consume(count - 1, 0)]


def without_events(batch: list[Message], fetched: Fetched) -> list[Message]:
    """Removes everything that is no record, and notes it; raises what cannot be waited out."""
    records: list[Message] = []
    for message in batch:
        error = message.error()
        if error is None:
            records.append(message)
            continue
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            fetched.ends[place_of(message)] = message.offset() or 0
            continue
        if code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            fetched.lost_position.append(place_of(message))
        elif code in _UNKNOWN_TOPIC or code == _UNKNOWN_FAILURE or meaning_of(error) is Meaning.PASSING:
            fetched.held_up[_where(message)] = f"{error.str()} ({error.name()})"
        else:
            raise ClusterError(f"reading {place_of(message)} failed: {error.str()} ({error.name()})")
    return records


def by_partition(batch: Sequence[Message], only_topic: str | None = None) -> dict[tuple[str, int], list[RecordMessage]]:
    """Sorts messages by partition; they come in long runs, so the comparing is left to C.

    :param only_topic: the topic of all of them, where it is known, so that they need not be asked.
    """
    runs: dict[Any, list[Any]] = {}
    if not batch:
        return runs
    topics: list[Any]
    if only_topic is None:
        topics = list(map(_message_topic, batch))  # typed optional, set on data
    else:
        topics = [only_topic] * len(batch)
    partitions: list[Any] = list(map(_message_partition, batch))
    if topics.count(topics[0]) == partitions.count(partitions[0]) == len(batch):  # a third faster when it is one run
        return {(topics[0], partitions[0]): cast("list[RecordMessage]", list(batch))}
    start = 0
    for place, run in groupby(zip(topics, partitions, strict=True)):
        end = start + len(list(run))
        known = runs.get(place)
        if known is None:
            runs[place] = list(batch[start:end])
        else:
            known.extend(batch[start:end])
        start = end
    return runs


def _where(message: Message) -> str:
    """The partition that an error is about; most of them are about a broker."""
    return "the inputs" if message.topic() is None else str(place_of(message))
