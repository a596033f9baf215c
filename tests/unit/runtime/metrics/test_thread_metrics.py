"""What workers and applications measure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pykstreams import KafkaStreams
from pykstreams.core.clock import SystemClock
from pykstreams.core.metrics import MetricName, StreamsMetrics
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.metrics.thread_metrics import FLUSH_S, ThreadMetrics
from pykstreams.testing import MockClock
from tests.brokers.quick_cluster import SHORT_SESSION
from tests.unit.runtime.metrics.measured import counting

WINDOWS_S = 30


class Task:
    def __init__(self, busy_s: float) -> None:
        self.busy_s = busy_s
        self.share: float | None = None

    def flush_metrics(self, now_ms: int, share: float | None) -> None:
        self.share = share


def read(metrics: StreamsMetrics, name: str) -> float:
    (found,) = (metric.value for key, metric in metrics.metrics().items() if key.name == name)
    return found


def test_turns_are_summed_up_and_recorded_a_few_times_a_second() -> None:
    clock = MockClock(0)
    metrics = StreamsMetrics(clock=clock)
    measured = ThreadMetrics(metrics, clock)
    measured.turn_ended(lambda: [])
    for _ in range(3):
        measured.processed(0.5, 100)
        measured.turn_ended(lambda: [])
    assert read(metrics, "process-total") == 0

    clock.advance(int(FLUSH_S * 1000))
    measured.turn_ended(lambda: [])

    assert read(metrics, "process-total") == 300
    assert read(metrics, "process-latency-avg") == 5
    assert read(metrics, "process-records-max") == 100
    assert read(metrics, "process-ratio") == pytest.approx(1.5 / WINDOWS_S)


def test_an_empty_poll_counts_as_a_poll_without_records() -> None:
    clock = MockClock(0)
    metrics = StreamsMetrics(clock=clock)
    measured = ThreadMetrics(metrics, clock)
    measured.polled(0.1, 0)
    measured.polled(0.3, 50)
    measured.committed(0.2, 2)
    measured.turn_ended(lambda: [])

    assert (read(metrics, "poll-total"), read(metrics, "poll-latency-max")) == (2, 300)
    assert read(metrics, "poll-records-avg") == 50
    assert read(metrics, "commit-total") == 2
    assert read(metrics, "blocked-time-ns-total") == pytest.approx(0.6e9)


def test_tasks_are_told_their_share_of_what_was_processed() -> None:
    clock = MockClock(0)
    tasks = [Task(0.75), Task(0.25)]
    ThreadMetrics(StreamsMetrics(clock=clock), clock).turn_ended(lambda: tasks)

    assert [task.share for task in tasks] == [0.75, 0.25]


@pytest.fixture
def streams(embedded_cluster: EmbeddedCluster, tmp_path: Path) -> Iterator[KafkaStreams]:
    settings = {
        "application.id": "shop",
        "client.id": "client",
        "bootstrap.servers": embedded_cluster.bootstrap_servers,
        "state.dir": str(tmp_path),
        "statistics.interval.ms": 50,
        "commit.interval.ms": 100,
        **SHORT_SESSION,
    }
    made = KafkaStreams(counting().build(), settings)
    yield made
    made.close(20_000)


@pytest.mark.slow
def test_an_application_tells_of_itself_its_workers_and_its_clients(
    embedded_cluster: EmbeddedCluster, streams: KafkaStreams
) -> None:
    producer = Producer({"bootstrap.servers": embedded_cluster.bootstrap_servers})
    producer.produce("in", b"a", key=b"k", partition=0)
    assert producer.flush(10) == 0
    streams.start()
    clock = SystemClock()
    deadline = clock.monotonic() + 60

    def value(name: str, group: str) -> float:
        return sum(found.value for key, found in streams.metrics().items() if (key.name, key.group) == (name, group))

    while not (
        value("process-total", "stream-thread-metrics") == 1
        and value("commit-total", "stream-thread-metrics") >= 1
        and value("request-total", "consumer-metrics") > 0
        and value("request-total", "producer-metrics") > 0
    ):
        assert clock.monotonic() < deadline, streams.state
        streams.wait(20)

    found = {(key.group, key.name): metric.metric_value() for key, metric in streams.metrics().items()}
    assert found["stream-metrics", "state"] == streams.state.name
    assert found["stream-metrics", "client-state"] == (2 if streams.state is State.RUNNING else 1)
    assert found["stream-metrics", "alive-stream-threads"] == 1
    assert found["stream-metrics", "failed-stream-threads"] == 0
    assert found["stream-metrics", "application-id"] == "shop"
    assert "Sub-topology: 0" in str(found["stream-metrics", "topology-description"])
    assert float(found["stream-thread-metrics", "task-created-total"]) >= 1
    assert "restore-call-rate" in {name for _, name in found}

    assert streams.close(20_000)
    left = {name.group for name in streams.metrics()}
    assert left == {"stream-metrics"}
    assert streams.metrics()[MetricName("state", "stream-metrics", (("client-id", "client"),))].text == "NOT_RUNNING"
