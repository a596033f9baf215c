"""A partition that is read between two offsets."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from pykstreams import StreamsConfig
from pykstreams.core.errors import ClusterError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.consumers.snapshot import read_partition
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier
from pykstreams.testing import MockClock

PLACE = TopicPartition("rows", 0)
CONFIG = StreamsConfig({"application.id": "shop", "bootstrap.servers": "nowhere:1", "request.timeout.ms": 1000})


class FakeConsumer(Consumer):
    """A consumer that gives batches, and then nothing; it waits on the clock. For the types only a ``Consumer``."""

    def __init__(self, clock: MockClock, batches: list[range]) -> None:
        self.clock = clock
        self.batches = batches
        self.next_offset = 0

    def assign(self, partitions: Any) -> None:
        [place] = partitions
        self.next_offset = place.offset

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        self.clock.advance(round(timeout * 1000))
        if not self.batches:
            return []
        offsets = self.batches.pop(0)
        self.next_offset = offsets.stop
        return [Message(topic=PLACE.topic, partition=PLACE.partition, offset=offset) for offset in offsets]

    def position(self, partitions: Any) -> list[KafkaTopicPartition]:
        return [KafkaTopicPartition(PLACE.topic, PLACE.partition, self.next_offset)]

    def close(self) -> None:
        pass


class Supplier(DefaultKafkaClientSupplier):
    """Supplies that one consumer."""

    def __init__(self, consumer: FakeConsumer) -> None:
        self.consumer = consumer

    def get_restore_consumer(self, config: Any) -> Consumer:
        return self.consumer


def test_the_time_that_a_reader_takes_is_no_silence_of_the_brokers() -> None:
    clock = MockClock()
    consumer = FakeConsumer(clock, [range(0, 3), range(3, 3), range(3, 5)])
    found = []
    for batch in read_partition(Supplier(consumer), CONFIG, PLACE, 0, 5, clock):
        found += [message.offset() for message in batch]
        clock.advance(3_600_000)

    assert found == [0, 1, 2, 3, 4]


def test_brokers_that_give_nothing_end_the_reading_and_it_is_said_how_far_it_came() -> None:
    clock = MockClock()
    reading = read_partition(Supplier(FakeConsumer(clock, [range(0, 3)])), CONFIG, PLACE, 0, 5, clock)
    next(reading)
    started = clock.monotonic()

    with pytest.raises(ClusterError, match=r"rows-0 gave nothing for .* s: read up to offset 3 of 5"):
        next(reading)
    assert clock.monotonic() - started <= CONFIG.request_timeout_ms / 1000 + 2
