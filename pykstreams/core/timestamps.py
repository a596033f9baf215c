"""Timestamp extractors: callables ``(record, partition time) -> event time``, all in ms since the epoch.

The partition time is the highest time of the records of that partition so far, -1 before the first. A
negative result makes the runtime drop the record (``FailOnInvalidTimestamp`` and its relatives, 4.3.1).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod

from pykstreams.core.clock import Clock, SystemClock
from pykstreams.core.errors import StreamsError
from pykstreams.core.record import ConsumerRecord

log = logging.getLogger(__name__)


class ExtractRecordMetadataTimestamp(ABC):
    """Takes the time that the record carries; subclasses decide what a negative one means."""

    def __call__(self, record: ConsumerRecord, partition_time: int) -> int:
        timestamp = record.timestamp
        return timestamp if timestamp >= 0 else self.on_invalid_timestamp(record, timestamp, partition_time)

    @abstractmethod
    def on_invalid_timestamp(self, record: ConsumerRecord, record_timestamp: int, partition_time: int) -> int:
        """Returns a time for a record that carries a negative one."""


class FailOnInvalidTimestamp(ExtractRecordMetadataTimestamp):
    """Raises ``StreamsError`` for a negative time (the default)."""

    def on_invalid_timestamp(self, record: ConsumerRecord, record_timestamp: int, partition_time: int) -> int:
        raise StreamsError(
            f"record {record.topic}-{record.partition} offset {record.offset} has the timestamp "
            f"{record_timestamp}, which is negative: its producer was older than Kafka 0.10 or set it so; "
            "use another timestamp extractor (default.timestamp.extractor) to process such records"
        )


class LogAndSkipOnInvalidTimestamp(ExtractRecordMetadataTimestamp):
    """Warns of a record with a negative time, which is then dropped."""

    def on_invalid_timestamp(self, record: ConsumerRecord, record_timestamp: int, partition_time: int) -> int:
        log.warning(
            "record %s-%d offset %d is dropped: its timestamp %d is negative",
            record.topic,
            record.partition,
            record.offset,
            record_timestamp,
        )
        return record_timestamp


class UsePartitionTimeOnInvalidTimestamp(ExtractRecordMetadataTimestamp):
    """Takes the partition time in place of a negative time; ``StreamsError`` when none is known yet."""

    def on_invalid_timestamp(self, record: ConsumerRecord, record_timestamp: int, partition_time: int) -> int:
        if partition_time < 0:
            raise StreamsError(
                f"record {record.topic}-{record.partition} offset {record.offset} has the timestamp "
                f"{record_timestamp}, and no partition time is known yet that could stand for it; "
                "use another timestamp extractor (default.timestamp.extractor) to process such records"
            )
        return partition_time


class WallclockTimestampExtractor:
    """Takes the wall-clock time at which the record is read: processing time in place of event time.

    Without a clock of its own it follows that of its task, which in a test driver is the driver's.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock

    def on_clock(self, clock: Clock) -> WallclockTimestampExtractor:
        """Returns the extractor that a task uses: this one if it has a clock, else one on the task's."""
        return self if self._clock is not None else WallclockTimestampExtractor(clock)

    def __call__(self, record: ConsumerRecord, partition_time: int) -> int:
        return (self._clock or SystemClock()).now_ms()
