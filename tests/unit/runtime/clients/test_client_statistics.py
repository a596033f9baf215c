"""librdkafka's statistics as metrics of a client."""

from __future__ import annotations

import json
import math

import pytest

from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.metrics.built_in.clients import CONSUMER, FETCH, PRODUCER
from pykstreams.runtime.clients.client_statistics import ClientStatistics, statistics_of

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
    "topics": {
        "orders": {"partitions": {"0": {"consumer_lag": 5}, "1": {"consumer_lag": 9}, "-1": {"consumer_lag": 99}}}
    },
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
