"""Rows that a job writes to topics."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition

from pykstreams import StreamsConfig
from pykstreams.bulk.brokers.changelog import ChangelogOutput
from pykstreams.core.errors import DeliveryError
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


def test_row_that_is_too_large_is_named_with_what_makes_room(embedded_cluster: EmbeddedCluster) -> None:
    embedded_cluster.create_topics("rows-of-any-size")
    settings = StreamsConfig({"application.id": "shop", "bootstrap.servers": embedded_cluster.bootstrap_servers})

    with pytest.raises(DeliveryError) as refused, ChangelogOutput(settings, "rows-of-any-size", 1) as write:
        write((b"small", b"row", 1, ()))
        write((b"large", bytes(2_000_000), 1, ()))

    assert refused.value.name == "MSG_SIZE_TOO_LARGE"
    said = str(refused.value)
    assert "a row for topic 'rows-of-any-size' was not delivered" in said
    assert "it has 2000005 bytes, its key begins with b'large': raise max.message.bytes of the topic and" in said
    assert said.endswith("producer.message.max.bytes, delete the topic and run the job again")
