"""The member of the consumer group: it subscribes and commits."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaTopicPartition

from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import ClusterError, ConfigError, TaskMigratedError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.clients import committed_offsets
from pykstreams.runtime.clients.bounded import close_in_time
from pykstreams.runtime.clients.errors import cluster_error, is_fencing, is_passing, kafka_error
from pykstreams.runtime.clients.positions import Offsets, ours
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

_FOREIGN_MEMBERS = (
    "the group has members of another kind, so this worker waits: %s. They are those of a Java application with this "
    "application.id. If it runs, stop it. If it was stopped, they stay until its session.timeout.ms has passed (45 s "
    "by default), for KafkaStreams.close() does not take them out of the group; this worker then goes on by itself. To "
    "hand over at once, close it with CloseOptions.timeout(...).withGroupMembershipOperation(LEAVE_GROUP)"
)


class GroupConsumer:
    """A member of the consumer group: subscribes, commits, and never reads a record."""

    def __init__(self, consumer: Consumer, commit_timeout_s: float) -> None:
        committed_offsets.handle_of(consumer)  # what cannot commit is refused now, and not at the first commit
        self._consumer: Consumer | None = consumer
        self._commit_timeout_s = commit_timeout_s
        self._warnings = RepeatedWarnings(log, SystemClock())

    @classmethod
    def open(
        cls, supplier: KafkaClientSupplier, config: StreamsConfig, client_id: str, *, thread: int = 1
    ) -> GroupConsumer:
        """Makes the consumer; by the number of its thread its ``group.instance.id`` differs from others."""
        application_id = config.application_id
        return cls(
            supplier.get_consumer(
                {
                    **config.get_main_consumer_configs(application_id, client_id, thread),
                    "auto.offset.reset": "latest",
                    # it reads no records, but offsets, and waits for those in an open transaction
                    "isolation.level": "read_committed",
                    "logger": LIBRDKAFKA_LOG,
                }
            ),
            min(config.request_timeout_ms / 1000, _COMMIT_S),
        )

    def subscribe(
        self,
        topics: Collection[str],
        *,
        on_assign: Callable[[list[TopicPartition]], None],
        on_revoke: Callable[[list[TopicPartition]], None],
        on_lost: Callable[[list[TopicPartition]], None],
    ) -> None:
        """Joins; the callbacks run inside ``poll`` and get only what changes."""

        def assign(consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
            consumer.incremental_assign(partitions)
            consumer.pause(partitions)
            on_assign(ours(partitions))

        def revoke(consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
            on_revoke(ours(partitions))
            consumer.incremental_unassign(partitions)

        def lose(consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
            on_lost(ours(partitions))
            consumer.incremental_unassign(partitions)

        self._open.subscribe(list(topics), on_assign=assign, on_revoke=revoke, on_lost=lose)

    def poll(self, timeout: float) -> None:
        """Serves the group; what a rebalance callback raises is raised here."""
        try:
            message = served(lambda: self._open.poll(timeout))
        except KafkaException as exception:
            error: KafkaError | None = kafka_error(exception)
        else:
            error = None if message is None else message.error()
        if error is None:
            return
        if error.code() == KafkaError._MAX_POLL_EXCEEDED:
            log.warning(
                "the worker was busy for longer than max.poll.interval.ms and left the group: %s; "
                "raise consumer.max.poll.interval.ms, or do less per record",
                error.str(),
            )
        elif error.fatal() or error.code() == KafkaError._FATAL:
            _check_instance(error)
            raise TaskMigratedError(f"this worker was put out of the group: {error.str()} ({error.name()})")
        elif error.code() in (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED):
            raise ClusterError(f"joining the group is refused: {error.str()} ({error.name()})")
        elif error.code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL:
            self._warnings.warn("foreign members", _FOREIGN_MEMBERS, error.str())
        else:
            self._warnings.warn(
                error.name(), "the group is held up: %s (%s); the client tries again", error.str(), error.name()
            )

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
        _check_instance(kafka_error(exception))
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

    def group_metadata(self) -> Any:
        """The group metadata of this member, for transactions; opaque."""
        return self._open.consumer_group_metadata()

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


def _check_instance(error: KafkaError) -> None:
    """Raises ``ConfigError`` when another member has taken the ``group.instance.id`` of this one.

    A new start would take it back, and so for ever. The client puts the error into the text of a fatal one.
    """
    if KafkaError(KafkaError.FENCED_INSTANCE_ID).str() in error.str():
        raise ConfigError(
            "another worker has joined the group with the group.instance.id of this one; give each worker that runs at "
            "the same time an id of its own"
        )
