"""The door to Kafka: clients with the settings of this runtime; the one module that imports confluent_kafka.

Invariant: no confluent_kafka object but messages, producers and opaque group metadata leaves this module, and
every error that leaves it is one of ours. ``AdminClient.list_consumer_group_offsets`` is never called: it can
end the interpreter when a broker answers NOT_COORDINATOR.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import confluent_kafka
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
)
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it re-exports without saying so
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterError, MissingSourceTopicError, TaskMigratedError
from pykstreams.core.ids import TopicPartition

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig

log = logging.getLogger(__name__)

Offsets: TypeAlias = Mapping[TopicPartition, tuple[int, str]]
"""Partition -> next offset to read, and the metadata that is committed with it."""

BEGINNING: int = OFFSET_BEGINNING
END: int = OFFSET_END

FETCH_SIZE = 1000
"""Messages a fetch takes at once; larger batches were slower, ten times larger ones by half."""

RESTORE_SIZE = 2000
"""Messages a restore step takes at once."""

_RETRY_PAUSE_S = 1.0
_LIBRDKAFKA_LOG = logging.getLogger("pykstreams.librdkafka")

_spec: Any = OffsetSpec  # without types
_message_error = Message.error
_message_topic = Message.topic
_message_partition = Message.partition

_FENCED = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.STALE_MEMBER_EPOCH,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError._ASSIGNMENT_LOST,
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
    }
)
_PASSING = frozenset(
    {
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError.NOT_CONTROLLER,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._WAIT_COORD,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
    }
)


class KafkaClientSupplier(ABC):
    """Makes the clients; hand in your own to see or change what they are made of."""

    @abstractmethod
    def get_admin(self, config: Mapping[str, object]) -> AdminClient:
        """Makes the administrative client."""

    @abstractmethod
    def get_producer(self, config: Mapping[str, object]) -> Producer:
        """Makes a producer."""

    @abstractmethod
    def get_consumer(self, config: Mapping[str, object]) -> Consumer:
        """Makes a consumer that reads input, or one that keeps the membership in the group."""

    @abstractmethod
    def get_restore_consumer(self, config: Mapping[str, object]) -> Consumer:
        """Makes a consumer that reads changelogs."""

    @abstractmethod
    def get_global_consumer(self, config: Mapping[str, object]) -> Consumer:
        """Makes a consumer that reads whole topics into global stores."""


class DefaultKafkaClientSupplier(KafkaClientSupplier):
    """Plain clients of confluent_kafka."""

    def get_admin(self, config: Mapping[str, object]) -> AdminClient:
        return AdminClient(cast("dict[str, Any]", dict(config)))

    def get_producer(self, config: Mapping[str, object]) -> Producer:
        return Producer(dict(config))

    def get_consumer(self, config: Mapping[str, object]) -> Consumer:
        return Consumer(dict(config))

    def get_restore_consumer(self, config: Mapping[str, object]) -> Consumer:
        return Consumer(dict(config))

    def get_global_consumer(self, config: Mapping[str, object]) -> Consumer:
        return Consumer(dict(config))


def kafka_error(exception: KafkaException) -> KafkaError:
    """The error inside an exception of the client."""
    error: KafkaError = exception.args[0]
    return error


def is_fencing(exception: KafkaException) -> bool:
    """Tells whether another worker has taken over from this one."""
    return kafka_error(exception).code() in _FENCED


def is_passing(exception: KafkaException) -> bool:
    """Tells whether the same request may well succeed a moment later."""
    error = kafka_error(exception)
    return error.code() in _PASSING or error.retriable()


def cluster_error(doing: str, exception: KafkaException) -> ClusterError:
    """Puts a refusal of the cluster into words: what was tried, and what came back."""
    error = kafka_error(exception)
    return ClusterError(f"{doing} failed: {error.str()} ({error.name()})")


def producer_settings(
    config: StreamsConfig, client_id: str, *, transactional_id: str | None, on_error: Callable[..., None]
) -> dict[str, object]:
    """Settings of a worker's producer; ``on_error(error, message)`` is called for failed deliveries only."""
    settings: dict[str, object] = {
        "queue.buffering.max.messages": 500_000,
        "queue.buffering.max.kbytes": 262_144,
        **config.get_producer_configs(client_id),
        "on_delivery": on_error,
        "logger": _LIBRDKAFKA_LOG,
    }
    if transactional_id is not None:
        settings["transactional.id"] = transactional_id
    return settings


