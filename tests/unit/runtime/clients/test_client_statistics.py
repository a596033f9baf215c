"""librdkafka's statistics as metrics of a client."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.metrics.built_in.clients import CONSUMER, FETCH, PRODUCER
from pykstreams.runtime.clients.client_statistics import ClientStatistics, statistics_of
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster

PATIENCE_S = 30.0


def at(app: int, following: int, end: int, *, stable: int = -1001, queued: int = 0, state: str = "active") -> object:
    """A partition that is read, as the client tells of it: it knows no lag, for it commits no offsets."""
    return {
        "consumer_lag": -1,
        "app_offset": app,
        "next_offset": following,
        "hi_offset": end,
        "ls_offset": stable,
        "fetchq_cnt": queued,
        "fetch_state": state,
    }


CONSUMED = {
    "type": "consumer",
    "tx": 7,
    "rx": 6,
    "tx_bytes": 700,
    "rx_bytes": 600,
    "rxmsgs": 40,
    "rxmsg_bytes": 4000,
    "brokers": {
        "one": {"state": "UP", "rtt": {"avg": 1000, "cnt": 3}},
        "two": {"state": "INIT", "rtt": {"avg": 5000, "cnt": 1}},
    },
    "topics": {"orders": {"partitions": {"0": at(10, 13, 15, queued=3), "1": at(-1001, 11, 20), "-1": at(1, 1, 100)}}},
}


def read(metrics: StreamsMetrics, name: str, partition: str | None = None) -> float:
    wanted = {("client-id", "c")} | (set() if partition is None else {("partition", partition)})
    (found,) = (
        metric.value for key, metric in metrics.metrics().items() if key.name == name and wanted <= set(key.tags)
    )
    return found


def test_a_consumer_tells_what_librdkafka_tells() -> None:
    metrics = StreamsMetrics()
    told = ClientStatistics(metrics, "c", CONSUMER, FETCH)
    assert math.isnan(read(metrics, "records-lag-max"))

    told(json.dumps(CONSUMED))

    expected = {
        "records-consumed-total": 40,
        "bytes-consumed-total": 4000,
        "request-total": 7,
        "response-total": 6,
        "incoming-byte-total": 600,
        "outgoing-byte-total": 700,
        "connection-count": 1,
        "request-latency-avg": 2,
        "records-lag-max": 9,
    }
    assert {name: read(metrics, name) for name in expected} == expected
    assert [read(metrics, "records-lag", number) for number in "01"] == [5, 9]


def told_of(*partitions: object, isolation: str = "read_uncommitted") -> StreamsMetrics:
    metrics = StreamsMetrics()
    settings: dict[str, object] = {"client.id": "c", "statistics.interval.ms": 1000, "isolation.level": isolation}
    tell: Any = statistics_of(settings, metrics, CONSUMER, FETCH)["stats_cb"]
    for partition in partitions:
        tell(json.dumps({"type": "consumer", "topics": {"orders": {"partitions": {"0": partition}}}}))
    return metrics


def told_lags(*partitions: object, isolation: str = "read_uncommitted") -> list[float]:
    metrics = told_of(*partitions, isolation=isolation)
    return [read(metrics, "records-lag", "0"), read(metrics, "records-lag-max")]


def test_partition_that_is_read_no_more_has_no_lag() -> None:
    """The last one would be shown for ever, beside that of who reads the partition now."""
    metrics = told_of(at(10, 13, 15), at(-1001, 13, 15, state="stopped"))

    assert [name for name in metrics.metrics() if name.name == "records-lag"] == []
    assert math.isnan(read(metrics, "records-lag-max"))


def test_partition_that_is_read_again_has_a_lag_again() -> None:
    assert told_lags(at(10, 13, 15), at(-1001, 13, 15, state="stopped"), at(10, 13, 17)) == [4, 4]


def test_markers_of_transactions_at_the_end_are_no_lag() -> None:
    assert told_lags(at(10, 11, 11)) == [0, 0]


@pytest.mark.parametrize(("isolation", "lag"), [("read_uncommitted", 10), ("read_committed", 4)])
def test_lag_ends_where_records_may_be_read(isolation: str, lag: int) -> None:
    assert told_lags(at(10, 10, 20, stable=14), isolation=isolation) == [lag, lag]


def test_lag_is_that_of_a_consumer_that_commits_no_offsets() -> None:
    """So it is with the consumers of workers, whose members of the group commit."""
    metrics = StreamsMetrics()
    with EmbeddedCluster() as cluster:
        cluster.create_topics("orders")
        servers = {"bootstrap.servers": cluster.bootstrap_servers, "client.id": "c"}
        producer = Producer(servers)
        for number in range(50):
            producer.produce("orders", str(number), partition=0)
        assert not producer.flush(PATIENCE_S)
        settings = {**servers, "group.id": "g", "enable.auto.offset.store": False, "statistics.interval.ms": 50}
        consumer = Consumer({**settings, **statistics_of(settings, metrics, CONSUMER, FETCH)})
        place = TopicPartition("orders", 0, 0)
        consumer.incremental_assign([place])
        assert len(consumer.consume(10, PATIENCE_S)) == 10
        consumer.pause([place])
        for _ in range(int(PATIENCE_S / 0.1)):
            consumer.poll(0.1)
            if read(metrics, "records-lag-max") == 40:
                break
        consumer.close()

    assert [read(metrics, "records-lag", "0"), read(metrics, "records-lag-max")] == [40, 40]


def test_a_producer_tells_its_batches_and_what_room_it_has() -> None:
    metrics = StreamsMetrics()
    batches = {"batchsize": {"avg": 300, "cnt": 2}, "batchcnt": {"avg": 30, "cnt": 2}}
    told = {"type": "producer", "txmsgs": 60, "msg_size": 10, "msg_size_max": 100, "topics": {"out": batches}}
    ClientStatistics(metrics, "c", PRODUCER)(json.dumps(told))

    names = ("record-send-total", "batch-size-avg", "records-per-request-avg", "buffer-available-bytes")
    assert [read(metrics, name) for name in names] == [60, 300, 30, 90]


def test_statistics_that_cannot_be_read_are_logged_and_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    metrics = StreamsMetrics()
    told = ClientStatistics(metrics, "c", CONSUMER)
    told(json.dumps(CONSUMED))
    told("{")

    assert read(metrics, "request-total") == 7
    assert "statistics of client c cannot be read" in caplog.text


def test_a_client_is_only_asked_where_an_interval_is_set_and_the_user_does_not_ask_himself() -> None:
    metrics = StreamsMetrics()
    settings: dict[str, object] = {"client.id": "c", "statistics.interval.ms": 1000}

    assert list(statistics_of(settings, metrics, CONSUMER)) == ["stats_cb"]
    assert statistics_of(settings, None, CONSUMER) == {}
    assert statistics_of({"client.id": "c"}, metrics, CONSUMER) == {}
    assert statistics_of({**settings, "stats_cb": print}, metrics, CONSUMER) == {}
