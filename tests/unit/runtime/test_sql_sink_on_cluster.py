"""A worker with a sink in a database on an embedded cluster: it waits for the database, then commits to Kafka."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pykstreams import Consumed, KafkaStreams, Serdes, SqlSink, StreamsBuilder
from pykstreams.core.clock import SystemClock
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
from pykstreams.runtime.streams import GroupMembershipOperation
from tests.brokers.offsets import committed
from tests.brokers.quick_cluster import SHORT_SESSION

TEXT = Serdes.string()
FIRST, SECOND = [str(i) for i in range(200)], [str(i) for i in range(200, 300)]


def send(cluster: EmbeddedCluster, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for value in values:
        producer.produce("in", value.encode(), key=value.encode())
    assert producer.flush(10) == 0


def offsets(cluster: EmbeddedCluster) -> int:
    """How many records the group has committed."""
    with closing(Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "effects"})) as consumer:
        return sum(max(0, one.offset) for one in committed(consumer, [TopicPartition("in", i) for i in range(4)]))


def wait_until(holds: Callable[[], bool]) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + 60
    while not holds():
        assert clock.monotonic() < deadline
        clock.sleep(0.02)


def rows(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as database:
        return sorted((row[0] for row in database.execute("select value from effects")), key=int)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("begin immediate")
        yield
        database.execute("rollback")


@pytest.mark.nightly
def test_rows_are_written_once_and_offsets_committed_behind_them(
    embedded_cluster: EmbeddedCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "effects.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("create table effects (value text)")
    builder = StreamsBuilder()
    sink: SqlSink[str, str] = SqlSink(
        f"sqlite:///{file}?timeout=0.1",
        "insert into effects values (:value)",
        row=lambda key, value: {"value": value},
        batch_size=20,
    )
    builder.stream("in", Consumed(key_serde=TEXT, value_serde=TEXT)).to_sql(sink, name="effects")
    config = {
        "application.id": "effects",
        "bootstrap.servers": embedded_cluster.bootstrap_servers,
        "state.dir": str(tmp_path),
        "commit.interval.ms": 100,
        "retry.backoff.ms": 10,
        **SHORT_SESSION,
    }
    embedded_cluster.create_topics("in")
    send(embedded_cluster, FIRST)
    with locked(file), caplog.at_level(logging.WARNING, "pykstreams.processors.sinks"):
        first = KafkaStreams(builder.build(), config)
        first.start()
        wait_until(lambda: "the database is away" in caplog.text)

        assert (offsets(embedded_cluster), rows(file)) == (0, [])

    wait_until(lambda: rows(file) == FIRST)
    first.close(30_000, group_membership=GroupMembershipOperation.LEAVE_GROUP)

    assert offsets(embedded_cluster) == len(FIRST)

    second = KafkaStreams(builder.build(), config)
    second.start()
    send(embedded_cluster, SECOND)
    wait_until(lambda: len(rows(file)) >= len(FIRST) + len(SECOND))
    second.close(30_000, group_membership=GroupMembershipOperation.LEAVE_GROUP)

    assert rows(file) == [*FIRST, *SECOND]
