"""A job that reads topics as snapshots and writes changelogs, on a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from pykstreams import (
    Consumed,
    Grouped,
    LogAndContinueProcessingExceptionHandler,
    Materialized,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    Topology,
)
from pykstreams.bulk.sources.topic_parts import topic_parts
from pykstreams.core.errors import BootstrapError, ClusterError, ConfigError, MissingSourceTopicError
from pykstreams.serdes import JsonSerde
from pykstreams.spark import BootstrapReport, KafkaTopic, StoreBootstrap, backfill, bootstrap
from tests.brokers.producers import producer_in_order
from tests.integration.conftest import MakeTopic

PARTITIONS, RECORDS, KEYS = 3, 900, 40


@pytest.fixture
def orders(make_topic: MakeTopic, bootstrap_servers: str) -> str:
    """A topic with several records a key, some of which delete."""
    topic = make_topic("orders", partitions=PARTITIONS, retention_ms=-1)  # its records are of 1970
    producer = producer_in_order(bootstrap_servers, {"partitioner": "murmur2_random"})
    for number in range(RECORDS):
        value = None if number % 17 == 0 else json.dumps({"n": number})
        producer.produce(topic, value, f"k{number % KEYS}", timestamp=1000 + number)
    producer.flush()
    return topic


def topology(orders: str) -> Topology:
    builder = StreamsBuilder()
    text, number, orders_serde = Serdes.string(), Serdes.long(), JsonSerde[Any]()
    consumed = Consumed(key_serde=text, value_serde=orders_serde)
    stream = builder.stream(orders, consumed)
    grouped = stream.group_by_key(Grouped(key_serde=text, value_serde=orders_serde))
    grouped.aggregate(
        int, lambda key, order, total: total + order["n"], materialized=Materialized("totals", value_serde=number)
    )
    grouped.windowed_by(TimeWindows(100, grace=0)).count(materialized=Materialized("windows", value_serde=number))
    stream.to_table(materialized=Materialized("latest", key_serde=text, value_serde=orders_serde))
    return builder.build()


def built(orders: str, servers: str, name: str, out: Path, *stores: StoreBootstrap, **said: Any) -> BootstrapReport:
    config = {"application.id": name, "bootstrap.servers": servers, "default.key.serde": Serdes.string()}
    return bootstrap(topology(orders), stores, out=out, config=config, **{"engine": "local", **said})


def test_a_topic_becomes_stores_and_changelogs(
    orders: str, bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> None:
    name = make_name("job")
    totals = StoreBootstrap("totals", KafkaTopic(orders), content="records", on_error="count")
    latest = StoreBootstrap("latest", KafkaTopic(orders))
    report = built(orders, bootstrap_servers, name, tmp_path / "out", totals, latest)
    manifest = report.manifest

    expected: dict[str, int] = {}
    newest: dict[str, bytes | None] = {}
    for number in range(RECORDS):
        key = f"k{number % KEYS}"
        newest[key] = None if number % 17 == 0 else json.dumps({"n": number}, separators=(",", ":")).encode()
        if number % 17:
            expected[key] = expected.get(key, 0) + number
    found = read_all(bootstrap_servers, f"{name}-totals-changelog")
    rows = read_all(bootstrap_servers, f"{name}-latest-changelog")

    assert expected == {key: int.from_bytes(value or b"") for key, (value, _) in found.items()}
    assert newest == {key: value for key, (value, _) in rows.items()}
    assert {key: 1000 + max(range(at, RECORDS, KEYS)) for at, key in enumerate(newest)} == {
        key: timestamp for key, (_, timestamp) in rows.items()
    }
    assert RECORDS == sum(manifest.source_offsets[orders].values())
    for store, rows_in_topic in (("totals", found), ("latest", rows)):
        ends = [task.changelog_offset for task in manifest.stores[store].tasks.values()]
        assert len(rows_in_topic) == sum(ends)
    assert {"RowError": len(range(0, RECORDS, 17))} == report.stores["totals"].refused

    with pytest.raises(
        BootstrapError, match=r"already, .*: '.*-totals-changelog' of store 'totals' .*; '.*' of store 'latest' "
    ):
        built(orders, bootstrap_servers, name, tmp_path / "again", totals, latest)


def test_changelogs_of_an_application_that_has_workers_are_not_written(
    orders: str, bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> None:
    """They would not see the rows, and write over them."""
    name = make_name("job")
    worker = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": name, "client.id": "shop-1"})
    worker.subscribe([orders])
    with closing(worker):
        for _ in range(300):
            worker.poll(0.2)
            if worker.assignment():
                break
        expected = pytest.raises(BootstrapError, match=rf"group '{name}' has 1 member, such as shop-1 on .*; stop all")
        with expected:
            built(orders, bootstrap_servers, name, tmp_path / "out", StoreBootstrap("latest", KafkaTopic(orders)))
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.nightly)])
def test_a_topic_is_read_up_to_where_the_application_goes_on(
    engine: str, orders: str, bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> None:
    """So a record that comes while the job runs is counted once, by the application."""
    offsets = {0: 100, 1: 0}  # of the third partition nothing is known
    report = built(
        orders,
        bootstrap_servers,
        make_name("job"),
        tmp_path / "out",
        StoreBootstrap("totals", KafkaTopic(orders), content="records", on_error="count"),
        changelog="base-only",
        source_offsets={orders: offsets},
        engine=engine,
    )
    config = StreamsConfig({"application.id": "reader", "bootstrap.servers": bootstrap_servers})
    first, _, third = topic_parts(KafkaTopic(orders), config)
    read = [row for part in (first, third) for batch in part.batches() for row in batch.to_pylist()]
    counted = {row["key"] for row in read if row["value"] and (row["partition"] == 2 or row["offset"] < 100)}

    assert len(counted) == report.stores["totals"].rows
    assert report.manifest.source_offsets == {orders: offsets}


def test_records_of_a_changelog_stay_in_their_partitions(
    orders: str, make_topic: MakeTopic, bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> None:
    log, smaller = make_topic("log", partitions=PARTITIONS), make_topic("log", partitions=PARTITIONS - 1)
    producer = producer_in_order(bootstrap_servers)
    for key in ("a", "b", "c"):  # a partitioner of somebody's own
        producer.produce(log, b"{}", key, partition=1)
    producer.flush()

    def made(topic: str, out: str) -> BootstrapReport:
        spec = StoreBootstrap("latest", KafkaTopic(topic), content="changelog")
        return built(orders, bootstrap_servers, make_name("job"), tmp_path / out, spec, changelog="base-only")

    assert [0, 3, 0] == [task.rows for _, task in sorted(made(log, "out").manifest.stores["latest"].tasks.items())]
    with pytest.raises(ConfigError, match=r"a changelog, has 2 partitions, and the store has 3 tasks"):
        made(smaller, "refused")


def test_a_topic_that_lost_records_meanwhile_is_no_empty_snapshot(orders: str, bootstrap_servers: str) -> None:
    config = StreamsConfig({"application.id": "reader", "bootstrap.servers": bootstrap_servers})
    parts = topic_parts(KafkaTopic(orders), config)
    assert RECORDS == sum(batch.num_rows for part in parts for batch in part.batches())

    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for future in admin.delete_records([TopicPartition(orders, 0, 50)]).values():
        future.result()

    with pytest.raises(ClusterError, match=r"cannot be read.*start the job again"):
        list(parts[0].batches())


def test_a_topic_that_is_missing_is_named(bootstrap_servers: str) -> None:
    config = StreamsConfig({"application.id": "reader", "bootstrap.servers": bootstrap_servers})

    with pytest.raises(MissingSourceTopicError, match="topic 'no-such-orders', which is to be read as a snapshot"):
        topic_parts(KafkaTopic("no-such-orders"), config)


def read_all(servers: str, topic: str) -> dict[str, tuple[bytes | None, int]]:
    """The last value and timestamp of each key."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "all", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found: dict[str, tuple[bytes | None, int]] = {}
    ended = 0
    while ended < PARTITIONS:
        message = consumer.poll(30)
        assert message is not None, "the topic gives nothing for 30 s"
        if message.error() is not None:
            ended += 1
            continue
        key = message.key()
        assert isinstance(key, bytes)
        value = message.value()
        assert value is None or isinstance(value, bytes)
        found[key.decode()] = value, message.timestamp()[1]
    consumer.close()
    return found


@pytest.mark.parametrize("job", ["bootstrap", "backfill"])
def test_a_job_says_which_changelog_does_not_keep_its_records(
    job: str,
    orders: str,
    bootstrap_servers: str,
    make_name: Callable[[str], str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They are of 1970; only those of windows are deleted by their age."""
    name = make_name("job")
    config = {
        "application.id": name,
        "bootstrap.servers": bootstrap_servers,
        "default.key.serde": Serdes.string(),
        "processing.exception.handler": LogAndContinueProcessingExceptionHandler,
    }
    topic = KafkaTopic(orders)
    if job == "bootstrap":
        stores = [StoreBootstrap(store, topic, content="records", on_error="count") for store in ("windows", "totals")]
        built(orders, bootstrap_servers, name, tmp_path / "out", *stores)
    else:
        backfill(topology(orders), {orders: topic}, out=tmp_path / "out", engine="local", config=config)

    [said] = [record.getMessage() for record in caplog.records if "retention.ms" in record.getMessage()]
    assert f"store windows: changelog '{name}-windows-changelog' keeps records for" in said
    assert "begin at 1970-01-01T00:00:01+00:00" in said
