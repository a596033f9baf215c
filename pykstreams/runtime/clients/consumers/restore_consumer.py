"""The consumer that reads changelogs, and other topics as a whole."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException

from pykstreams.core.clock import SystemClock
from pykstreams.core.ids import TopicPartition
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.clients.bounded import close_in_time
from pykstreams.runtime.clients.consumers.messages import (
    HELD_UP,
    Fetched,
    RecordMessage,
    by_partition,
    message_error,
    taken,
    without_events,
)
from pykstreams.runtime.clients.errors import cluster_error, kafka_error
from pykstreams.runtime.clients.positions import at_positions, without_positions
from pykstreams.runtime.clients.served import served
from pykstreams.runtime.clients.supplier import LIBRDKAFKA_LOG, KafkaClientSupplier

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig

log = logging.getLogger(__name__)

RESTORE_SIZE = 2000
"""Messages a restore step takes at once."""

RESTORE_QUEUE = 20_000
"""Messages of a changelog that the client fetches ahead; with its own 100 000 restoring took a tenth more CPU."""

_SAMPLE_QUEUE = 100
_SAMPLE_KBYTES = 256

_LOOK_UP_S = 1.0


class RestoreConsumer:
    """Reads whole topics, such as changelogs: the positions of partitions, not only their records."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._known: set[str] = set()
        self._topics: set[str] = set()
        self._warnings = RepeatedWarnings(log, SystemClock())

    @classmethod
    def open(
        cls, supplier: KafkaClientSupplier, config: StreamsConfig, client_id: str, *, only_committed: bool = False
    ) -> RestoreConsumer:
        """Makes the consumer.

        :param only_committed: whether it passes over what transactions have written that were not committed, whatever
            the settings say.
        """
        settings = _whole_topics(config.get_restore_consumer_configs(client_id))
        if only_committed:
            settings["isolation.level"] = "read_committed"
        return cls(supplier.get_restore_consumer(settings))

    @classmethod
    def open_inputs(cls, supplier: KafkaClientSupplier, config: StreamsConfig, client_id: str) -> RestoreConsumer:
        """Makes a consumer that reads input topics again, and sees what the worker's own one sees."""
        settings = _whole_topics(config.get_restore_consumer_configs(client_id))
        main = config.get_main_consumer_configs(config.application_id, client_id, 1)
        return cls(supplier.get_restore_consumer({**settings, "isolation.level": main["isolation.level"]}))

    @classmethod
    def open_global(cls, supplier: KafkaClientSupplier, config: StreamsConfig, client_id: str) -> RestoreConsumer:
        """Makes a consumer for the topics of global stores."""
        return cls(supplier.get_global_consumer(_whole_topics(config.get_global_consumer_configs(client_id))))

    @classmethod
    def open_sample(cls, supplier: KafkaClientSupplier, config: StreamsConfig, client_id: str) -> RestoreConsumer:
        """Makes a consumer for a few records of input topics, which fetches little ahead."""
        settings = _whole_topics(config.get_restore_consumer_configs(client_id))
        main = config.get_main_consumer_configs(config.application_id, client_id, 1)
        return cls(
            supplier.get_restore_consumer(
                {
                    **settings,
                    "isolation.level": main["isolation.level"],
                    "queued.min.messages": _SAMPLE_QUEUE,
                    "queued.max.messages.kbytes": _SAMPLE_KBYTES,
                    "fetch.message.max.bytes": 1024 * _SAMPLE_KBYTES // 4,
                }
            )
        )

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Adds partitions, each from an offset or ``BEGINNING``."""
        if positions:
            topics = {place.topic for place in positions}
            self._topics |= topics
            self._look_up(topics - self._known)
            try:
                self._consumer.incremental_assign(at_positions(positions))
            except KafkaException as exception:
                raise cluster_error("taking partitions up", exception) from exception

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        """Stops reading partitions."""
        if partitions:
            try:
                self._consumer.incremental_unassign(without_positions(partitions))
            except KafkaException as exception:
                raise cluster_error("giving up partitions", exception) from exception

    def fetch(self, timeout: float) -> RestoreBatch:
        """Takes up to ``RESTORE_SIZE`` messages."""
        batch = RestoreBatch()
        try:
            messages = served(lambda: taken(self._consumer, timeout, RESTORE_SIZE))
        except KafkaException as exception:
            raise cluster_error(f"reading {', '.join(sorted(self._topics))}", exception) from exception
        if any(map(message_error, messages)):
            fetched = Fetched()
            messages = without_events(messages, fetched)
            batch.positions |= fetched.ends
            batch.at_end += fetched.ends
            batch.out_of_range += fetched.lost_position
            for what, reason in fetched.held_up.items():
                self._warnings.warn(what, HELD_UP, what, reason)
        only_topic = next(iter(self._topics)) if len(self._topics) == 1 else None
        for (topic, partition), run in by_partition(messages, only_topic).items():
            place = TopicPartition(topic, partition)
            batch.runs[place] = run
            batch.positions[place] = max(run[-1].offset() + 1, batch.positions.get(place, 0))
        return batch

    def _look_up(self, topics: Collection[str]) -> None:
        """Asks where topics are; the client by itself asks only once a second, and until then reads nothing of them."""
        for topic in sorted(topics):
            try:
                self._consumer.list_topics(topic, timeout=_LOOK_UP_S)
            except KafkaException as exception:
                log.info("where %s is was not found out yet: %s", topic, kafka_error(exception).str())
                return
            self._known.add(topic)

    def close(self) -> None:
        """Closes the consumer."""
        close_in_time("that restores", self._consumer.close)


@dataclass(slots=True)
class RestoreBatch:
    """Changelog records, and where each partition that moved now stands.

    A position also moves over compaction holes and transaction markers, which no record shows.
    """

    runs: dict[TopicPartition, list[RecordMessage]] = field(default_factory=dict)
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    at_end: list[TopicPartition] = field(default_factory=list)
    """Partitions of which everything was read that may be read now; open transactions may lie behind."""
    out_of_range: list[TopicPartition] = field(default_factory=list)


def _whole_topics(settings: Mapping[str, object]) -> dict[str, object]:
    """Settings of a consumer that gets its positions from here, and reports where a partition ends."""
    return {
        "queued.min.messages": RESTORE_QUEUE,
        **settings,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "logger": LIBRDKAFKA_LOG,
    }
