"""Which record comes next when a task reads several partitions (``PartitionGroup``, ``RecordQueue``, 4.3.1).

The record with the smallest timestamp, of those at the heads of the queues. A record is deserialized, and its timestamp
extracted, when it becomes the head of its queue, and not before.

Invariant: a queue with a head is in the heap exactly once, under the time of its head.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.record import ConsumerRecord
from pykstreams.core.shown_values import shown
from pykstreams.core.types import Decoder, Forward, Headers, TimestampExtractor
from pykstreams.core.user_code.functions import describe_function
from pykstreams.runtime.clients.consumers.messages import RecordMessage
from pykstreams.runtime.tasks.dropped import DroppedRecords
from pykstreams.runtime.tasks.failures import Failures
from pykstreams.runtime.tasks.offset_metadata import UNKNOWN_TIME
from pykstreams.runtime.tasks.priority_queue import PriorityQueue
from pykstreams.topology.java.hash_order import hash_code

LagProvider: TypeAlias = Callable[[TopicPartition], int | None]
"""How many records of a partition are still on the brokers; ``None``: not known yet."""

Head: TypeAlias = tuple[RecordMessage, object, object, int, Headers]
"""(message, key, value, timestamp, headers) of the record that is next in its queue."""

SKIPPED = UNKNOWN_TIME
"""The timestamp of a head that stands only for its offset: the last of a run of records that were all skipped."""

_FOREVER: Final = 1 << 63
_NOW: Final = UNKNOWN_TIME


class RecordQueue:
    """The records of one partition, or in a test driver of all topics of one pattern.

    :param decoders: gives the decoders of key and value for a topic.
    :param extracts: false when the extractor gives what the record carries, unless that is negative.
    :param of_pattern: whether it has the records of all topics of a pattern.
    :param skipped: gets the offset of each record that is passed over, by partition. Its dead letter is sent by then.
    """

    __slots__ = (
        "_decoders",
        "_dropped",
        "_extract",
        "_failures",
        "_of_pattern",
        "_topic",
        "decode_key",
        "decode_value",
        "extracts",
        "head",
        "messages",
        "partition",
        "partition_time",
        "root",
        "skipped",
        "source",
    )

    def __init__(
        self,
        partition: TopicPartition,
        source: str,
        root: Forward,
        decoders: Callable[[str], tuple[Decoder, Decoder]],
        extract: TimestampExtractor,
        failures: Failures,
        dropped: DroppedRecords,
        *,
        skipped: dict[TopicPartition, int],
        extracts: bool = True,
        of_pattern: bool = False,
    ) -> None:
        self.partition = partition
        self.source = source
        self.root = root
        self.messages: deque[RecordMessage] = deque()
        self.head: Head | None = None
        self.partition_time = UNKNOWN_TIME
        self._decoders = decoders
        self._extract = extract
        self.extracts = extracts
        self._of_pattern = of_pattern
        self._failures = failures
        self._dropped = dropped
        self.skipped = skipped
        self._topic = partition.topic
        self.decode_key, self.decode_value = decoders(partition.topic)

    def __len__(self) -> int:
        return len(self.messages) + (self.head is not None)

    @property
    def next_offset(self) -> int | None:
        """The offset of the first record that waits, ``None`` without one; a head that was skipped does not."""
        head = self.head
        if head is not None and head[3] != SKIPPED:
            return head[0].offset()
        return self.messages[0].offset() if self.messages else None

    def run(self, until: int) -> Iterator[Head]:
        """Yields the head, and those behind it as long as their times are below ``until``.

        Each is given when the one behind it has moved to its place.
        """
        while (head := self.head) is not None:
            self.head = None
            if head[3] > self.partition_time:
                self.partition_time = head[3]
            self.fill_head()
            yield head
            if self.head is None or self.head[3] >= until:
                return

    def fill_head(self) -> None:
        """Makes the first record that can be used the head, where there is none.

        Records that are to be skipped are passed over; when they were all there was, the last of them becomes the head,
        so that the other inputs need not wait for this one (``CorruptedRecord``, 4.3.1).
        """
        messages = self.messages
        skipped = None
        while messages:
            message = messages.popleft()
            if self._of_pattern and message.topic() != self._topic:
                self._topic = message.topic()
                self.decode_key, self.decode_value = self._decoders(self._topic)
            headers: Headers = message.headers() or ()
            try:
                key = self.decode_key(message.key(), headers)
                value = self.decode_value(message.value(), headers)
            except Exception as error:
                self._failures.undecodable(self.source, message, self.decode_key, error)
                skipped = message
                continue
            timestamp: int = message.timestamp()[1]
            if self.extracts or timestamp < 0:
                extracted = self.timestamp_of(message, key, value, headers)
                if extracted is None:
                    skipped = message
                    continue
                timestamp = extracted
            self.head = (message, key, value, timestamp, headers)
            break
        else:
            if skipped is not None:
                self.head = (skipped, None, None, SKIPPED, ())
        if skipped is not None:
            self.skipped[self.partition] = skipped.offset()

    def timestamp_of(self, message: RecordMessage, key: object, value: object, headers: Headers) -> int | None:
        """The extracted timestamp; ``None`` when it is negative, so that the record is to be skipped."""
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        record = ConsumerRecord(topic, partition, offset, message.timestamp()[1], key, value, headers)
        try:
            timestamp = self._extract(record, self.partition_time)
        except StreamsError:
            raise
        except Exception as error:
            raise StreamsError(
                f"timestamp extractor {describe_function(self._extract)} of {self.source} failed at record "
                f"{topic}-{partition} offset {offset}: {error!r}"
            ) from error
        try:
            is_outside = timestamp >> 63  # of 0 to 2**63 - 1; unlike a comparison it takes no float
        except TypeError as error:
            raise self._no_time(timestamp, record) from error
        if not is_outside:
            return timestamp
        if timestamp > 0:
            raise self._no_time(timestamp, record)
        self._dropped.drop(
            self.source,
            f"timestamp extractor {describe_function(self._extract)} gives timestamps below 0",
            f"it gave {timestamp} for {topic}-{partition}@{offset}",
        )
        return None

    def _no_time(self, given: object, record: ConsumerRecord) -> StreamsError:
        return StreamsError(
            f"timestamp extractor {describe_function(self._extract)} of {self.source} gave {type(given).__name__} "
            f"{shown(given)} for record {record.topic}-{record.partition} offset {record.offset}; it must give an int, "
            "in milliseconds since 1970: int(when.timestamp() * 1000) for a datetime, and -1 to drop a record"
        )


class PartitionGroup:
    """The queues of a task, and how long an empty one is waited for.

    :param max_idle_ms: ``max.task.idle.ms``; -1 never waits, 0 waits only for what is known to be on the brokers.
    :param lag: the number of records of a partition still on the brokers; without it there are none.
    """

    def __init__(self, queues: Mapping[TopicPartition, RecordQueue], max_idle_ms: int, lag: LagProvider | None) -> None:
        self.queues = queues
        self._by_time: PriorityQueue[RecordQueue] = PriorityQueue()
        self._in_order = [queues[partition] for partition in partition_order(queues)]
        self._max_idle_ms = max_idle_ms
        self._lag = lag
        self._never_waits = max_idle_ms < 0 or (max_idle_ms == 0 and lag is None)
        self._deadlines: dict[TopicPartition, int] = {}

    def add(self, queue: RecordQueue, messages: Iterable[RecordMessage]) -> None:
        """Puts records at the end of a queue."""
        was_empty = queue.head is None
        queue.messages.extend(messages)
        if was_empty:
            queue.fill_head()
            self._enter(queue)

    @property
    def lacks_input(self) -> bool:
        """Whether an input has no record to compare with, although it was waited for."""
        return not self._never_waits and len(self._by_time) < len(self.queues)

    def is_ready(self, now: int) -> bool:
        """Whether the next record may be taken: no queue is empty, or the empty ones were waited for long enough.

        An empty queue gets its deadline when a check comes to it. A check goes through the queues in Kafka Streams'
        order and ends at the first that must be waited for, as there.
        """
        if not self._by_time:
            return False
        if self._never_waits:
            return True
        if len(self._by_time) == len(self.queues):
            self._deadlines.clear()
            return True
        for queue in self._in_order:
            partition = queue.partition
            if queue.head is not None:
                self._deadlines.pop(partition, None)
                continue
            lag = 0 if self._lag is None else self._lag(partition)
            if lag is None or lag > 0:
                self._deadlines.pop(partition, None)
                return False
            latest = now + self._max_idle_ms
            deadline = self._deadlines.setdefault(partition, latest)
            if deadline > latest:  # the clock was set back
                deadline = self._deadlines[partition] = latest
            if now < deadline:
                return False
        return True

    def leave(self) -> tuple[RecordQueue, int]:
        """Removes the queue whose head comes next; returns until which time its records come before all others.

        While it is out and nothing is added, ``is_ready`` would go on to say what it said before. Beside one or two
        other queues it may stay out until the time of the next head. Beside three or more it comes back after one
        record: in Java's ``PriorityQueue``, whose order of equal times is copied, which of them comes next depends on
        how often a queue was taken out and put back.
        """
        queue, rest = self._by_time.pop(), self._by_time
        if not rest:
            return queue, _FOREVER
        return queue, rest.first_time if len(rest) <= 2 else _NOW

    def come_back(self, queue: RecordQueue) -> None:
        """Puts back the queue that was taken out."""
        self._enter(queue)

    def _enter(self, queue: RecordQueue) -> None:
        if queue.head is not None:
            self._by_time.add(queue.head[3], queue)


def partition_order(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Returns partitions in the order in which a ``HashMap`` iterates over them, filled in the order given."""
    found = list(partitions)
    buckets = 16
    while len(found) > buckets * 3 // 4:
        buckets *= 2

    def bucket(partition: TopicPartition) -> int:
        code = 31 * (31 + partition.partition) + hash_code(partition.topic) & 0xFFFFFFFF
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(found, key=bucket)
