"""Rows that a job writes to topics."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

from pykstreams import StreamsConfig
from pykstreams.bulk.brokers.changelog import ChangelogOutput
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster


def test_row_from_the_beginning_of_time_is_not_sent_with_the_time_of_day(embedded_cluster: EmbeddedCluster) -> None:
    brokers = embedded_cluster.bootstrap_servers
    topic = "rows-from-time-zero"
    embedded_cluster.create_topics(topic)
    settings = StreamsConfig({"application.id": "shop", "bootstrap.servers": brokers})
    with ChangelogOutput(settings, topic, 1) as write:
        for timestamp in (0, 7):
            write((b"k", b"v", timestamp, ()))

    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "reader"})
    consumer.assign([TopicPartition(topic, 1, 0)])
    times = [message.timestamp()[1] for message in consumer.consume(2, 10)]
    consumer.close()

    assert times == [1, 7]
