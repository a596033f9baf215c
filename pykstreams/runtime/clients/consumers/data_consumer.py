"""The consumer that reads the inputs of a worker's tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from pykstreams.core.clock import Clock, SystemClock
from pykstreams.core.ids import TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.metrics.built_in.clients import CONSUMER, FETCH
from pykstreams.runtime.clients.bounded import close_in_time
from pykstreams.runtime.clients.client_statistics import statistics_of
from pykstreams.runtime.clients.consumers.messages import Fetched, by_partition, message_error, taken, without_events
from pykstreams.runtime.clients.errors import cluster_error
from pykstreams.runtime.clients.positions import at_positions, without_positions
from pykstreams.runtime.clients.served import served
from pykstreams.runtime.clients.supplier import LIBRDKAFKA_LOG, KafkaClientSupplier

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig

FETCH_SIZE = 1000
"""Messages a fetch takes at once; larger batches were slower, ten times larger ones by half."""

ENDS_AFTER_S = 1.0
"""How often the ends of the partitions are noted for other threads, in seconds at least."""


class DataConsumer:
    """Reads input partitions that it is given one by one; knows no group.

    :param clock: says when the ends are noted anew.
    """

    def __init__(self, consumer: Consumer, clock: Clock | None = None) -> None:
        self._consumer = consumer
        self._monotonic = (clock or SystemClock()).monotonic
        self._closed = False
        self._topics: set[str] = set()
        """The topics that it has been given partitions of, also where it reads them no more."""
        self._positions: dict[tuple[str, int], int] = {}
        self._starts: dict[tuple[str, int], int] = {}
        """The offsets from which partitions are read; of those that begin at one of their ends, when something came."""
        self._ends: dict[tuple[str, int], int] = {}
        """Where a partition ended when nothing more of it could be read; gone when something came."""
        self._noted_ends: dict[tuple[str, int], int] = {}
        """The ends that other threads are told: the client keeps them waiting while it waits for messages."""
        self._noted_at = float("-inf")
        self.paused: set[TopicPartition] = set()
        """The partitions that are held back."""

    @classmethod
    def open(
        cls,
        supplier: KafkaClientSupplier,
        config: StreamsConfig,
        client_id: str,
        metrics: StreamsMetrics | None = None,
    ) -> DataConsumer:
        """Makes the consumer; where a partition starts is decided outside, per source."""
        settings = config.get_main_consumer_configs(config.application_id, client_id, 1)
        return cls(
            supplier.get_consumer(
                {
                    **settings,
                    **statistics_of(settings, metrics, CONSUMER, FETCH),
                    "auto.offset.reset": "error",
                    "enable.partition.eof": True,
                    "logger": LIBRDKAFKA_LOG,
                }
            )
        )

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Adds partitions, each from an offset, ``BEGINNING`` or ``END``."""
        if positions:
            try:
                self._consumer.incremental_assign(at_positions(positions))
            except KafkaException as exception:
                raise cluster_error("taking partitions up", exception) from exception
            self._topics.update(topic for topic, _ in positions)
            self._starts.update({place: offset for place, offset in positions.items() if offset >= 0})

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        """Stops reading partitions; what was prefetched of them is gone, and so is that they are paused."""
        # the client keeps that over all assignments, and would never read them again
        self.resume(self.paused.intersection(partitions))
        for place in partitions:
            self._positions.pop(place, None)
            self._starts.pop(place, None)
            self._ends.pop(place, None)
            self._noted_ends.pop(place, None)
        if partitions:
            try:
                self._consumer.incremental_unassign(without_positions(partitions))
            except KafkaException as exception:
                raise cluster_error("giving up partitions", exception) from exception

    def fetch(self, timeout: float) -> Fetched:
        """Waits up to ``timeout`` seconds for the first message, and takes at once whatever else is there."""
        try:
            batch = served(lambda: taken(self._consumer, timeout, FETCH_SIZE))
        except KafkaException as exception:
            raise cluster_error("reading the inputs", exception) from exception
        fetched = Fetched()
        if any(map(message_error, batch)):
            batch = without_events(batch, fetched)
        fetched.runs = by_partition(batch, next(iter(self._topics)) if len(self._topics) == 1 else None)
        positions = self._positions
        for place, run in fetched.runs.items():
            positions[place] = run[-1].offset() + 1
            if place not in self._starts:
                self._starts[place] = run[0].offset()
            self._ends.pop(place, None)
        for partition, end in fetched.ends.items():
            # Behind the records of the same batch there may be markers and aborted records: no record shows them.
            # An end that is no further than the records are was overtaken by those that came after it.
            if end >= positions.get(partition, end):
                positions[partition] = self._ends[partition] = self._noted_ends[partition] = end
                self._starts.setdefault(partition, end)
        if self._monotonic() - self._noted_at >= ENDS_AFTER_S:
            self._note_ends()
        return fetched

    def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record; ``None`` where a partition is read from one of its ends, and none came yet."""
        return self._positions.get(partition, self._starts.get(partition))

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets the brokers have beyond what was fetched, ``None`` while that is not known.

        None beyond the end that was reached, although the records of an open transaction may lie there: they cannot be
        read, as Kafka Streams' lag does not count them (``KafkaConsumer.currentLag``, 4.3.1).
        """
        position = self._positions.get(partition)
        if position is None or self._ends.get(partition) == position:
            return None if position is None else 0
        end = self._known_end(partition.topic, partition.partition)
        return None if end < 0 else max(0, end - position)

    def end(self, partition: TopicPartition) -> int | None:
        """The end of a partition that is read, as brokers said last; ``None`` where that is not known.

        Any thread may ask, also while the consumer is closed; it never waits. The end may be ``ENDS_AFTER_S`` old.
        """
        if self._closed:
            return None
        # no end is before what was read of it
        end = max(self._noted_ends.get(partition, -1), self._positions.get(partition, -1))
        return None if end < 0 else end

    def start(self, partition: TopicPartition) -> int | None:
        """Where reading a partition began; ``None`` as for ``position``. Any thread may ask."""
        return self._starts.get(partition)

    def _note_ends(self) -> None:
        self._noted_at = self._monotonic()
        for topic, partition in self._positions:
            end = self._known_end(topic, partition)
            if end >= 0:
                self._noted_ends[topic, partition] = end

    def _known_end(self, topic: str, partition: int) -> int:
        """The end that came with a broker's last answer, negative where none is known; for the polling thread."""
        try:
            end: int = self._consumer.get_watermark_offsets(KafkaTopicPartition(topic, partition), cached=True)[1]
        except KafkaException:  # nothing is asked of a broker: the client does not know the partition (any more)
            return -1
        return end

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Goes on at an offset, ``BEGINNING`` or ``END``."""
        # seek() itself is refused (_STATE) for a partition that lost its position: give it away and take it again
        paused = self.paused.intersection([partition])
        self.unassign([partition])
        self.assign({partition: offset})
        self.pause(paused)

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Holds partitions back; throws away what was prefetched, so it is expensive."""
        if partitions:
            self.paused.update(partitions)
            try:
                self._consumer.pause(without_positions(partitions))
            except KafkaException as exception:
                raise cluster_error("pausing partitions", exception) from exception

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Reads paused partitions again."""
        if partitions:
            try:
                self._consumer.resume(without_positions(partitions))
            except KafkaException as exception:
                raise cluster_error("reading paused partitions again", exception) from exception
            self.paused.difference_update(partitions)

    def close(self) -> None:
        """Closes the consumer; a second call does nothing."""
        if not self._closed:
            self._closed = True
            close_in_time("that reads records", self._consumer.close)
