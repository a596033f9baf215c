"""Checks of topics: those of users and those of the application, by the code that a worker starts with."""

from __future__ import annotations

from collections.abc import Iterator

from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.checks.finding import Finding, Severity, of_message
from pykstreams.runtime.topics.topic_admin import TopicAdmin, TopicClient
from pykstreams.runtime.topics.user_topics import UserTopics, refused_topics
from pykstreams.topology.plan import TopologyPlan


def name_findings(plan: TopologyPlan, config: StreamsConfig) -> Iterator[Finding]:
    """Yields topics whose names Kafka refuses, which needs no cluster."""
    for topic, what in refused_topics(plan, config.errors_dead_letter_queue_topic_name).items():
        cure = "correct the name in the topology or the settings; Kafka has no such topics"
        yield Finding(Severity.ERROR, "topics", what, topic or "''", cure)


def topic_findings(plan: TopologyPlan, config: StreamsConfig, client: TopicClient) -> Iterator[Finding]:
    """Yields topics that are missing, partition counts that do not fit, and internal topics with wrong settings."""
    existing = client.partition_counts()
    topics = UserTopics(client, plan, dead_letters=config.errors_dead_letter_queue_topic_name)
    refused = refused_topics(plan, config.errors_dead_letter_queue_topic_name)
    for missing in topics.missing(existing):
        for topic, why in missing.items():
            if topic in refused:
                continue
            what = f"does not exist, {why.rstrip(',')}"
            yield Finding(Severity.ERROR, "topics", what, topic, topics.cure(topic, existing))
    faults = TopicAdmin(client, plan, replication=config.replication_factor, embedded=False).faults()
    for fault in faults:
        yield of_message("topics", plan.application_id, str(fault))
