"""How far the inputs are, where no record tells: behind transaction markers and aborted records."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.consumers.data_consumer import ENDS_AFTER_S, DataConsumer
from pykstreams.testing import EmbeddedCluster
from tests.unit.runtime.cluster_fakes import FakeClock

LEFT = TopicPartition("left", 0)


def record(offset: int) -> Message:
    return Message(topic=LEFT.topic, partition=LEFT.partition, offset=offset)


def end(offset: int) -> Message:
    error = KafkaError(KafkaError._PARTITION_EOF)
    return Message(topic=LEFT.topic, partition=LEFT.partition, offset=offset, error=error)


class FakeConsumerClient(Consumer):
    """A consumer with batches to give, which knows where its partition ends.

    It is a ``Consumer`` for the types only: nothing of it is made.
    """

    def __init__(self) -> None:
        self.batches: list[list[Message]] = []
        self.high = -1
        self.knows_partition = True
        self.polling_thread = threading.get_ident()

    def poll(self, timeout: float = -1) -> Message | None:
        return self.batches[0].pop(0) if self.batches else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        return self.batches.pop(0)

    def get_watermark_offsets(self, partition: Any, timeout: float = -1, cached: bool = False) -> tuple[int, int]:
        assert cached
        assert threading.get_ident() == self.polling_thread, "it waits for as long as the client waits for messages"
        if not self.knows_partition:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        return 0, self.high

    def incremental_assign(self, partitions: Any) -> None:
        pass

    def incremental_unassign(self, partitions: Any) -> None:
        pass


class ConsumerBench:
    """A data consumer over a fake client."""

    def __init__(self) -> None:
        self.client = FakeConsumerClient()
        self.clock = FakeClock()
        self.consumer = DataConsumer(self.client, self.clock)

    def fetch(self, *batch: Message, high: int) -> Any:
        self.client.batches.append(list(batch))
        self.client.high = high
        return self.consumer.fetch(0)


def test_end_behind_a_transaction_marker_is_reached_with_the_records_before_it() -> None:
    bench = ConsumerBench()
    fetched = bench.fetch(record(0), record(1), end(3), high=3)

    assert bench.consumer.lag(LEFT) == 0
    assert fetched.ends == {LEFT: 3}


def test_records_beyond_an_end_that_was_reached_before_are_behind() -> None:
    bench = ConsumerBench()
    bench.fetch(end(3), record(3), high=9)

    assert bench.consumer.lag(LEFT) == 5


def test_nothing_but_markers_at_the_start_is_no_lag() -> None:
    bench = ConsumerBench()
    bench.fetch(end(7), high=7)

    assert bench.consumer.lag(LEFT) == 0


def test_records_of_an_open_transaction_are_no_lag_until_they_can_be_read() -> None:
    bench = ConsumerBench()
    bench.fetch(record(0), end(1), high=5)
    while_open = bench.consumer.lag(LEFT)
    bench.fetch(record(1), high=9)

    assert while_open == 0
    assert bench.consumer.lag(LEFT) == 7


def test_lag_of_a_partition_that_was_given_away_is_not_known() -> None:
    bench = ConsumerBench()
    bench.fetch(end(7), high=7)
    bench.consumer.unassign([LEFT])

    assert bench.consumer.lag(LEFT) is None


def test_another_thread_that_asks_for_the_end_of_a_partition_never_asks_the_client() -> None:
    bench = ConsumerBench()
    bench.fetch(record(0), high=5)

    with ThreadPoolExecutor(1) as others:
        assert others.submit(bench.consumer.end, LEFT).result() == 5


def test_ends_for_other_threads_are_noted_once_in_a_while() -> None:
    bench = ConsumerBench()
    bench.fetch(record(0), high=5)
    bench.fetch(record(1), high=6)
    soon = bench.consumer.end(LEFT)
    bench.clock.advance(ENDS_AFTER_S)
    bench.fetch(record(2), high=7)

    assert soon == 5
    assert bench.consumer.end(LEFT) == 7


def test_end_of_a_partition_of_which_everything_was_read_is_known_at_once() -> None:
    bench = ConsumerBench()
    bench.fetch(record(0), high=1)
    bench.fetch(record(1), end(2), high=2)

    assert bench.consumer.end(LEFT) == 2


def test_end_of_a_partition_that_was_given_away_is_not_known() -> None:
    bench = ConsumerBench()
    bench.fetch(record(0), high=5)
    bench.consumer.unassign([LEFT])

    assert bench.consumer.end(LEFT) is None


def test_where_reading_a_partition_began_is_where_it_was_placed() -> None:
    bench = ConsumerBench()
    bench.consumer.assign({LEFT: 3})
    bench.fetch(record(5), high=7)

    assert bench.consumer.start(LEFT) == 3


def test_where_reading_from_an_end_of_a_partition_began_is_known_when_something_came() -> None:
    bench = ConsumerBench()
    before = bench.consumer.start(LEFT)
    bench.fetch(record(41), record(42), high=50)
    bench.fetch(record(43), end(44), high=44)

    assert (before, bench.consumer.start(LEFT)) == (None, 41)


def test_where_reading_began_is_the_end_of_a_partition_that_had_nothing() -> None:
    bench = ConsumerBench()
    bench.fetch(end(7), high=7)
    bench.fetch(record(7), high=8)

    assert bench.consumer.start(LEFT) == 7


def test_where_reading_began_is_forgotten_with_the_partition() -> None:
    bench = ConsumerBench()
    bench.fetch(record(41), high=50)
    bench.consumer.unassign([LEFT])

    assert bench.consumer.start(LEFT) is None


def test_records_of_a_topic_that_was_given_away_are_not_taken_for_those_of_the_one_that_is_left() -> None:
    """The client may have some of them still."""
    bench, right = ConsumerBench(), TopicPartition("right", 0)
    bench.consumer.assign({LEFT: 0, right: 0})
    bench.consumer.unassign([right])

    fetched = bench.fetch(record(0), Message(topic=right.topic, partition=right.partition, offset=4), high=2)

    assert list(fetched.runs) == [LEFT, right]


def test_records_come_also_where_the_client_does_not_know_the_end_of_their_partition() -> None:
    bench = ConsumerBench()
    bench.client.knows_partition = False
    fetched = bench.fetch(record(0), record(1), high=2)

    assert list(fetched.runs) == [LEFT]
    assert bench.consumer.lag(LEFT) is None
    assert bench.consumer.end(LEFT) == 2


@pytest.fixture
def reader(embedded_cluster: EmbeddedCluster) -> Iterator[DataConsumer]:
    """One that has read a record, which is all there is, of a real client: fakes keep no pause of their own."""
    embedded_cluster.topic(LEFT.topic, str, str).produce("a", "1", partition=LEFT.partition)
    settings = {"bootstrap.servers": embedded_cluster.bootstrap_servers, "group.id": "any", "log_level": 0}
    made = DataConsumer(Consumer(settings))
    made.assign({LEFT: 0})
    assert comes(made)
    yield made
    made.close()


def comes(reader: DataConsumer) -> bool:
    """Whether a record comes in the time in which the client has asked its broker several times."""
    return any(reader.fetch(0.1).runs for _ in range(30))


def test_partition_that_is_taken_up_again_is_read_also_if_it_was_paused_when_it_was_given_away(
    reader: DataConsumer,
) -> None:
    reader.pause([LEFT])
    reader.unassign([LEFT])

    reader.assign({LEFT: 0})

    assert comes(reader)


def test_paused_partition_stays_so_where_it_is_read_from_another_offset(reader: DataConsumer) -> None:
    reader.pause([LEFT])

    reader.seek(LEFT, 0)

    assert not comes(reader)
    reader.resume([LEFT])
    assert comes(reader)
