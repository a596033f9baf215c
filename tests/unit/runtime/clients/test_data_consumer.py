"""How far the inputs are, where no record tells: behind transaction markers and aborted records."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, Message

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.data_consumer import DataConsumer

LEFT = TopicPartition("left", 0)


def record(offset: int) -> Message:
    return Message(topic=LEFT.topic, partition=LEFT.partition, offset=offset)


def end(offset: int) -> Message:
    error = KafkaError(KafkaError._PARTITION_EOF)
    return Message(topic=LEFT.topic, partition=LEFT.partition, offset=offset, error=error)


class Client:
    """A consumer with batches to give, which knows where its partition ends."""

    def __init__(self) -> None:
        self.batches: list[list[Message]] = []
        self.high = -1

    def poll(self, timeout: float) -> Message | None:
        return self.batches[0].pop(0) if self.batches else None

    def consume(self, count: int, timeout: float) -> list[Message]:
        return self.batches.pop(0)

    def get_watermark_offsets(self, place: Any, *, cached: bool) -> tuple[int, int]:
        return 0, self.high

    def incremental_unassign(self, partitions: Any) -> None:
        pass


class World:
    def __init__(self) -> None:
        self.client = Client()
        self.consumer = DataConsumer(self.client)  # type: ignore[arg-type]

    def fetch(self, *batch: Message, high: int) -> Any:
        self.client.batches.append(list(batch))
        self.client.high = high
        return self.consumer.fetch(0)


def test_end_behind_a_transaction_marker_is_reached_with_the_records_before_it() -> None:
    world = World()
    fetched = world.fetch(record(0), record(1), end(3), high=3)

    assert world.consumer.lag(LEFT) == 0
    assert fetched.ends == {LEFT: 3}


def test_records_beyond_an_end_that_was_reached_before_are_behind() -> None:
    world = World()
    world.fetch(end(3), record(3), high=9)

    assert world.consumer.lag(LEFT) == 5


def test_nothing_but_markers_at_the_start_is_no_lag() -> None:
    world = World()
    world.fetch(end(7), high=7)

    assert world.consumer.lag(LEFT) == 0


def test_records_of_an_open_transaction_are_no_lag_until_they_can_be_read() -> None:
    world = World()
    world.fetch(record(0), end(1), high=5)
    while_open = world.consumer.lag(LEFT)
    world.fetch(record(1), high=9)

    assert while_open == 0
    assert world.consumer.lag(LEFT) == 7


def test_lag_of_a_partition_that_was_given_away_is_not_known() -> None:
    world = World()
    world.fetch(end(7), high=7)
    world.consumer.unassign([LEFT])

    assert world.consumer.lag(LEFT) is None
