"""The fixture ``kafka`` of users' tests, on the broker of these tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykstreams import KafkaStreams, StreamsBuilder
from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError
from pykstreams.runtime.clients.admin import ClusterAdmin
from pykstreams.testing import KafkaCluster
from tests.brokers.brokers import wait_until_gone
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
    wait_until_gone(kafka_address, *mine)


def test_a_topic_that_was_there_before_is_refused_and_stays(
    kafka_address: str, make_topic: Callable[..., str], kafka: KafkaCluster
) -> None:
    """With ``localhost:9092``, or an address of yours, the broker may hold what somebody needs."""
    of_somebody = make_topic()

    with pytest.raises(ClusterError) as raised:
        kafka.topic(of_somebody, str, str)

    assert str(raised.value) == (
        f"topic {of_somebody!r} is on {kafka_address} already, and would be deleted after the test; take brokers for "
        "tests alone (KAFKA_BOOTSTRAP_SERVERS, or Docker), or delete it, if a test that was ended has left it"
    )
    kafka.clean_up()
    assert of_somebody in topics(kafka_address)


def test_a_topic_is_made_once_for_a_test_and_anew_for_the_next(kafka_address: str, kafka: KafkaCluster) -> None:
    kafka.topic("fixture-again", str, str).produce("a", "x")
    assert kafka.topic("fixture-again", str, bytes).read_key_values(1) == [("a", b"x")]
    kafka.clean_up()

    anew = KafkaCluster(kafka_address)
    anew.topic("fixture-again", str, str)
    anew.clean_up()

    wait_until_gone(kafka_address, "fixture-again")


@pytest.mark.slow
def test_the_test_of_the_page_holds(page: dict[str, Any], kafka: KafkaCluster, tmp_path: Path) -> None:
    page["test_the_application_sums_up_exactly_once"](kafka, tmp_path)
