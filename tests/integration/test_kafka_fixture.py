"""The fixture ``kafka`` of users' tests, on the broker of these tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykstreams import KafkaStreams, StreamsBuilder
from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.clients.admin import ClusterAdmin
from pykstreams.testing import KafkaCluster
from tests.unit.test_tests_on_clusters_page import page as page

pytestmark = pytest.mark.integration


@pytest.fixture(scope="session")
def kafka_address(bootstrap_servers: str) -> str:
    """The broker that all tests here share."""
    return bootstrap_servers


def topics(address: str) -> set[str]:
    config = StreamsConfig({"application.id": "looks", "bootstrap.servers": address})
    return set(ClusterAdmin.open(config.client_supplier, config, "looks", SystemClock()).partition_counts())


@pytest.mark.slow
def test_an_application_runs_on_topics_that_go_after_the_test(
    kafka_address: str, kafka: KafkaCluster, tmp_path: Path
) -> None:
    words = kafka.topic("fixture-words", str, str, partitions=2)
    counts = kafka.topic("fixture-counts", str, int)
    builder = StreamsBuilder()
    builder.stream("fixture-words", str, str).group_by_key().count(materialized="counts").to_stream().to(
        "fixture-counts"
    )
    config = {
        "application.id": kafka.application_id("fixture"),
        "bootstrap.servers": kafka.bootstrap_servers,
        "state.dir": str(tmp_path),
        "processing.guarantee": "exactly_once_v2",
    }

    with KafkaStreams(builder.build(), config):
        words.produce_all([("a", "x"), ("b", "x"), ("a", "x")])

        assert counts.read_until({"a": 2, "b": 1}) == {"a": 2, "b": 1}
    mine = {topic for topic in topics(kafka_address) if topic.startswith("fixture-")}
    assert {"fixture-words", "fixture-counts", f"{config['application.id']}-counts-changelog"} <= mine

    kafka.clean_up()
    assert not topics(kafka_address) & mine


@pytest.mark.slow
def test_the_test_of_the_page_holds(page: dict[str, Any], kafka: KafkaCluster, tmp_path: Path) -> None:
    page["test_the_application_sums_up_exactly_once"](kafka, tmp_path)
