"""Brokers that a test starts for itself: extra settings, and a cluster in which nodes fail."""

import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.brokers.brokers import Brokers, create_topic, wait_until_ready

pytestmark = pytest.mark.slow


def produce_one(brokers: Brokers, topic: str) -> KafkaError | None:
    """Writes one record; the broker's answer, or the error after a minute without one."""
    outcome: list[KafkaError | None] = []
    producer = Producer(
        {
            "bootstrap.servers": brokers.bootstrap_servers,
            "acks": "all",
            "enable.idempotence": True,
            "delivery.timeout.ms": 60_000,
            "socket.timeout.ms": 3_000,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
    )
    producer.produce(topic, value=b"v", on_delivery=lambda error, _: outcome.append(error))
    producer.flush(70)
    return outcome[0]


def leader_of(brokers: Brokers, topic: str) -> str:
    """The leader of a new topic's only partition, once the broker that is asked has heard of it."""
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap_servers, "log_level": 0})
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        partitions = admin.list_topics(topic, timeout=60).topics[topic].partitions
        if partitions and partitions[0].leader >= 0:
            return f"kafka-{partitions[0].leader}"
    raise TimeoutError(f"{topic} has no leader after 30 s\n{brokers.log_tail()}")


def test_broker_has_the_extra_settings(start_broker: Callable[..., Brokers]) -> None:
    broker = start_broker({"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    [resource] = [ConfigResource(ResourceType.BROKER, "1")]
    settings = admin.describe_configs([resource])[resource].result(60)

    assert settings["offsets.retention.minutes"].value == "1"
    assert settings["offsets.retention.check.interval.ms"].value == "1000"
    assert settings["auto.create.topics.enable"].value == "false"


@pytest.mark.nightly
def test_broker_that_was_killed_keeps_its_topics(start_broker: Callable[..., Brokers]) -> None:
    broker = start_broker({"broker.session.timeout.ms": "3000"})  # a killed node may register again after it
    create_topic(broker.bootstrap_servers, "orders")
    broker.kill("kafka")
    broker.start("kafka")
    wait_until_ready(broker)

    assert produce_one(broker, "orders") is None


@pytest.mark.nightly
def test_cluster_takes_records_while_the_leader_is_dead(
    three_brokers: Brokers, make_name: Callable[[str], str]
) -> None:
    topic = make_name("orders")
    create_topic(three_brokers.bootstrap_servers, topic)
    leader = leader_of(three_brokers, topic)
    three_brokers.kill(leader)
    outcome = produce_one(three_brokers, topic)
    three_brokers.start(leader)
    wait_until_ready(three_brokers)

    assert outcome is None


@pytest.mark.nightly
def test_cluster_takes_records_while_the_leader_is_frozen(
    three_brokers: Brokers, make_name: Callable[[str], str]
) -> None:
    topic = make_name("orders")
    create_topic(three_brokers.bootstrap_servers, topic)
    with three_brokers.paused(leader_of(three_brokers, topic)):
        outcome = produce_one(three_brokers, topic)
    wait_until_ready(three_brokers)

    assert outcome is None
