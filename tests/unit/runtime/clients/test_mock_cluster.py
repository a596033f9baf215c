"""The embedded cluster: other clients reach it by address, topics have four partitions, memory is bounded."""

import re

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from pykstreams.core.errors import ClusterError
from pykstreams.runtime.clients.mock_cluster import PARTITION_LIMIT_BYTES, PARTITIONS, EmbeddedCluster


def consumer_of(cluster: EmbeddedCluster) -> Consumer:
    return Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "test", "log_level": 3})


def read_one(cluster: EmbeddedCluster, topic: str) -> Message:
    consumer = consumer_of(cluster)
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    message = consumer.poll(10)
    consumer.close()
    assert message is not None and message.error() is None
    return message


def test_record_of_one_client_is_read_by_another_through_the_address(
    embedded_cluster: EmbeddedCluster,
) -> None:
    producer = Producer({"bootstrap.servers": embedded_cluster.bootstrap_servers})
    producer.produce("orders", key=b"k", value=b"v", timestamp=1234, headers=[("h", b"1"), ("h", None)])
    assert producer.flush(10) == 0

    message = read_one(embedded_cluster, "orders")

    assert (message.key(), message.value()) == (b"k", b"v")
    assert message.timestamp()[1] == 1234
    assert message.headers() == [("h", b"1"), ("h", None)]


def test_created_topic_has_four_partitions(embedded_cluster: EmbeddedCluster) -> None:
    embedded_cluster.create_topics("orders", "customers")
    consumer = consumer_of(embedded_cluster)
    found = consumer.list_topics(timeout=10).topics
    consumer.close()

    assert embedded_cluster.topics() == ["customers", "orders"]
    assert {name: len(topic.partitions) for name, topic in found.items()} == {
        "customers": PARTITIONS,
        "orders": PARTITIONS,
    }


def test_topic_that_exists_keeps_its_records_when_created_again(embedded_cluster: EmbeddedCluster) -> None:
    producer = Producer({"bootstrap.servers": embedded_cluster.bootstrap_servers})
    producer.produce("orders", value=b"v")
    assert producer.flush(10) == 0

    embedded_cluster.create_topics("orders")

    assert read_one(embedded_cluster, "orders").value() == b"v"


def test_partition_drops_old_records_beyond_its_limit(embedded_cluster: EmbeddedCluster) -> None:
    producer = Producer({"bootstrap.servers": embedded_cluster.bootstrap_servers})
    size, count = 1000, 2 * PARTITION_LIMIT_BYTES // 1000
    for _ in range(count):
        producer.produce("orders", value=b"x" * size, partition=0)
    assert producer.flush(10) == 0
    consumer = consumer_of(embedded_cluster)
    low, high = consumer.get_watermark_offsets(TopicPartition("orders", 0), timeout=10)
    consumer.close()

    assert high == count
    assert low > 0
    assert (high - low) * size <= PARTITION_LIMIT_BYTES


def test_address_names_every_broker() -> None:
    with EmbeddedCluster(brokers=3) as cluster:
        addresses = cluster.bootstrap_servers.split(",")

    assert len(set(addresses)) == 3
    assert all(re.fullmatch(r"127\.0\.0\.1:\d+", address) for address in addresses)


def test_two_clusters_share_nothing(embedded_cluster: EmbeddedCluster) -> None:
    with EmbeddedCluster() as other:
        embedded_cluster.create_topics("orders")

        assert other.topics() == []


def test_cluster_without_brokers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^an embedded cluster needs at least one broker, got brokers=0$"):
        EmbeddedCluster(brokers=0)


def test_closed_cluster_says_so() -> None:
    cluster = EmbeddedCluster()
    cluster.close()
    cluster.close()

    with pytest.raises(ClusterError, match=r"^this embedded cluster is closed; make a new one$"):
        cluster.topics()


def test_a_cluster_says_where_it_is(embedded_cluster: EmbeddedCluster) -> None:
    assert repr(embedded_cluster) == f"<EmbeddedCluster at {embedded_cluster.bootstrap_servers}>"
