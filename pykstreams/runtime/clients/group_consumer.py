"""The door to Kafka: clients with the settings of this runtime (the administrative one is in ``kafka_admin``).

Invariant: no confluent_kafka object but messages, producers and opaque group metadata leaves this module, and
every error that leaves it is one of ours.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    murmur2,
)
from confluent_kafka import TopicPartition as KafkaTopicPartition
from confluent_kafka.admin import AdminClient

from pykstreams.core.errors import ClusterError, MissingSourceTopicError, TaskMigratedError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.membership import Offsets

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig

log = logging.getLogger(__name__)

BEGINNING: int = OFFSET_BEGINNING
END: int = OFFSET_END

partition_for_key: Callable[[bytes, int], int] = murmur2
"""The partition that Kafka's default partitioner chooses: as ``core.hashing``'s, at a twentieth of its time."""

FETCH_SIZE = 1000
"""Messages a fetch takes at once; larger batches were slower, ten times larger ones by half."""

RESTORE_SIZE = 2000
"""Messages a restore step takes at once."""

RESTORE_QUEUE = 20_000
"""Messages of a changelog that the client fetches ahead; with its own 100 000 restoring took a tenth more CPU."""

_TRANSACTION_ATTEMPTS = 5
_ONE_TRANSACTION_MS = 60_000
_LOOK_UP_S = 1.0
_LIBRDKAFKA_LOG = logging.getLogger("pykstreams.librdkafka")

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
        KafkaError.UNKNOWN_LEADER_EPOCH,  # the broker, or the client, has not heard of a topic that was made anew
        KafkaError.FENCED_LEADER_EPOCH,
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


class Failures:
    """Takes reports of failed deliveries, inside ``poll`` and ``flush``, and hands them to ``handler``.

    The producer must be made with it, and who handles them needs the producer first: so the handler comes later.
    """

    def __init__(self) -> None:
        self.handler: Callable[[Any, Any], None] | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if self.handler is not None:
            self.handler(error, message)


class WorkerProducer:
    """The producer of a worker; records are sent with ``raw``, everything else goes through here."""

    def __init__(self, producer: Producer, timeout_s: float, failures: Failures) -> None:
        self.raw = producer
        self.failures = failures
        self._timeout_s = timeout_s

    @classmethod
    def open(
        cls,
        supplier: KafkaClientSupplier,
        config: StreamsConfig,
        client_id: str,
        *,
        transactional_id: str | None,
    ) -> WorkerProducer:
        """Makes the producer."""
        failures = Failures()
        settings: dict[str, object] = {
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 262_144,
            **config.get_producer_configs(client_id),
            "on_delivery": failures,
            "logger": _LIBRDKAFKA_LOG,
        }
        if transactional_id is not None:
            settings["transactional.id"] = transactional_id
        return cls(supplier.get_producer(settings), config.request_timeout_ms / 1000, failures)

    @classmethod
    def open_for_one_transaction(
        cls, supplier: KafkaClientSupplier, config: StreamsConfig, client_id: str, *, transactional_id: str
    ) -> WorkerProducer:
        """Makes a producer beside that of the worker, for a transaction now and then, whatever the guarantee is.

        Its transactions may take a minute, or what the user has set (``producer.transaction.timeout.ms``).
        """
        failures = Failures()
        settings = config.get_producer_configs(client_id)
        timeout = int(str(config.originals.get("producer.transaction.timeout.ms", _ONE_TRANSACTION_MS)))
        settings |= {
            "transaction.timeout.ms": timeout,
            "delivery.timeout.ms": timeout,
            "socket.timeout.ms": min(timeout, _ONE_TRANSACTION_MS),
            "enable.idempotence": True,
            "acks": "all",
            "transactional.id": transactional_id,
            "on_delivery": failures,
            "logger": _LIBRDKAFKA_LOG,
        }
        return cls(supplier.get_producer(settings), config.request_timeout_ms / 1000, failures)

    def flush(self) -> None:
        """Waits until each record has been delivered or has failed."""
        self.raw.flush()

    def start_transactions(self) -> None:
        """Shuts out an earlier producer of the same transactional id; ``ClusterError`` when that cannot be had."""
        self._transact("starting transactions", lambda: self.raw.init_transactions(self._timeout_s))

    def begin(self) -> None:
        """Starts a transaction; what is sent from now on counts when it is committed."""
        self._transact("beginning a transaction", self.raw.begin_transaction)

    def commit(self, offsets: Offsets, group_metadata: Any) -> None:
        """Commits what was sent together with offsets, or not at all: then ``TaskMigratedError``, and abort."""
        if offsets:
            wanted = _with_metadata(offsets)
            self._transact(
                "sending offsets to the transaction",
                lambda: self.raw.send_offsets_to_transaction(wanted, group_metadata, self._timeout_s),
            )
        self._transact("committing the transaction", lambda: self.raw.commit_transaction(self._timeout_s))

    def abort(self) -> bool:
        """Drops what was sent since ``begin``; false when this producer is of no use any more."""
        try:
            self.raw.abort_transaction(self._timeout_s)
        except KafkaException as exception:
            log.warning("the transaction could not be aborted: %s", kafka_error(exception).str())
            return not kafka_error(exception).fatal()
        return True

    def _transact(self, doing: str, act: Callable[[], None]) -> None:
        for attempt in range(_TRANSACTION_ATTEMPTS):
            try:
                act()
                return
            except KafkaException as exception:
                error = kafka_error(exception)
                if error.retriable() and attempt + 1 < _TRANSACTION_ATTEMPTS:
                    log.info("%s is held up: %s; trying again", doing, error.str())
                    continue
                if error.fatal() or error.txn_requires_abort() or is_fencing(exception):
                    raise TaskMigratedError(f"{doing} failed: {error.str()} ({error.name()})") from exception
                raise cluster_error(doing, exception) from exception


@dataclass(slots=True)
class Fetched:
    """What one look at the broker gave."""

    runs: dict[tuple[str, int], list[Message]] = field(default_factory=dict)
    lost_position: list[TopicPartition] = field(default_factory=list)
    """Partitions whose next offset does not exist (any more); they stand still until ``seek``."""


class DataConsumer:
    """Reads input partitions that it is given one by one; knows no group."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._closed = False
        self._positions: dict[tuple[str, int], int] = {}

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
            self._consumer.incremental_assign(at_positions(positions))

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        """Stops reading partitions; what was prefetched of them is gone."""
        for place in partitions:
            self._positions.pop(place, None)
        if partitions:
            self._consumer.incremental_unassign(without_positions(partitions))

    def fetch(self, timeout: float) -> Fetched:
        """Waits up to ``timeout`` seconds for the first message, and takes at once whatever else is there."""
        first = self._consumer.poll(timeout)
        if first is None:
            return Fetched()
        batch = [first, *self._consumer.consume(FETCH_SIZE - 1, 0)]
        fetched = Fetched()
        if any(map(_message_error, batch)):
            batch = self._without_events(batch, fetched)
            if not batch:
                return fetched
        fetched.runs = _by_partition(batch)
        for place, run in fetched.runs.items():
            self._positions[place] = run[-1].offset() + 1  # type: ignore[operator]  # typed optional, set on data
        return fetched

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets the brokers have beyond what was fetched, ``None`` while that is not known."""
        position = self._positions.get(partition)
        if position is None:
            return None
        bare = KafkaTopicPartition(partition.topic, partition.partition)
        end = self._consumer.get_watermark_offsets(bare, cached=True)[1]
        return None if end < 0 else max(0, end - position)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Goes on at an offset, ``BEGINNING`` or ``END``."""
        # seek() itself is refused (_STATE) for a partition that lost its position: give it away and take it again
        self.unassign([partition])
        self.assign({partition: offset})

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Holds partitions back; throws away what was prefetched, so it is dear."""
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
            self._consumer.close()

    def _without_events(self, batch: list[Message], fetched: Fetched) -> list[Message]:
        for message in batch:
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                self._positions[_place(message)] = message.offset() or 0
        return _without_events(batch, fetched)


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
            continue  # whoever wants to know has looked already
        if code in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
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
            log.warning("reading is held up: %s (%s); the client tries again by itself", error.str(), error.name())
        else:
            raise ClusterError(f"reading {_place(message)} failed: {error.str()} ({error.name()})")
    return records


class RestoreConsumer:
    """Reads whole topics, such as changelogs; what it gives tells the position of a partition, not only its records."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._known: set[str] = set()
        self._topics: set[str] = set()

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

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Adds partitions, each from an offset or ``BEGINNING``."""
        if positions:
            topics = {place.topic for place in positions}
            self._topics |= topics
            self._look_up(topics - self._known)
            self._consumer.incremental_assign(at_positions(positions))

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        """Stops reading partitions."""
        if partitions:
            self._consumer.incremental_unassign(without_positions(partitions))

    def fetch(self, timeout: float) -> RestoreBatch:
        """Takes up to ``RESTORE_SIZE`` messages."""
        first = self._consumer.poll(timeout)
        batch = RestoreBatch()
        if first is None:
            return batch
        messages = [first, *self._consumer.consume(RESTORE_SIZE - 1, 0)]
        if any(map(_message_error, messages)):
            messages = self._without_events(messages, batch)
        only_topic = next(iter(self._topics)) if len(self._topics) == 1 else None
        for (topic, partition), run in _by_partition(messages, only_topic).items():
            place = TopicPartition(topic, partition)
            batch.runs[place] = run
            last = run[-1].offset()
            assert last is not None
            batch.positions[place] = max(last + 1, batch.positions.get(place, 0))
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

    def _without_events(self, messages: list[Message], batch: RestoreBatch) -> list[Message]:
        fetched = Fetched()
        for message in messages:
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                batch.positions[_place(message)] = message.offset() or 0
                batch.at_end.append(_place(message))
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
    at_end: list[TopicPartition] = field(default_factory=list)
    """Partitions of which everything was read that may be read now; open transactions may lie behind."""
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
                    # it reads no records, but offsets, and waits for those in an open transaction
                    "isolation.level": "read_committed",
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
        try:
            done = self._open.commit(offsets=_with_metadata(offsets), asynchronous=False)
        except KafkaException as exception:
            return self._not_committed(exception)
        for partition in done:
            if partition.error is not None:
                return self._not_committed(KafkaException(partition.error))
        return True

    @staticmethod
    def _not_committed(exception: KafkaException) -> bool:
        # an illegal generation is that of a member between two rebalances: had it been put out, its id were unknown
        if is_fencing(exception) and kafka_error(exception).code() != KafkaError.ILLEGAL_GENERATION:
            raise TaskMigratedError(
                f"offsets were not committed, because this worker is no longer in the group: "
                f"{kafka_error(exception).str()}"
            ) from exception
        if is_passing(exception) or kafka_error(exception).code() == KafkaError.ILLEGAL_GENERATION:
            log.info("offsets were not committed yet: %s", kafka_error(exception).str())
            return False
        raise cluster_error("committing offsets", exception) from exception

    def committed(self, partitions: Collection[TopicPartition], timeout: float) -> Offsets | None:
        """Reads committed offsets; ``None`` when the broker could not tell yet, so try again."""
        if not partitions:
            return {}
        try:
            found = self._open.committed(without_positions(partitions), timeout=timeout)
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


def _whole_topics(settings: Mapping[str, object]) -> dict[str, object]:
    """Settings of a consumer that is told where to start, and wants to know where a partition ends."""
    return {
        "queued.min.messages": RESTORE_QUEUE,
        **settings,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
        "logger": _LIBRDKAFKA_LOG,
    }


def _by_partition(batch: Sequence[Message], only_topic: str | None = None) -> dict[tuple[str, int], list[Message]]:
    """Sorts messages by partition; they come in long runs, so the comparing is left to C.

    :param only_topic: the topic of all of them, where it is known, so that they need not be asked.
    """
    runs: dict[Any, list[Message]] = {}
    if not batch:
        return runs
    topics: list[Any]
    if only_topic is None:
        topics = list(map(_message_topic, batch))  # typed optional, set on data
    else:
        topics = [only_topic] * len(batch)
    partitions: list[Any] = list(map(_message_partition, batch))
    if topics.count(topics[0]) == partitions.count(partitions[0]) == len(batch):  # a third faster when it is one run
        return {(topics[0], partitions[0]): list(batch)}
    start = 0
    for place, run in groupby(zip(topics, partitions, strict=True)):
        end = start + len(list(run))
        known = runs.get(place)
        if known is None:
            runs[place] = list(batch[start:end])
        else:
            known.extend(batch[start:end])
        start = end
    return runs


def _place(message: Message) -> TopicPartition:
    partition = message.partition()
    return TopicPartition(message.topic() or "?", -1 if partition is None else partition)


def _with_metadata(offsets: Offsets) -> list[KafkaTopicPartition]:
    return [
        KafkaTopicPartition(place.topic, place.partition, offset, metadata)
        for place, (offset, metadata) in offsets.items()
    ]


def at_positions(positions: Mapping[TopicPartition, int]) -> list[KafkaTopicPartition]:
    """Partitions with offsets, as the client wants them."""
    return [KafkaTopicPartition(place.topic, place.partition, offset) for place, offset in positions.items()]


def without_positions(partitions: Iterable[TopicPartition]) -> list[KafkaTopicPartition]:
    """Partitions, as the client wants them."""
    return [KafkaTopicPartition(place.topic, place.partition) for place in partitions]


def _ours(partitions: Iterable[KafkaTopicPartition]) -> list[TopicPartition]:
    return [TopicPartition(place.topic, place.partition) for place in partitions]
