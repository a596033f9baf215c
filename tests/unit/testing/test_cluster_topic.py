"""Typed topics of a cluster: produce and read from outside, with keys where murmur2 puts them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pykstreams import KafkaStreams, StreamsBuilder
from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import ClusterError
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.record import ConsumerRecord
from pykstreams.serdes import Serdes
from pykstreams.testing import PARTITIONS, ClusterTopic, EmbeddedCluster, TestRecord


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


def test_typed_records_are_read_as_they_were_produced(embedded_cluster: EmbeddedCluster) -> None:
    orders = embedded_cluster.topic("orders", str, Order)
    orders.produce("1", Order("Ann", 250), timestamp=1234, headers=[("by", b"web")])

    (record,) = orders.read_records(1)

    assert record == TestRecord("1", Order("Ann", 250), timestamp=1234, headers=[("by", b"web")])


def test_keys_lie_where_murmur2_puts_them(embedded_cluster: EmbeddedCluster) -> None:
    keys = [f"key-{number}" for number in range(12)]
    embedded_cluster.topic("orders", str, int).produce_all((key, 1) for key in keys)
    consumer = Consumer({"bootstrap.servers": embedded_cluster.bootstrap_servers, "group.id": "g", "log_level": 0})
    consumer.assign([TopicPartition("orders", number, 0) for number in range(PARTITIONS)])
    messages = consumer.consume(len(keys), 30)
    consumer.close()

    found = {message.key(): message.partition() for message in messages}

    assert found == {key.encode(): partition_for_key(key.encode(), PARTITIONS) for key in keys}


def test_reading_goes_on_where_it_ended(embedded_cluster: EmbeddedCluster) -> None:
    topic = embedded_cluster.topic("numbers", Serdes.string(), int)
    topic.produce_all([("a", 1), ("a", 2), ("a", 3)])

    assert topic.read_key_values(1) == [("a", 1)]
    assert topic.read_key_values(2) == [("a", 2), ("a", 3)]
    assert embedded_cluster.topic("numbers", str, int).read_key_values(1) == [("a", 1)]
    assert topic.read_key_values(0) == []


class Ended:
    """Records of a topic to which nobody writes any more; a reader who wants more than there are waits in vain."""

    def __init__(self, *numbers: int) -> None:
        self._records = [
            ConsumerRecord("numbers", 0, i, 5, b"a", number.to_bytes(8, "big"), ()) for i, number in enumerate(numbers)
        ]

    def read(
        self,
        topic: str,
        positions: Mapping[int, int],
        has_enough: Callable[[ConsumerRecord], bool],
        timeout_s: float,
    ) -> None:
        for record in self._records[positions.get(0, 0) :]:
            if has_enough(record):
                return


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> ClusterTopic[str, int]:
    topic = ClusterTopic("nowhere:1", "numbers", str, int)
    monkeypatch.setattr(topic, "_records", Ended(1, 2))
    return topic


def test_records_that_do_not_come_are_told_with_those_that_did_and_can_be_read_again(
    ended: ClusterTopic[str, int],
) -> None:
    with pytest.raises(AssertionError, match=r"'numbers' has 2 further records and not 3 after 30 s:\n  TestRecord\("):
        ended.read_key_values(3)
    assert ended.read_key_values(2) == [("a", 1), ("a", 2)]
    with pytest.raises(AssertionError, match=r"'numbers' has 0 further records and not 1 after 1 s: none"):
        ended.read_records(1, timeout=timedelta(seconds=1))


def test_a_table_is_waited_for(embedded_cluster: EmbeddedCluster) -> None:
    topic = embedded_cluster.topic("counts", str, int)
    topic.produce_all([("a", 1), ("b", 1), ("a", 2)])

    assert topic.read_until({"a": 2, "b": 1}) == {"a": 2, "b": 1}


def test_a_row_that_was_deleted_is_none_of_the_table(embedded_cluster: EmbeddedCluster) -> None:
    topic = embedded_cluster.topic("deletions", str, int)
    topic.produce_all([("a", 1), ("b", 1), ("b", None)])

    assert topic.read_until({"a": 1, "b": None}) == {"a": 1}
    topic.produce_all([("a", None), ("b", 2)])
    assert topic.read_until({"b": 2}) == {"b": 2}


def test_a_table_that_does_not_become_what_is_wanted_is_told_and_can_be_read_again(
    ended: ClusterTopic[str, int],
) -> None:
    with pytest.raises(AssertionError, match=r"'numbers' has {'a': 2} and not {'a': 4} after"):
        ended.read_until({"a": 4})
    assert ended.read_until({"a": 2}) == {"a": 2}


def test_a_record_goes_to_the_partition_that_is_given(embedded_cluster: EmbeddedCluster) -> None:
    topic = embedded_cluster.topic("orders", str, int)
    for number in range(PARTITIONS):
        topic.produce(None, number, partition=number)

    assert sorted(value for _, value in topic.read_key_values(PARTITIONS)) == list(range(PARTITIONS))


def test_a_timestamp_that_clients_replace_by_now_is_refused(embedded_cluster: EmbeddedCluster) -> None:
    with pytest.raises(ValueError, match="timestamp of a record is 0; clients take none before 1 ms after the epoch"):
        embedded_cluster.topic("orders", str, int).produce("a", 1, timestamp=0)


@pytest.mark.slow
def test_an_application_is_tested_from_outside(embedded_cluster: EmbeddedCluster, tmp_path: Path) -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", str, Order)
    orders.map_values(lambda order: order.cents).to("cents")  # no type for a lambda: the default
    lines, cents = embedded_cluster.topic("orders", str, Order), embedded_cluster.topic("cents", str, int)
    config = {
        "application.id": "shop",
        "bootstrap.servers": embedded_cluster.bootstrap_servers,
        "state.dir": str(tmp_path),
        "default.value.serde": Serdes.long(),
    }

    with KafkaStreams(builder.build(), config):
        lines.produce("1", Order("Ann", 250))

        assert cents.read_key_values(1) == [("1", 250)]


def test_clients_of_topics_end_before_the_brokers_of_an_embedded_cluster(capfd: pytest.CaptureFixture[str]) -> None:
    """The client library says on standard error what it cannot reach, of clients of other tests as well."""
    poll_of_a_client_that_reaches_nobody = Producer({"bootstrap.servers": "localhost:1", "log_level": 0}).poll
    cluster = EmbeddedCluster()
    topic = cluster.topic("numbers", str, int)
    address = cluster.bootstrap_servers
    topic.produce("a", 1)

    cluster.close()
    with pytest.raises(ClusterError):
        cluster.topics()
    gc.collect()
    clock = SystemClock()
    until = clock.monotonic() + 1.5
    while clock.monotonic() < until:  # time for whoever was left
        poll_of_a_client_that_reaches_nobody(0.1)

    assert address not in capfd.readouterr().err
