"""A worker on an embedded cluster, where topics have four partitions, looks at the keys that it reads if it is to."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from pykstreams import Consumed, KafkaStreams, Produced, Serdes, StreamsBuilder
from pykstreams.core.clock import SystemClock
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
from tests.brokers.quick_cluster import SHORT_SESSION
from tests.brokers.records import records_of

TEXT = Serdes.string()
KEYS = [str(number) for number in range(100)]
PATIENCE_S = 60.0


def warnings_of_a_run(
    cluster: EmbeddedCluster, folder: Path, caplog: pytest.LogCaptureFixture, **settings: object
) -> list[str]:
    """Counts what a plain producer has sent, and gives what was logged about its keys."""
    cluster.create_topics("in", "out")
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for key in KEYS:
        producer.produce("in", key=key.encode(), value=b"v")
    assert producer.flush(10) == 0
    builder = StreamsBuilder()
    counts = builder.stream("in", Consumed(key_serde=TEXT, value_serde=TEXT)).group_by_key().count()
    counts.to_stream().to("out", Produced(key_serde=TEXT, value_serde=Serdes.long()))
    config = {
        "application.id": "counts",
        "bootstrap.servers": cluster.bootstrap_servers,
        "state.dir": str(folder),
        "commit.interval.ms": 100,
        "main.consumer.auto.offset.reset": "earliest",
        "default.key.serde": TEXT,
        "default.value.serde": TEXT,
        **SHORT_SESSION,
        **settings,
    }
    streams = KafkaStreams(builder.build(), config)
    streams.start()
    clock = SystemClock()
    deadline = clock.monotonic() + PATIENCE_S
    while len(records_of(cluster.bootstrap_servers, ["out"])) < len(KEYS):
        assert clock.monotonic() < deadline
    assert streams.close(30_000)
    return [one.getMessage() for one in caplog.records if "sampled records lie" in one.getMessage()]


@pytest.mark.slow
def test_worker_warns_of_keys_that_a_plain_producer_has_put_elsewhere(
    embedded_cluster: EmbeddedCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (warning,) = warnings_of_a_run(embedded_cluster, tmp_path, caplog)

    assert warning.startswith("topic 'in': ")
    assert "who looks a key up asks the wrong partition" in warning


@pytest.mark.slow
def test_worker_does_not_look_where_the_check_is_off(
    embedded_cluster: EmbeddedCluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert warnings_of_a_run(embedded_cluster, tmp_path, caplog, **{"partitioner.check.enable": False}) == []
