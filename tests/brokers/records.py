"""What topics hold, read from outside with a plain client: every record that is committed, in order."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

_LOOK_UP_S = 10.0


def records_of(
    bootstrap_servers: str,
    topics: Collection[str],
    *,
    timeout_s: float = 60.0,
    committed_only: bool = True,
) -> list[Message]:
    """Reads topics to the end that they have now; those of one partition stay in order."""
    deadline = time.monotonic() + timeout_s
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "reads-from-outside",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if committed_only else "read_uncommitted",
            "fetch.queue.backoff.ms": 1,
            "log_level": 0,
        }
    )
    try:
        known = consumer.list_topics(timeout=min(_LOOK_UP_S, timeout_s)).topics
        places = [TopicPartition(topic, number, 0) for topic in topics for number in known[topic].partitions]
        consumer.assign(places)
        left = {(place.topic, place.partition) for place in places}
        records: list[Message] = []
        while left:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{sorted(left)} were not read to their ends within {timeout_s:g} s")
            for message in consumer.consume(10_000, 0.2):
                error = message.error()
                if error is None:
                    records.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard((message.topic(), message.partition()))
        return records
    finally:
        consumer.close()


def key_of(record: Message) -> bytes:
    """The key of a record that has one."""
    key = record.key()
    assert key is not None, f"no key: {record.topic()} [{record.partition()}] at offset {record.offset()}"
    return key


def value_of(record: Message) -> bytes:
    """The value of a record that has one."""
    value = record.value()
    assert value is not None, f"no value: {record.topic()} [{record.partition()}] at offset {record.offset()}"
    return value


def topic_of(record: Message) -> str:
    """The topic of a record that was read."""
    topic = record.topic()
    assert topic is not None, "a record without a topic"
    return topic


def partition_of(record: Message) -> int:
    """The partition of a record that was read."""
    partition = record.partition()
    assert partition is not None, f"no partition: {record.topic()}"
    return partition


def counts_by_key(records: Collection[Message]) -> dict[str, list[int]]:
    """All values of every key, in order, where values are longs."""
    counts: dict[str, list[int]] = defaultdict(list)
    for record in records:
        counts[key_of(record).decode()].append(int.from_bytes(record.value() or b"", "big"))
    return dict(counts)
