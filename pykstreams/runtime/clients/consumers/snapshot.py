"""Reads one partition between two offsets, and says so when it cannot be read as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from pykstreams.core.clock import Clock, SystemClock
from pykstreams.core.errors import ClusterError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.bounded import close_in_time
from pykstreams.runtime.clients.consumers.messages import RecordMessage
from pykstreams.runtime.clients.errors import cluster_error
from pykstreams.runtime.clients.supplier import KafkaClientSupplier

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig

_FETCH: Final = 10_000
_WAIT_S: Final = 1.0


def read_partition(
    supplier: KafkaClientSupplier,
    config: StreamsConfig,
    place: TopicPartition,
    begin: int,
    end: int,
    clock: Clock | None = None,
) -> Iterator[list[RecordMessage]]:
    """Yields the records of a partition from ``begin`` up to, and without, ``end``, in batches.

    ``ClusterError`` where records from ``begin`` on are gone (retention), or where nothing comes for
    ``request.timeout.ms``, whatever time the caller takes between batches. Only what is committed is read.
    """
    if begin >= end:
        return
    consumer = supplier.get_restore_consumer(
        {
            **config.get_restore_consumer_configs(f"{config.application_id}-snapshot-{place.topic}-{place.partition}"),
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([KafkaTopicPartition(place.topic, place.partition, begin)])
        read = _read(consumer, place, end, config.request_timeout_ms / 1000, clock or SystemClock())
        yield from cast("Iterator[list[RecordMessage]]", read)  # typed optional, set on records
    except KafkaException as exception:
        raise cluster_error(f"reading {place}", exception) from exception
    finally:
        close_in_time(f"that reads {place}", consumer.close)


def _read(
    consumer: Consumer, place: TopicPartition, end: int, timeout_s: float, clock: Clock
) -> Iterator[list[Message]]:
    deadline = clock.monotonic() + timeout_s
    while True:
        messages: list[Message] = []
        for message in consumer.consume(_FETCH, _WAIT_S):
            error = message.error()
            if error is None:
                messages.append(message)
            elif error.code() != KafkaError._PARTITION_EOF:
                raise ClusterError(
                    f"{place} cannot be read: {error.str()} ({error.name()}); where its records were deleted meanwhile "
                    "(retention), start the job again"
                )
        wanted = [message for message in messages if int(message.offset() or 0) < end]
        if wanted:
            yield wanted
            deadline = clock.monotonic() + timeout_s
        position = consumer.position([KafkaTopicPartition(*place)])[0].offset
        if position >= end:
            return
        if clock.monotonic() > deadline:
            raise ClusterError(f"{place} gave nothing for {timeout_s:g} s: read up to offset {position} of {end}")
