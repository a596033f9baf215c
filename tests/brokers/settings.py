"""The broker's version and settings, the same for containers and for local processes.

The compose files repeat them, because compose reads no Python; ``tests/unit/broker_setup`` compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping

KAFKA_VERSION = "4.3.1"
KAFKA_IMAGE = f"apache/kafka:{KAFKA_VERSION}"
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"

_ALWAYS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    # Kafka's default is 6 s; lower, so that a test need not wait that long for a dead member to be noticed
    "group.min.session.timeout.ms": "1000",
    # 5 s and 45 s by default, and at least; a task moves in two heartbeats of a streams group
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
    # the log cleaner's buffer is allocated at the start: 128 MiB of heap by default
    "log.cleaner.dedupe.buffer.size": "4194304",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}

ONE_BROKER: Mapping[str, str] = {
    **_ALWAYS,
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
}

THREE_BROKERS: Mapping[str, str] = {
    **_ALWAYS,
    # a dead node is noticed sooner than by default (9 s, 2 s, 2 s, 1 s, 30 s)
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.election.timeout.ms": "1000",
    "replica.lag.time.max.ms": "5000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.replication.factor": "3",
}


def environment_name(setting: str) -> str:
    """The image's variable for a setting: ``log.dirs`` is ``KAFKA_LOG_DIRS``."""
    return "KAFKA_" + setting.replace("_", "__").replace("-", "___").replace(".", "_").upper()
