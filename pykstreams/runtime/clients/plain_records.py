"""Records of a cluster as any client writes and reads them, in bytes: for tests of applications, from outside.

No group is joined and no offset committed, so a reader sees the same records however often it is made. Keys are placed
as Kafka's own clients place them, by murmur2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from pykstreams.core.clock import Clock, SystemClock
from pykstreams.core.errors import ClusterError
from pykstreams.core.record import ConsumerRecord, ProducerRecord
from pykstreams.core.types import Headers
from pykstreams.runtime.clients.bounded import close_in_time
from pykstreams.runtime.clients.errors import Meaning, cluster_error, meaning_of
from pykstreams.runtime.clients.sent_records import sent_headers

_PATIENCE_S: Final = 30.0
_STEP_S: Final = 0.1
_ANY_PARTITION: Final = -1
_NOW: Final = 0


class PlainRecords:
    """Writes and reads records of one cluster."""

    def __init__(self, bootstrap_servers: str, clock: Clock | None = None) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._clock = clock or SystemClock()
        self._producer: Producer | None = None

    def send(self, record: ProducerRecord) -> None:
        """Writes one record, and returns when the cluster has it; ``ClusterError`` when it does not take it."""
        if self._producer is None:
            self._producer = Producer(
                {
                    "bootstrap.servers": self._bootstrap_servers,
                    "partitioner": "murmur2_random",
                    "linger.ms": 0,
                    "log_level": 3,
                }
            )
        refused: list[str] = []

        def delivered(error: object, message: Message) -> None:
            if error is not None:
                refused.append(str(error))

        try:
            self._producer.produce(
                record.topic,
                key=record.key,
                value=record.value,
                headers=list(sent_headers(record.headers)),
                on_delivery=delivered,
                partition=_ANY_PARTITION if record.partition is None else record.partition,
                timestamp=_NOW if record.timestamp is None else record.timestamp,
            )
        except KafkaException as exception:
            raise cluster_error(f"writing to topic {record.topic!r}", exception) from exception
        if self._producer.flush(_PATIENCE_S):
            raise ClusterError(f"topic {record.topic!r} did not take a record within {_PATIENCE_S:g} s")
        if refused:
            raise ClusterError(f"topic {record.topic!r} did not take a record: {refused[0]}")

    def close(self) -> None:
        """Ends the producer, which looks for its brokers as long as it is there; the next record has a new one."""
        self._producer = None

    def read(
        self,
        topic: str,
        positions: Mapping[int, int],
        has_enough: Callable[[ConsumerRecord], bool],
        timeout_s: float,
    ) -> None:
        """Hands over committed records, one by one, until ``has_enough`` says so or the time is over.

        :param positions: where to begin in each partition; at its start where it is not named.
        """
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "group.id": "plain-records",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "log_level": 3,
            }
        )
        try:
            count = self._partitions(consumer, topic)
            consumer.assign([TopicPartition(topic, number, positions.get(number, 0)) for number in range(count)])
            deadline = self._clock.monotonic() + timeout_s
            while (left := deadline - self._clock.monotonic()) > 0:
                message = consumer.poll(min(_STEP_S, left))
                if message is None:
                    continue
                if (error := message.error()) is not None:
                    if meaning_of(error) in (Meaning.REFUSED, Meaning.BROKEN):
                        raise KafkaException(error)
                elif has_enough(_record(message)):
                    return
        except KafkaException as exception:
            raise cluster_error(f"reading topic {topic!r}", exception) from exception
        finally:
            close_in_time("that reads records", consumer.close)

    def _partitions(self, consumer: Consumer, topic: str) -> int:
        found = consumer.list_topics(topic, timeout=_PATIENCE_S).topics[topic]
        if found.error is not None:
            raise ClusterError(f"topic {topic!r} cannot be read: {found.error.str()}; create it first")
        return len(found.partitions)


def _record(message: Message) -> ConsumerRecord:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    headers = cast("Headers", tuple(message.headers() or ()))
    return ConsumerRecord(
        topic or "", partition or 0, offset or 0, message.timestamp()[1], message.key(), message.value(), headers
    )
