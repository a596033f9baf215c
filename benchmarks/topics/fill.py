"""Topics for the programs: made, filled, counted and removed again."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.settings import PARTITIONS
from benchmarks.topics.payloads import Payload

_TIMEOUT_S = 30


class Topics:
    """The topics of one broker."""

    def __init__(self, brokers: str) -> None:
        self._brokers = brokers
        self._admin = AdminClient({"bootstrap.servers": brokers, "log_level": 2})

    def create(self, name: str, *, compacted: bool = False, partitions: int = PARTITIONS) -> None:
        """Makes an empty topic that keeps its records, however old they say they are."""
        config = {"cleanup.policy": "compact"} if compacted else {"retention.ms": "-1"}
        self._admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(_TIMEOUT_S)

    def fill(self, name: str, payloads: Iterable[Payload]) -> None:
        """Appends records in their order, each to the partition that Java's producer would choose."""
        producer = Producer(
            {
                "bootstrap.servers": self._brokers,
                "partitioner": "murmur2_random",
                # a batch that is refused, as the first ones of a new topic may be, is not sent again behind later ones
                "enable.idempotence": True,
                "log_level": 2,
                "linger.ms": 50,
                "batch.size": 262_144,
                "queue.buffering.max.messages": 500_000,
            }
        )
        for key, value, timestamp in payloads:
            while True:
                try:
                    producer.produce(name, value, key, timestamp=timestamp)
                    break
                except BufferError:
                    producer.poll(0.05)
        unsent = producer.flush(_TIMEOUT_S)
        if unsent:
            raise TimeoutError(f"{unsent} records for {name!r} are still not delivered after {_TIMEOUT_S} s")

    def count(self, name: str) -> int:
        """How many records a topic ever got."""
        consumer = Consumer({"bootstrap.servers": self._brokers, "group.id": "count"})
        try:
            ends = (
                consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=_TIMEOUT_S)[1]
                for partition in range(PARTITIONS)
            )
            return sum(ends)
        finally:
            consumer.close()

    def remove(self, name_contains: str) -> None:
        """Deletes all topics with this in their names; where programs put it differs."""
        names = [name for name in self._admin.list_topics(timeout=_TIMEOUT_S).topics if name_contains in name]
        if names:
            for done in self._admin.delete_topics(names).values():
                done.result(_TIMEOUT_S)
