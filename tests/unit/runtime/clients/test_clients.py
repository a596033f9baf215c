"""The clients, against an embedded cluster: what is fetched, where partitions stand, and errors in our own words."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError, TaskMigratedError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.admin import ClusterAdmin
from pykstreams.runtime.clients.consumers.data_consumer import DataConsumer
from pykstreams.runtime.clients.consumers.group_consumer import GroupConsumer
from pykstreams.runtime.clients.consumers.messages import Fetched, by_partition
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreConsumer
from pykstreams.runtime.clients.errors import cluster_error
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
from pykstreams.runtime.clients.positions import BEGINNING
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier

SUPPLIER = DefaultKafkaClientSupplier()
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def config_of(address: str, **more: object) -> StreamsConfig:
    return StreamsConfig({"application.id": "shop", "bootstrap.servers": address}, **more)


@pytest.fixture
def config(embedded_cluster: EmbeddedCluster) -> StreamsConfig:
    producer = Producer({"bootstrap.servers": embedded_cluster.bootstrap_servers})
    for place, count in ((P0, 5), (P1, 3)):
        for number in range(count):
            producer.produce(place.topic, key=b"k", value=str(number).encode(), partition=place.partition)
    assert producer.flush(10) == 0
    return config_of(embedded_cluster.bootstrap_servers)


@pytest.fixture
def reader(config: StreamsConfig) -> Iterator[DataConsumer]:
    found = DataConsumer.open(SUPPLIER, config, "reader")
    yield found
    found.close()


def read(reader: DataConsumer, count: int) -> dict[tuple[str, int], list[int | None]]:
    """Fetches until there are so many records; their offsets by partition."""
    found: dict[tuple[str, int], list[int | None]] = {}
    clock = SystemClock()
    deadline = clock.monotonic() + 10
    while sum(map(len, found.values())) < count:
        assert clock.monotonic() < deadline, found
        for place, messages in reader.fetch(0.1).runs.items():
            found.setdefault(place, []).extend(message.offset() for message in messages)
    return found


def test_a_batch_of_events_only_has_no_records() -> None:
    assert by_partition([]) == {}


def test_records_comeby_partition_and_in_order(reader: DataConsumer) -> None:
    reader.assign({P0: BEGINNING, P1: 1})

    assert read(reader, 7) == {P0: [0, 1, 2, 3, 4], P1: [1, 2]}


def test_lag_is_unknown_before_the_first_fetch_and_none_at_the_end(reader: DataConsumer) -> None:
    reader.assign({P0: BEGINNING})
    before = reader.lag(P0)
    read(reader, 5)

    assert before is None
    assert reader.lag(P0) == 0


def test_position_is_where_a_partition_was_taken_up_and_then_behind_what_came(reader: DataConsumer) -> None:
    reader.assign({P0: 2, P1: BEGINNING})
    before = reader.position(P0), reader.position(P1)
    read(reader, 6)

    assert before == (2, None)
    assert (reader.position(P0), reader.position(P1)) == (5, 3)


def test_partition_that_was_taken_away_gives_nothing(reader: DataConsumer) -> None:
    reader.assign({P0: BEGINNING, P1: BEGINNING})
    reader.unassign([P0])

    assert read(reader, 3) == {P1: [0, 1, 2]}


def test_offset_that_does_not_exist_is_reported_and_can_be_left(reader: DataConsumer) -> None:
    reader.assign({P0: 1000})
    clock = SystemClock()
    deadline = clock.monotonic() + 10
    fetched = Fetched()
    while not fetched.lost_position:
        assert clock.monotonic() < deadline
        fetched = reader.fetch(0.1)
    position = reader.position(P0)
    reader.seek(P0, BEGINNING)

    assert (fetched.lost_position, position) == ([P0], 1000)
    assert read(reader, 5) == {P0: [0, 1, 2, 3, 4]}


def test_restore_consumer_tells_positions(config: StreamsConfig) -> None:
    restore = RestoreConsumer.open(SUPPLIER, config, "restore")
    restore.assign({P0: 0, P1: 0})
    positions: dict[TopicPartition, int] = {}
    clock = SystemClock()
    deadline = clock.monotonic() + 10
    while positions != {P0: 5, P1: 3}:
        assert clock.monotonic() < deadline, positions
        positions.update(restore.fetch(0.1).positions)
    restore.close()


def test_restore_consumer_tells_records_of_a_topic_that_comes_later_from_those_of_the_first(
    config: StreamsConfig, embedded_cluster: EmbeddedCluster
) -> None:
    later = TopicPartition("returns", 0)
    producer = Producer({"bootstrap.servers": embedded_cluster.bootstrap_servers})
    producer.produce(later.topic, key=b"k", value=b"later", partition=later.partition)
    assert producer.flush(10) == 0
    restore = RestoreConsumer.open(SUPPLIER, config, "restore")
    restore.assign({P0: 0})
    found: dict[TopicPartition, list[object]] = {}
    more = {P1: 3, later: 0}
    clock = SystemClock()
    deadline = clock.monotonic() + 10
    while sum(map(len, found.values())) < 6:
        assert clock.monotonic() < deadline, found
        for place, messages in restore.fetch(0.1).runs.items():
            found.setdefault(place, []).extend(message.value() for message in messages)
        if more and len(found.get(P0, [])) == 5:
            restore.assign(more)
            more = {}
    restore.close()

    assert found == {P0: [b"0", b"1", b"2", b"3", b"4"], later: [b"later"]}


class Asked:
    """A consumer that notes what it is asked, and knows no topic while it is ``away``."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.away = False

    def list_topics(self, topic: str, timeout: float) -> None:
        self.calls.append(f"look up {topic}")
        if self.away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def incremental_assign(self, partitions: list[Any]) -> None:
        self.calls.append(f"assign {[place.topic for place in partitions]}")


