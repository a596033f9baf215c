"""The offsets of a group, for who is no member of it: before the application runs, and for its standby tasks."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException

from pykstreams.core.errors import ClusterError, TaskMigratedError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients import committed_offsets
from pykstreams.runtime.clients.bounded import close_in_time
from pykstreams.runtime.clients.errors import cluster_error, is_fencing, is_passing, kafka_error
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.clients.served import served
from pykstreams.runtime.clients.supplier import LIBRDKAFKA_LOG, KafkaClientSupplier

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig

log = logging.getLogger(__name__)

_COMMIT_S = 10.0
"""How long a commit is waited for at a time; a worker serves nobody meanwhile."""
_NOT_NOW = (
    KafkaError.ILLEGAL_GENERATION,
    # a broker that has just started does not know of all topics; one that was deleted is reported by the topic watch
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
"""Refusals of a commit, beside what passes anywhere, that may be none a moment later."""


class GroupConsumer:
    """A consumer that never joins and never reads a record; brokers take its commits while the group has no member."""

    def __init__(self, consumer: Consumer, commit_timeout_s: float) -> None:
        committed_offsets.handle_of(consumer)  # what cannot commit is refused now, and not at the first commit
        self._consumer: Consumer | None = consumer
        self._commit_timeout_s = commit_timeout_s

    @classmethod
    def open(cls, supplier: KafkaClientSupplier, config: StreamsConfig, client_id: str) -> GroupConsumer:
        """Makes the consumer."""
        application_id = config.application_id
        return cls(
            supplier.get_consumer(
                {
                    **config.get_main_consumer_configs(application_id, client_id, 1),
                    "auto.offset.reset": "latest",
                    # it reads no records, but offsets, and waits for those in an open transaction
                    "isolation.level": "read_committed",
                    "logger": LIBRDKAFKA_LOG,
                }
            ),
            min(config.request_timeout_ms / 1000, _COMMIT_S),
        )

    def poll(self, timeout: float) -> None:
        """Waits, while the client looks for its coordinator."""
        served(lambda: self._open.poll(timeout))

    def commit(self, offsets: Offsets) -> bool:
        """Commits and waits; false when the group has other things to do and the commit must be tried again.

        Raises ``TaskMigratedError`` when this member no longer counts, ``ClusterError`` for a refusal.
        """
        try:
            committed_offsets.commit(self._open, offsets, self._commit_timeout_s)
        except KafkaException as exception:
            return self._not_committed(exception)
        return True

    @staticmethod
    def _not_committed(exception: KafkaException) -> bool:
        # an illegal generation is that of a member between two rebalances: had it been put out, its id were unknown
        if is_fencing(exception) and kafka_error(exception).code() != KafkaError.ILLEGAL_GENERATION:
            raise TaskMigratedError(
                f"offsets were not committed, because this worker is no longer in the group: "
                f"{kafka_error(exception).str()}"
            ) from exception
        if is_passing(exception) or kafka_error(exception).code() in _NOT_NOW:
            log.info("offsets were not committed yet: %s", kafka_error(exception).str())
            return False
        raise cluster_error("committing offsets", exception) from exception

    def committed(self, partitions: Collection[TopicPartition], timeout: float) -> Offsets | None:
        """Reads committed offsets; ``None`` when the broker does not know yet, so try again."""
        if not partitions:
            return {}
        try:
            return committed_offsets.committed(self._open, partitions, timeout)
        except KafkaException as exception:
            if is_passing(exception):
                log.info("committed offsets could not be read yet: %s", kafka_error(exception).str())
                return None
            raise cluster_error("reading committed offsets", exception) from exception

    def transaction_metadata(self) -> bytes:
        """The group, without a member, as a transaction takes it."""
        found: bytes = self._open.consumer_group_metadata()
        return found

    def close(self, leave: bool) -> None:
        """Leaves the group, or just falls silent, so that the tasks stay here until the session ends."""
        if self._consumer is None:
            return
        last = [self._consumer]
        self._consumer = None
        # without its last reference librdkafka is taken down, and does not say that the member leaves
        close_in_time("of the group", last[0].close if leave else last.clear)

    @property
    def _open(self) -> Consumer:
        if self._consumer is None:
            raise ClusterError("the member of the group is closed")
        return self._consumer