@dataclass(slots=True)
class Fetched:
    """What one look at the broker gave."""

    runs: dict[tuple[str, int], list[Message]] = field(default_factory=dict)
    caught_up: list[TopicPartition] = field(default_factory=list)
    """Partitions of which everything there is has been read."""
    lost_position: list[TopicPartition] = field(default_factory=list)
    """Partitions whose next offset does not exist (any more); they stand still until ``seek``."""


class DataConsumer:
    """Reads input partitions that it is given one by one; knows no group."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._closed = False

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
                    "logger": _LIBRDKAFKA_LOG,
                }
            )
        )

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Adds partitions, each from an offset, ``BEGINNING`` or ``END``."""
        if positions:
            self._consumer.incremental_assign(_at(positions))

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        """Stops reading partitions; what was prefetched of them is gone."""
        if partitions:
            self._consumer.incremental_unassign(_bare(partitions))

    def fetch(self, timeout: float) -> Fetched:
        """Waits up to ``timeout`` seconds for the first message, and takes at once whatever else is there."""
        first = self._consumer.poll(timeout)
        if first is None:
            return Fetched()
        batch = [first, *self._consumer.consume(FETCH_SIZE - 1, 0)]
        fetched = Fetched()
        if any(map(_message_error, batch)):
            batch = _without_events(batch, fetched)
            if not batch:
                return fetched
        topics = list(map(_message_topic, batch))
        partitions = list(map(_message_partition, batch))
        count = len(batch)
        runs: dict[Any, list[Message]] = cast("Any", fetched.runs)
        if partitions.count(partitions[0]) == count and topics.count(topics[0]) == count:
            runs[topics[0], partitions[0]] = batch
            return fetched
        for place, message in zip(zip(topics, partitions, strict=True), batch, strict=True):
            run = runs.get(place)
            if run is None:
                runs[place] = [message]
            else:
                run.append(message)
        return fetched

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Goes on at an offset, ``BEGINNING`` or ``END``."""
        self._consumer.seek(KafkaTopicPartition(partition.topic, partition.partition, offset))

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Holds partitions back; throws away what was prefetched, so it is dear."""
        if partitions:
            self._consumer.pause(_bare(partitions))

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Reads paused partitions again."""
        if partitions:
            self._consumer.resume(_bare(partitions))

    def close(self) -> None:
        """Closes the consumer; a second call does nothing."""
        if not self._closed:
            self._closed = True
            self._consumer.close()


def _without_events(batch: list[Message], fetched: Fetched) -> list[Message]:
    """Takes everything out that is no record, and notes it; raises what cannot be waited out."""
    records: list[Message] = []
    for message in batch:
        error = message.error()
        if error is None:
            records.append(message)
            continue
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            fetched.caught_up.append(_place(message))
        elif code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            fetched.lost_position.append(_place(message))
        elif code in (
            KafkaError.UNKNOWN_TOPIC_OR_PART,
            KafkaError._UNKNOWN_TOPIC,
            KafkaError._UNKNOWN_PARTITION,
        ):
            raise MissingSourceTopicError(
                f"{_place(message)} was read and is gone: {error.str()}; create the topic again, or take it "
                "out of the topology"
            )
        elif code in _PASSING or (error.retriable() and not error.fatal()):
            log.warning(
                "reading is held up: %s (%s); the client tries again by itself", error.str(), error.name()
            )
        else:
            raise ClusterError(f"reading {_place(message)} failed: {error.str()} ({error.name()})")
    return records


class RestoreConsumer:
    """Reads changelogs; what it gives tells the position of a partition, not only its records."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    @classmethod
    def open(cls, supplier: KafkaClientSupplier, config: StreamsConfig, client_id: str) -> RestoreConsumer:
        """Makes the consumer."""
        return cls(
            supplier.get_restore_consumer(
                {
                    **config.get_restore_consumer_configs(client_id),
                    "auto.offset.reset": "error",
                    "enable.partition.eof": True,
                    "logger": _LIBRDKAFKA_LOG,
                }
            )
        )

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Adds partitions, each from an offset or ``BEGINNING``."""
        if positions:
            self._consumer.incremental_assign(_at(positions))

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        """Stops reading partitions."""
        if partitions:
            self._consumer.incremental_unassign(_bare(partitions))

    def fetch(self, timeout: float) -> RestoreBatch:
        """Takes up to ``RESTORE_SIZE`` messages."""
        first = self._consumer.poll(timeout)
        batch = RestoreBatch()
        if first is None:
            return batch
        messages = [first, *self._consumer.consume(RESTORE_SIZE - 1, 0)]
        if any(map(_message_error, messages)):
            messages = self._without_events(messages, batch)
        for message in messages:
            place = TopicPartition(message.topic() or "", message.partition() or 0)
            run = batch.runs.get(place)
            if run is None:
                batch.runs[place] = [message]
            else:
                run.append(message)
        for place, run in batch.runs.items():
            last = run[-1].offset()
            assert last is not None
            batch.positions[place] = max(last + 1, batch.positions.get(place, 0))
        return batch

    def _without_events(self, messages: list[Message], batch: RestoreBatch) -> list[Message]:
        fetched = Fetched()
        for message in messages:
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                batch.positions[_place(message)] = message.offset() or 0
        records = _without_events(messages, fetched)
        batch.out_of_range.extend(fetched.lost_position)
        return records

    def close(self) -> None:
        """Closes the consumer."""
        self._consumer.close()


@dataclass(slots=True)
class RestoreBatch:
    """Changelog records, and where each partition that moved now stands.

    A position also moves over compaction holes and transaction markers, of which no record tells.
    """

    runs: dict[TopicPartition, list[Message]] = field(default_factory=dict)
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    out_of_range: list[TopicPartition] = field(default_factory=list)


class GroupConsumer:
    """A member of the consumer group: subscribes, commits, and never reads a record."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer: Consumer | None = consumer

    @classmethod
    def open(cls, supplier: KafkaClientSupplier, config: StreamsConfig, client_id: str) -> GroupConsumer:
        """Makes the consumer."""
        application_id = config.application_id
        return cls(
            supplier.get_consumer(
                {
                    **config.get_main_consumer_configs(application_id, client_id, 1),
                    "auto.offset.reset": "latest",
                    "logger": _LIBRDKAFKA_LOG,
                }
            )
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
            on_assign(_ours(partitions))

        def revoke(consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
            on_revoke(_ours(partitions))
            consumer.incremental_unassign(partitions)

        def lose(consumer: Consumer, partitions: list[KafkaTopicPartition]) -> None:
            on_lost(_ours(partitions))
            consumer.incremental_unassign(partitions)

        self._open.subscribe(list(topics), on_assign=assign, on_revoke=revoke, on_lost=lose)

    def poll(self, timeout: float) -> None:
        """Serves the group; what a rebalance callback raises is raised here."""
        message = self._open.poll(timeout)
        if message is None:
            return
        error = message.error()
        if error is None:
            return
        if error.code() == KafkaError._MAX_POLL_EXCEEDED:
            log.warning(
                "the worker was busy for longer than max.poll.interval.ms and left the group: %s; "
                "raise consumer.max.poll.interval.ms, or do less per record",
                error.str(),
            )
        elif error.fatal():
            raise TaskMigratedError(f"this worker was put out of the group: {error.str()} ({error.name()})")
        elif error.code() in (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED):
            raise ClusterError(f"joining the group is refused: {error.str()} ({error.name()})")
        else:
            log.warning("the group is held up: %s (%s); the client tries again", error.str(), error.name())

    def commit(self, offsets: Offsets) -> bool:
        """Commits and waits; false when the group has other things to do and the commit must be tried again.

        Raises ``TaskMigratedError`` when this member no longer counts, ``ClusterError`` for a refusal.
        """
        wanted = [
            KafkaTopicPartition(partition.topic, partition.partition, offset, metadata)
            for partition, (offset, metadata) in offsets.items()
        ]
        try:
            done = self._open.commit(offsets=wanted, asynchronous=False)
        except KafkaException as exception:
            return self._not_committed(exception)
        for partition in done:
            if partition.error is not None:
                return self._not_committed(KafkaException(partition.error))
        return True

    @staticmethod
    def _not_committed(exception: KafkaException) -> bool:
        if is_fencing(exception):
            raise TaskMigratedError(
                f"offsets were not committed, because this worker is no longer in the group: "
                f"{kafka_error(exception).str()}"
            ) from exception
        if is_passing(exception):
            log.info("offsets were not committed yet: %s", kafka_error(exception).str())
            return False
        raise cluster_error("committing offsets", exception) from exception

    def committed(self, partitions: Collection[TopicPartition], timeout: float) -> Offsets | None:
        """Reads committed offsets; ``None`` when the broker could not tell yet, so try again."""
        if not partitions:
            return {}
        try:
            found = self._open.committed(_bare(partitions), timeout=timeout)
        except KafkaException as exception:
            if is_passing(exception):
                log.info("committed offsets could not be read yet: %s", kafka_error(exception).str())
                return None
            raise cluster_error("reading committed offsets", exception) from exception
        offsets: dict[TopicPartition, tuple[int, str]] = {}
        for partition in found:
            if partition.error is not None:
                if is_passing(KafkaException(partition.error)):
                    return None
                raise cluster_error("reading committed offsets", KafkaException(partition.error))
            if partition.offset >= 0:
                place = TopicPartition(partition.topic, partition.partition)
                offsets[place] = (partition.offset, partition.metadata or "")
        return offsets

    def group_metadata(self) -> Any:
        """What a transaction needs to know of this member; opaque."""
        return self._open.consumer_group_metadata()

    def close(self, leave: bool) -> None:
        """Leaves the group, or just falls silent, so that the tasks stay here until the session ends."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None and leave:
            consumer.close()
        # otherwise the last reference goes: librdkafka is then taken down without a leave request

    @property
    def _open(self) -> Consumer:
        if self._consumer is None:
            raise ClusterError("the member of the group is closed")
        return self._consumer


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create; ``replication`` -1 leaves it to the broker."""

    name: str
    partitions: int
    replication: int
    config: Mapping[str, str]


class ClusterAdmin:
    """Looks at topics and changes them; every call is one batch and waits for its answer."""

    def __init__(
        self, admin: AdminClient, bootstrap: str, clock: Clock, timeout_s: float, complaints: list[str]
    ) -> None:
        self.bootstrap = bootstrap
        self._admin = admin
        self._clock = clock
        self._timeout_s = timeout_s
        self._complaints = complaints

    @classmethod
    def open(
        cls, supplier: KafkaClientSupplier, config: StreamsConfig, client_id: str, clock: Clock
    ) -> ClusterAdmin:
        """Makes the client; a request waits for ``request.timeout.ms``."""
        complaints: list[str] = []
        admin = supplier.get_admin(
            {
                **config.get_admin_configs(client_id),
                "log_level": 0,  # what it would log comes to the callback, and from there into our own words
                "error_cb": lambda error: complaints.append(error.str()),
            }
        )
        timeout_s = config.request_timeout_ms / 1000
        return cls(admin, ",".join(config.bootstrap_servers), clock, timeout_s, complaints)

    def wait_until_reachable(self, stopped: Callable[[], bool] = lambda: False) -> None:
        """Waits for the cluster, aloud; ``ClusterError`` after ``request.timeout.ms`` without an answer."""
        deadline = self._clock.monotonic() + self._timeout_s
        while not stopped():
            left = deadline - self._clock.monotonic()
            try:
                self._admin.list_topics(timeout=max(0.1, min(_RETRY_PAUSE_S, left)))
                return
            except KafkaException as exception:
                self._admin.poll(0)
                reason = self._complaints[-1] if self._complaints else kafka_error(exception).str()
                self._complaints.clear()
                left = deadline - self._clock.monotonic()
                if left <= 0:
                    raise ClusterError(
                        f"no broker answered at {self.bootstrap} within {self._timeout_s:g} s: {reason}; "
                        "check bootstrap.servers and that the broker runs, or raise request.timeout.ms"
                    ) from exception
                log.warning(
                    "no broker answers at %s: %s; trying again for another %.0f s",
                    self.bootstrap,
                    reason,
                    left,
                )

    def partition_counts(self) -> dict[str, int]:
        """Every topic of the cluster with its number of partitions."""
        try:
            found = self._admin.list_topics(timeout=self._timeout_s)
        except KafkaException as exception:
            raise cluster_error(f"listing the topics of {self.bootstrap}", exception) from exception
        return {
            name: len(topic.partitions)
            for name, topic in found.topics.items()
            if topic.error is None and topic.partitions
        }

    def touch(self, topics: Iterable[str]) -> None:
        """Makes topics of an embedded cluster appear, which is by asking for them."""
        for topic in topics:
            try:
                self._admin.list_topics(topic, timeout=self._timeout_s)
            except KafkaException as exception:
                raise cluster_error(f"asking for topic {topic!r}", exception) from exception

    def create_topics(self, topics: Collection[TopicSpec]) -> None:
        """Creates topics; one that somebody else creates at the same time is fine."""
        if not topics:
            return
        wanted = [
            NewTopic(
                topic.name,
                num_partitions=topic.partitions,
                replication_factor=topic.replication,
                config=dict(topic.config),
            )
            for topic in topics
        ]
        futures = self._admin.create_topics(wanted, operation_timeout=self._timeout_s)
        for name, future in futures.items():
            self._wait(future, f"creating topic {name!r}", but_not=KafkaError.TOPIC_ALREADY_EXISTS)

    def grow_topic(self, topic: str, partitions: int) -> None:
        """Gives a topic more partitions."""
        futures = self._admin.create_partitions([NewPartitions(topic, partitions)])
        for future in futures.values():
            self._wait(
                future,
                f"growing topic {topic!r} to {partitions} partitions",
                but_not=KafkaError.INVALID_PARTITIONS,
            )

    def topic_settings(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        """The settings of topics."""
        if not topics:
            return {}
        futures = self._admin.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in topics])
        settings: dict[str, dict[str, str]] = {}
        for resource, future in futures.items():
            entries: dict[str, Any] = self._wait(future, f"reading the settings of topic {resource.name!r}")
            settings[resource.name] = {name: entry.value for name, entry in entries.items()}
        return settings

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last record, transaction markers and open transactions included."""
        return self._offsets(partitions, _spec.latest(), "end")

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset that there still is."""
        return self._offsets(partitions, _spec.earliest(), "beginning")

    def offsets_at(self, partitions: Collection[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """The first offset at or after a time in ms since the epoch, -1 where there is none."""
        return self._offsets(partitions, _spec.for_timestamp(timestamp), "starting")

    def _offsets(
        self, partitions: Collection[TopicPartition], spec: Any, what: str
    ) -> dict[TopicPartition, int]:
        if not partitions:
            return {}
        futures = self._admin.list_offsets(
            dict.fromkeys(_bare(partitions), spec), request_timeout=self._timeout_s
        )
        offsets: dict[TopicPartition, int] = {}
        for asked, future in futures.items():
            place = TopicPartition(asked.topic, asked.partition)
            offsets[place] = self._wait(future, f"asking for the {what} offset of {place}").offset
        return offsets

    def delete_records(self, before: Mapping[TopicPartition, int]) -> None:
        """Deletes the records before an offset of each partition."""
        if not before:
            return
        futures = self._admin.delete_records(_at(before), request_timeout=self._timeout_s)
        for place, future in futures.items():
            self._wait(
                future,
                f"deleting records of {place.topic}-{place.partition}",
                but_not=KafkaError.OFFSET_OUT_OF_RANGE,
            )

    def _wait(self, future: Future[Any], doing: str, *, but_not: int | None = None) -> Any:
        try:
            return future.result(self._timeout_s + _RETRY_PAUSE_S)
        except KafkaException as exception:
            if but_not is not None and kafka_error(exception).code() == but_not:
                return None
            raise cluster_error(doing, exception) from exception
        except TimeoutError as error:
            raise ClusterError(f"{doing} took longer than {self._timeout_s:g} s") from error


def librdkafka_version() -> str:
    """The version of the C library, for the log."""
    return str(confluent_kafka.libversion()[0])


def _place(message: Message) -> TopicPartition:
    partition = message.partition()
    return TopicPartition(message.topic() or "?", -1 if partition is None else partition)


def _at(positions: Mapping[TopicPartition, int]) -> list[KafkaTopicPartition]:
    return [KafkaTopicPartition(place.topic, place.partition, offset) for place, offset in positions.items()]


def _bare(partitions: Iterable[TopicPartition]) -> list[KafkaTopicPartition]:
    return [KafkaTopicPartition(place.topic, place.partition) for place in partitions]


def _ours(partitions: Iterable[KafkaTopicPartition]) -> list[TopicPartition]:
    return [TopicPartition(place.topic, place.partition) for place in partitions]