def test_restore_consumer_looks_topics_up_once_before_it_reads_them() -> None:
    """The client asks for the leaders of new topics once a second only."""
    asked = Asked()
    restore = RestoreConsumer(cast("Consumer", asked))

    restore.assign({P0: 0, P1: 0})
    restore.assign({P0: 0, TopicPartition("names", 0): 0})

    assert asked.calls == [
        "look up orders",
        "assign ['orders', 'orders']",
        "look up names",
        "assign ['orders', 'names']",
    ]


def test_restore_consumer_goes_on_when_topics_cannot_be_looked_up(caplog: pytest.LogCaptureFixture) -> None:
    asked = Asked()
    asked.away = True
    restore = RestoreConsumer(cast("Consumer", asked))

    with caplog.at_level(logging.INFO):
        restore.assign({P0: 0, TopicPartition("names", 0): 0})

    assert asked.calls == ["look up names", "assign ['orders', 'names']"]
    assert "where names is was not found out yet: " in caplog.text


def test_restore_consumer_says_what_holds_a_topic_up_once_per_interval(caplog: pytest.LogCaptureFixture) -> None:
    def held_up() -> Message:
        return Message(topic="log", partition=2, error=KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, "no such topic"))

    class Reading(Asked):
        def poll(self, timeout: float) -> Message:
            return held_up()

        def consume(self, count: int, timeout: float) -> list[Message]:
            return [held_up()]

    restore = RestoreConsumer(cast("Consumer", Reading()))
    for _ in range(3):
        assert restore.fetch(0).runs == {}

    assert caplog.messages == [
        "reading log-2 is held up: no such topic (UNKNOWN_TOPIC_OR_PART); the client tries again by itself"
    ]


def test_ends_are_asked_for_in_one_batch(config: StreamsConfig) -> None:
    admin = ClusterAdmin.open(SUPPLIER, config, "admin", SystemClock())

    assert admin.end_offsets([P0, P1]) == {P0: 5, P1: 3}
    assert admin.beginning_offsets([P0]) == {P0: 0}
    assert admin.end_offsets([]) == {}


def test_cluster_that_does_not_answer_is_waited_for_aloud_and_then_given_up(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        admin = ClusterAdmin.open(SUPPLIER, config_of(address, task_timeout_ms=1500), "admin", SystemClock())

        with caplog.at_level(logging.WARNING), pytest.raises(ClusterError) as raised:
            admin.wait_until_reachable()

    assert f"no broker answers at {address}" in caplog.text
    assert str(raised.value).startswith(f"no broker answered at {address} within 1.5 s: ")
    assert str(raised.value).endswith("check bootstrap.servers and that the broker runs, or raise task.timeout.ms")


def test_waiting_for_a_cluster_ends_when_the_application_is_stopped() -> None:
    ClusterAdmin.open(SUPPLIER, config_of("127.0.0.1:1"), "admin", SystemClock()).wait_until_reachable(lambda: True)


def test_commit_of_a_worker_that_was_put_out_says_so() -> None:
    with pytest.raises(TaskMigratedError, match="because this worker is no longer in the group"):
        GroupConsumer._not_committed(KafkaException(KafkaError(KafkaError.UNKNOWN_MEMBER_ID)))


@pytest.mark.parametrize(
    "code", [KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION, KafkaError._TRANSPORT]
)
def test_commit_between_two_rebalances_is_tried_again(code: int) -> None:
    assert GroupConsumer._not_committed(KafkaException(KafkaError(code))) is False


def test_refusal_of_the_cluster_says_what_was_tried() -> None:
    error = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))

    assert str(cluster_error("creating topic 'x'", error)) == (
        "creating topic 'x' failed: Broker: Topic authorization failed (TOPIC_AUTHORIZATION_FAILED)"
    )
