"""What a test gets to hold: running brokers, however they run, and ways to find out that they are ready."""

from __future__ import annotations

import contextlib
import time
from contextlib import AbstractContextManager
from typing import Protocol

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

READY_TIMEOUT_S = 60.0


class Brokers(Protocol):
    """A running cluster; nodes are named ``kafka`` (one) or ``kafka-1`` to ``kafka-3`` (three)."""

    bootstrap_servers: str
    nodes: tuple[str, ...]

    def kill(self, node: str) -> None:
        """Ends a node at once; connections to it are refused from then on."""
        ...

    def stop(self, node: str) -> None:
        """Shuts a node down in order: it hands its partitions over first."""
        ...

    def start(self, node: str) -> None:
        """Starts a killed or stopped node again, with the data it had."""
        ...

    def paused(self, node: str) -> AbstractContextManager[None]:
        """Freezes a node for a while: its connections stay open, and nothing answers."""
        ...

    def log_tail(self) -> str:
        """The last lines of the nodes' logs, for error messages."""
        ...


class GivenBrokers:
    """Brokers that somebody else runs (``KAFKA_BOOTSTRAP_SERVERS``): they can be used, not controlled."""

    nodes: tuple[str, ...] = ()

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers

    def log_tail(self) -> str:
        return ""


def wait_until_ready(brokers: Brokers | GivenBrokers, *, nodes: int | None = None) -> None:
    """Returns when so many nodes answer (all, by default) and the group coordinator serves."""
    wanted = nodes if nodes is not None else max(1, len(brokers.nodes))
    deadline = time.monotonic() + READY_TIMEOUT_S
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap_servers, "log_level": 0})
    found = 0
    while found < wanted:
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{brokers.bootstrap_servers!r}: {found} of {wanted} brokers after {READY_TIMEOUT_S:g} s\n"
                + brokers.log_tail()
            )
        with contextlib.suppress(KafkaException):
            found = len(admin.list_topics(timeout=1).brokers)
        if found < wanted:
            time.sleep(0.05)
    _load_group_coordinator(brokers.bootstrap_servers, deadline)


def _load_group_coordinator(bootstrap_servers: str, deadline: float) -> None:
    """Makes the broker create and load ``__consumer_offsets``.

    Otherwise the first consumer group of the session is answered NOT_COORDINATOR, and librdkafka waits
    three seconds before it joins again. By a consumer, because ``AdminClient.list_consumer_group_offsets``
    crashes the interpreter on that very answer (librdkafka 5040).
    """
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "coordinator-probe", "log_level": 0})
    try:
        while True:
            try:
                consumer.committed([TopicPartition("coordinator-probe", 0)], timeout=5)
                return
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
    finally:
        consumer.close()


def wait_until_gone(bootstrap_servers: str, *topics: str) -> None:
    """Returns when brokers do not tell of topics any more that somebody has deleted: the controller knows it first."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    deadline = time.monotonic() + READY_TIMEOUT_S
    while left := admin.list_topics(timeout=READY_TIMEOUT_S).topics.keys() & set(topics):
        assert time.monotonic() < deadline, f"{sorted(left)} are still there"
        time.sleep(0.1)


def create_topic(bootstrap_servers: str, name: str, *, partitions: int = 1, **settings: object) -> None:
    """Creates a topic with default replication; ``cleanup_policy="compact"`` sets ``cleanup.policy``."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 3})
    config = {key.replace("_", "."): str(value) for key, value in settings.items()}
    create_topics(admin, [NewTopic(name, partitions, config=config)])


def create_topics(admin: AdminClient, topics: list[NewTopic]) -> None:
    """Creates topics, and waits until the brokers tell of them: the controller makes them some time before."""
    for created in admin.create_topics(topics).values():
        created.result(60)
    names, deadline = {topic.topic for topic in topics}, time.monotonic() + 30
    while missing := names - admin.list_topics(timeout=10).topics.keys():
        if time.monotonic() > deadline:
            raise RuntimeError(f"topics {sorted(missing)} were created, but do not appear within 30 s")
        time.sleep(0.05)
