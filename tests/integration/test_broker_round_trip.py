"""What the other integration tests rely on: a broker that keeps records, groups and transactions."""

from collections.abc import Callable, Iterator
from typing import Protocol

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer

from tests.integration.conftest import MakeTopic

MakeName = Callable[[str], str]


class MakeConsumer(Protocol):
    """``make_consumer("orders", **settings)`` gives a consumer of a topic from its start."""

    def __call__(self, topic: str, **settings: object) -> Consumer: ...


def read(consumer: Consumer, count: int) -> list[Message]:
    """So many records, each awaited for at most a minute."""
    messages: list[Message] = []
    while len(messages) < count:
        message = consumer.poll(60)
        assert message is not None, f"no record after {messages!r}"
        assert message.error() is None, message.error()
        messages.append(message)
    return messages


@pytest.fixture
def make_consumer(bootstrap_servers: str, make_name: MakeName) -> Iterator[MakeConsumer]:
    """A factory of consumers of a topic from its start, in a group of their own; closes them."""
    made: list[Consumer] = []

    def make(topic: str, **settings: object) -> Consumer:
        config: dict[str, object] = {"group.id": make_name("group"), "auto.offset.reset": "earliest", **settings}
        consumer = Consumer({"bootstrap.servers": bootstrap_servers, **config})
        consumer.subscribe([topic])
        made.append(consumer)
        return consumer

    yield make
    for consumer in made:
        consumer.close()


def test_record_keeps_key_value_timestamp_and_headers(
    bootstrap_servers: str, make_topic: MakeTopic, make_consumer: MakeConsumer
) -> None:
    topic = make_topic("orders", partitions=2)
    headers: list[tuple[str, str | bytes | None]] = [("h", b"1"), ("h", b""), ("other", None)]
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(topic, key=b"k", value=b"v", timestamp=1234, headers=headers, partition=1)
    assert producer.flush(60) == 0

    [message] = read(make_consumer(topic), 1)

    assert (message.key(), message.value()) == (b"k", b"v")
    assert (message.partition(), message.offset()) == (1, 0)
    assert message.timestamp()[1] == 1234
    assert message.headers() == headers


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_records_are_read_back(
    bootstrap_servers: str, make_topic: MakeTopic, make_consumer: MakeConsumer, compression: str
) -> None:
    topic = make_topic(compression)
    producer = Producer({"bootstrap.servers": bootstrap_servers, "compression.type": compression})
    for number in range(100):
        producer.produce(topic, value=b"%d" % number)
    assert producer.flush(60) == 0

    values = [message.value() for message in read(make_consumer(topic), 100)]

    assert values == [b"%d" % number for number in range(100)]


def test_group_with_the_new_protocol_reads_a_topic(
    bootstrap_servers: str, make_topic: MakeTopic, make_consumer: MakeConsumer
) -> None:
    topic = make_topic()
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(topic, value=b"v")
    assert producer.flush(60) == 0

    [message] = read(make_consumer(topic, **{"group.protocol": "consumer"}), 1)

    assert message.value() == b"v"


def test_record_of_an_aborted_transaction_is_not_read(
    bootstrap_servers: str, make_name: MakeName, make_topic: MakeTopic, make_consumer: MakeConsumer
) -> None:
    topic = make_topic()
    producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": make_name("producer")})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, value=b"aborted")
    producer.flush(60)
    producer.abort_transaction(30)
    producer.begin_transaction()
    producer.produce(topic, value=b"committed")
    producer.commit_transaction(30)

    [message] = read(make_consumer(topic), 1)

    assert message.value() == b"committed"


def test_topic_is_not_created_by_writing_to_it(bootstrap_servers: str, make_name: MakeName) -> None:
    errors: list[int] = []
    producer = Producer(
        {"bootstrap.servers": bootstrap_servers, "topic.metadata.propagation.max.ms": 0, "log_level": 3}
    )

    def failed(error: KafkaError | None, _: Message) -> None:
        assert error is not None
        errors.append(error.code())

    producer.produce(make_name("missing"), on_delivery=failed)
    producer.flush(60)

    assert errors == [KafkaError.UNKNOWN_TOPIC_OR_PART]
