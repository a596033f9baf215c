"""The consumer that reads the inputs of a worker's tasks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.bounded import close_in_time
from pykstreams.runtime.clients.errors import cluster_error
from pykstreams.runtime.clients.messages import Fetched, by_partition, message_error, taken, without_events
from pykstreams.runtime.clients.positions import at_positions, without_positions
from pykstreams.runtime.clients.served import served
from pykstreams.runtime.clients.supplier import LIBRDKAFKA_LOG, KafkaClientSupplier

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig

FETCH_SIZE = 1000
"""Messages a fetch takes at once; larger batches were slower, ten times larger ones by half."""


class DataConsumer:
    """Reads input partitions that it is given one by one; knows no group."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._closed = False
        self._positions: dict[tuple[str, int], int] = {}
        self._ends: dict[tuple[str, int], int] = {}
        """Where a partition ended when nothing more of it could be read; gone when something came."""

    @classmethod
    def open(cls, supplier: KafkaClientSupplier, config: StreamsConfig, client_id: str) -> DataConsumer:
        """Makes the consumer; where a partition starts is decided outside, per source."""
        application_id = config.application_id
        return cls(
            supplier.get_consumer(
                {
                    **config.get_main_consumer_configs(application_id, client_id, 1),
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

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        """Stops reading partitions; what was prefetched of them is gone."""
        for place in partitions:
            self._positions.pop(place, None)
            self._ends.pop(place, None)
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
        fetched.runs = by_partition(batch)
        positions = self._positions
        for place, run in fetched.runs.items():
            positions[place] = run[-1].offset() + 1  # type: ignore[operator]  # typed optional, set on data
            self._ends.pop(place, None)
        for partition, end in fetched.ends.items():
            # Behind the records of the same batch there may be markers and aborted records: no record shows them.
            # An end that is no further than the records are was overtaken by those that came after it.
            if end >= positions.get(partition, end):
                positions[partition] = self._ends[partition] = end
        return fetched

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets the brokers have beyond what was fetched, ``None`` while that is not known.

        None beyond the end that was reached, although the records of an open transaction may lie there: they cannot be
        read, as Kafka Streams' lag does not count them (``KafkaConsumer.currentLag``, 4.3.1).
        """
        position = self._positions.get(partition)
        if position is None or self._ends.get(partition) == position:
            return None if position is None else 0
        bare = KafkaTopicPartition(partition.topic, partition.partition)
        end = self._consumer.get_watermark_offsets(bare, cached=True)[1]
        return None if end < 0 else max(0, end - position)

    def end(self, partition: TopicPartition) -> int | None:
        """The end of a partition that is read, as brokers said last; ``None`` where that is not known.

        Any thread may ask, also while the consumer is closed.
        """
        if self._closed:
            return None
        try:
            bare = KafkaTopicPartition(partition.topic, partition.partition)
            end = self._consumer.get_watermark_offsets(bare, cached=True)[1]
        except (KafkaException, RuntimeError):  # it was closed meanwhile
            return None
        return None if end < 0 else end

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Goes on at an offset, ``BEGINNING`` or ``END``."""
        # seek() itself is refused (_STATE) for a partition that lost its position: give it away and take it again
        self.unassign([partition])
        self.assign({partition: offset})

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Holds partitions back; throws away what was prefetched, so it is expensive."""
        if partitions:
            self._consumer.pause(without_positions(partitions))

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Reads paused partitions again."""
        if partitions:
            self._consumer.resume(without_positions(partitions))

    def close(self) -> None:
        """Closes the consumer; a second call does nothing."""
        if not self._closed:
            self._closed = True
            close_in_time("that reads records", self._consumer.close)
