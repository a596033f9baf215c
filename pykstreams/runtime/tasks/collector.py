"""Hands records to the producer and keeps what went wrong with them until the next commit.

Invariant: a record that the brokers did not take is never forgotten. Either the production exception handler lets
it go, or an error is kept that ``check`` raises, and nothing is committed before ``check``. A changelog record cannot
be let go: its store would hold what the changelog has not, and lose it with the directory that it lies in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import (
    ClusterUnavailableError,
    DeliveryError,
    StreamsError,
    TaskCorruptedError,
    TaskMigratedError,
)
from pykstreams.core.handlers import (
    ErrorHandlerContext,
    ErrorHandlerResult,
    checked_response,
    handler_function,
)
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.ids import TaskId
from pykstreams.core.record import ProducerRecord
from pykstreams.core.types import Headers
from pykstreams.runtime.clients.consumers.messages import RecordMessage
from pykstreams.runtime.clients.errors import (
    LARGER_RECORDS,
    TOO_LARGE,
    ClientError,
    Meaning,
    client_error,
    meaning_of,
)
from pykstreams.runtime.clients.sent_records import sent_data, sent_headers, sent_time
from pykstreams.runtime.tasks.changelog_watch import ChangelogWatch
from pykstreams.runtime.tasks.delivery_attempts import DeliveryAttempts
from pykstreams.runtime.tasks.dropped import DroppedRecords
from pykstreams.runtime.tasks.held_changelogs import MOST_HELD, HeldChangelogs
from pykstreams.state.interfaces.store import ChangelogWriter

log = logging.getLogger(__name__)

ANY_PARTITION = -1
"""Leaves the choice of the partition to the producer."""

_WAIT_FOR_ROOM_S = 0.1
_WAITS_FOR_ROOM = 100
_FLUSH_S = 2.0
"""How long one flush waits for deliveries; a worker serves nobody meanwhile."""
_PRODUCER_IS_LOST = {
    Meaning.FENCED: "another producer has taken its place",
    Meaning.BROKEN: "this producer, or its transaction, cannot go on",
}
"""Errors that are nobody's record's fault: all that was sent since the last commit is sent again by a new producer."""
_TIME_IS_OVER = "_MSG_TIMED_OUT"
_PURGED = frozenset(("_PURGE_QUEUE", "_PURGE_INFLIGHT"))
"""The record was dropped: with its transaction, or together with those that were given up before it was sent."""


class Producer(Protocol):
    """The used methods of ``confluent_kafka.Producer``.

    Its own documentation names another order: positional arguments are in the order that stands here.
    """

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = ANY_PARTITION,
        callback: Any = None,
        on_delivery: Any = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        """Queues a record; ``BufferError`` when there is no room."""
        ...

    def poll(self, timeout_s: float, /) -> object:
        """Runs the callbacks of records that were delivered or not."""
        ...

    def flush(self, timeout_s: float, /) -> int:
        """Waits until every record was delivered or not; gives the number of those of which that is not known yet."""
        ...


class RecordCollector:
    """The way out of the tasks of one worker.

    The worker makes the producer so that it calls ``delivery_failed`` for records that were not taken
    (``on_delivery`` with ``delivery.report.only.error``): a call per record would cost more than the record.

    :param partition_count: gives the number of partitions of a topic, 0 for a topic that does not exist.
    :param partition_for_key: what the default partitioner chooses, (key bytes, number of partitions) -> partition; that
        of the client library is faster.
    :param takes_time_zero: whether the producer sends the timestamp 0 as it is; librdkafka takes it for "now".
    :param one_record_at_a_time: whether this is the way out of a test driver that follows Kafka's: each input record is
        worked off, through all topics, before the next one, and partitions are taken that a topic does not have.
    :param changelogs: watches what is written to changelogs; for embedded clusters.
    :param holds_changelogs: whether changelogs that ask for it stay behind what is sent to other topics.
    :param attempts: counts for how long records have not been delivered, where the producer gives them up earlier than
        the handler is to be asked.
    """

    def __init__(
        self,
        producer: Producer,
        *,
        config: StreamsConfig,
        partition_count: Callable[[str], int],
        partition_for_key: Callable[[bytes, int], int] = partition_for_key,
        takes_time_zero: bool = True,
        one_record_at_a_time: bool = False,
        changelogs: ChangelogWatch | None = None,
        holds_changelogs: bool = False,
        attempts: DeliveryAttempts | None = None,
    ) -> None:
        self.produce = producer.produce
        self.partition_for_key = partition_for_key
        self.one_record_at_a_time = one_record_at_a_time
        self._takes_time_zero = takes_time_zero
        self._said_time_zero = False
        self._changelogs = changelogs
        self._held = HeldChangelogs() if holds_changelogs else None
        self._attempts = attempts
        self._producer = producer
        self._handler = config.production_exception_handler
        self._aborts = config.exactly_once
        """Whether transactions are aborted, which drops their records."""
        self.partition_count = partition_count
        self._writers: dict[tuple[str | None, int], dict[TaskId, str]] = {}
        self._stores: dict[tuple[str, int], TaskId] = {}
        """Whose stores are logged to which partitions."""
        self._dropped: dict[TaskId, DroppedRecords] = {}
        self._error: StreamsError | None = None
        self.broken = False
        """Whether the producer can take nothing any more, so that another must be made."""

    def register(self, task_id: TaskId, node: str, topic: str | None, partition: int = ANY_PARTITION) -> None:
        """Notes which node of which task writes to a topic (``None``: to topics chosen per record)."""
        self._writers.setdefault((topic, partition), {})[task_id] = node

    def count_drops(self, task_id: TaskId, dropped: DroppedRecords) -> None:
        """Notes where records of a task are counted that the production exception handler lets go."""
        self._dropped[task_id] = dropped

    def forget(self, task_id: TaskId) -> None:
        """Removes what was registered for a task that closes."""
        for writers in list(self._writers.values()):  # tasks close on the state updater's thread; others register
            writers.pop(task_id, None)
        for place in [place for place, owner in list(self._stores.items()) if owner == task_id]:
            del self._stores[place]
        self._dropped.pop(task_id, None)
        if self._held is not None:
            self._held.forget(task_id)

    def abandon(self, task_id: TaskId) -> None:
        """Drops the changelog records of a task that wait for others, which is let go of and will be closed.

        They would follow results that were not taken, and that nobody knows any more when the task begins again.
        """
        if self._held is not None:
            self._held.forget(task_id)

    def time_zero(self) -> int:
        """The timestamp to send in place of 0: 1 where the producer would send the current time; warns of it once."""
        if self._takes_time_zero:
            return 0
        if not self._said_time_zero:
            self._said_time_zero = True
            log.warning("a record with timestamp 0 is sent with timestamp 1: the client takes 0 for the time of day")
        return 1

    def partitions_of(self, topic: str, node: str) -> int:
        """The number of partitions of a topic; ``StreamsError`` when it does not exist."""
        count = self.partition_count(topic)
        if count < 1:
            raise StreamsError(
                f"topic {topic!r}, to which {node} writes with a partitioner, does not exist; create it first"
            )
        return count

    def changelog_writer(
        self, task_id: TaskId, store: str, topic: str, partition: int, *, stays_behind: bool = False
    ) -> ChangelogWriter:
        """Returns the callable by which a store writes to its changelog.

        A timestamp of ``None`` leaves the time to the producer. One that ``stays_behind`` is sent when all has been
        taken that was sent before: at a commit, or earlier where much waits.
        """
        self.register(task_id, store, topic, partition)
        self._stores[topic, partition] = task_id
        produce, wait, time_zero = self.produce, self.produce_when_there_is_room, self.time_zero
        refused = self.refused

        def send_at_once(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
            if timestamp is None:
                wait(topic, value, key, partition, None, headers)
                return
            time = timestamp or time_zero()
            try:
                produce(topic, value, key, partition, None, None, time, list(headers) if headers else None)
            except BufferError:
                wait(topic, value, key, partition, timestamp, headers)
            except Exception as error:
                refused(error, ProducerRecord(topic, key, value, partition, timestamp, headers))

        write: ChangelogWriter = send_at_once
        if stays_behind and self._held is not None:
            write = self._held.writer(task_id, topic, partition)
        return write if self._changelogs is None else self._changelogs.watched(topic, partition, write)

    def send(self, record: ProducerRecord) -> None:
        """Sends a dead letter; no handler is asked about one that the client refuses, which would make another one."""
        partition = ANY_PARTITION if record.partition is None else record.partition
        try:
            self._queue(record.topic, record.value, record.key, partition, record.timestamp, record.headers)
        except Exception as error:
            if failure := self._in_question(self._client_error(error, record), record):
                self._keep(failure, error)

    def send_all(self, records: Iterable[ProducerRecord], writers: Mapping[TaskId, str]) -> None:
        """Sends several dead letters of tasks, each with the node that is to blame for them."""
        for record in records:
            for task_id, node in writers.items():
                self.register(task_id, node, record.topic)
            self.send(record)

    def produce_when_there_is_room(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        timestamp: int | None,
        headers: Headers,
    ) -> None:
        """Queues a record; while the queue is full, waits for deliveries. Raises an error that is kept.

        ``ClusterUnavailableError`` when the brokers take nothing for a while: the tasks go back to their last commit.
        """
        try:
            self._queue(topic, value, key, partition, timestamp, headers)
        except Exception as error:
            chosen = None if partition == ANY_PARTITION else partition
            self.refused(error, ProducerRecord(topic, key, value, chosen, timestamp, headers))

    def _queue(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        timestamp: int | None,
        headers: Headers,
    ) -> None:
        time = {} if timestamp is None else {"timestamp": timestamp or self.time_zero()}
        for _ in range(_WAITS_FOR_ROOM):
            try:
                self._producer.produce(topic, value, key, partition, headers=list(headers) if headers else None, **time)
            except BufferError:
                self._producer.poll(_WAIT_FOR_ROOM_S)
                self._check_amid_a_record()
            else:
                return
        raise ClusterUnavailableError(
            f"the producer's queue is full, and the brokers took nothing of it for "
            f"{_WAITS_FOR_ROOM * _WAIT_FOR_ROOM_S:g} s; the record for {topic} is processed again"
        )

    def refused(self, error: Exception, record: ProducerRecord) -> None:
        """Judges an exception of ``produce`` itself, such as a message that is too large.

        Anything but an error of the client is a programming error and is raised: ``StreamsError`` for what the client
        takes in no record.
        """
        self._failed(self._client_error(error, record), record)

    def delivery_failed(self, error: ClientError | None, message: RecordMessage) -> None:
        """Judges the report of a record that the brokers did not take; an ``error`` of ``None`` is no failure."""
        if error is None:
            return
        record = ProducerRecord(
            message.topic(),
            message.key(),
            message.value(),
            message.partition(),
            message.timestamp()[1],
            message.headers() or (),
        )
        self._failed(error, record)

    def poll(self) -> None:
        """Runs callbacks that are due; waits only where too much is held. Call it between records.

        Raises the error that is kept: what is done after it is done again.
        """
        self._producer.poll(0)
        self.check()
        if self._held is not None and len(self._held) >= MOST_HELD:
            try:
                self._let_go(self._held)
            except ClusterUnavailableError as error:  # they wait on; what waits for too long comes back as undelivered
                log.info("changelog records wait for those before them: %s", error)

    def flush(self) -> None:
        """Waits until every record was taken, or given up; raises the error that is kept.

        ``ClusterUnavailableError`` when the brokers take nothing for a while: nothing is lost, call it again.
        """
        if self._held:
            self._let_go(self._held)
        self._deliver()

    def _let_go(self, held: HeldChangelogs) -> None:
        self._deliver()
        held.let_go(self.produce_when_there_is_room)

    def _deliver(self) -> None:
        left = self._producer.flush(_FLUSH_S)
        self.check()
        if left:
            raise ClusterUnavailableError(
                f"{left} records were not delivered within {_FLUSH_S:g} s; the leaders of their topics do not take them"
            )

    def check(self) -> None:
        """Raises the error that is kept."""
        if self._error is not None:
            raise self._error

    def _check_amid_a_record(self) -> None:
        """Raises the error that is kept; all tasks go back where it is about some, for this record is half done."""
        if isinstance(self._error, TaskCorruptedError):
            raise TaskMigratedError(str(self._error.__cause__)) from self._error
        self.check()

    def clear(self) -> None:
        """Drops the error that is kept, when its tasks have been closed or a transaction was aborted."""
        self._error = None

    def _failed(self, error: ClientError, record: ProducerRecord) -> None:
        if failure := self._in_question(error, record):
            self._ask(failure, record)

    def _in_question(self, error: ClientError, record: ProducerRecord) -> DeliveryError | None:
        """Returns the failure if it is up to the handler; keeps one that is not."""
        name, meaning = error.name(), meaning_of(error)
        self.broken |= meaning in _PRODUCER_IS_LOST
        if self._is_done_again(record) or (name in _PURGED and self._aborts):
            return None
        failure = self._failure(error, record, retriable=meaning is Meaning.PASSING)
        if meaning in _PRODUCER_IS_LOST:
            text = f"{failure}; {_PRODUCER_IS_LOST[meaning]}"
            self._keep(TaskMigratedError(text, task_id=failure.task_id), failure)
        elif meaning is Meaning.REFUSED:
            self._keep(failure, None)
        elif name in _PURGED or (
            name == _TIME_IS_OVER and self._attempts is not None and not self._attempts.are_over(record.topic)
        ):
            self._keep(TaskMigratedError(f"{failure}; it is sent again", task_id=failure.task_id), failure)
        else:
            return failure
        return None

    def _is_done_again(self, record: ProducerRecord) -> bool:
        """Whether the error that is kept keeps those that have sent a record from their commit, too."""
        if isinstance(self._error, TaskCorruptedError):
            writers = self._writers_of(record).keys()
            return bool(writers) and writers <= self._error.corrupted_tasks
        return self._error is not None

    def _failure(self, error: ClientError, record: ProducerRecord, *, retriable: bool) -> DeliveryError:
        """Puts into words what was not delivered, and what to do."""
        name = error.name()
        task_id, node = self._writer_of(record)
        what = f"record to {record.topic} from {node}"
        if self._is_logged(record):
            what = f"record to {record.topic}-{record.partition}, the changelog of store {node!r} of task {task_id},"
        text = f"{what} was not delivered: {error.str()} ({name})"
        if name in TOO_LARGE:
            text += f"; it has {_size(record)} bytes: {LARGER_RECORDS}, or make it smaller"
        return DeliveryError(
            text,
            name=name,
            retriable=retriable,
            fatal=error.fatal(),
            task_id=task_id,
        )

    def _ask(self, failure: DeliveryError, record: ProducerRecord) -> None:
        writers, (_, node) = self._writers_of(record), self._writer_of(record)
        task_id = failure.task_id or TaskId(-1, -1)
        time = -1 if record.timestamp is None else record.timestamp
        context = ErrorHandlerContext(None, -1, -1, record.headers, node, task_id, time)
        try:
            answer = handler_function(self._handler)(context, record, failure)
            response = checked_response(self._handler, answer)
        except Exception as error:
            self._keep(
                StreamsError(
                    f"production exception handler {self._handler!r} itself failed with {error!r}; "
                    f"it was asked because: {failure}",
                    task_id=failure.task_id,
                ),
                error,
            )
            return
        self.send_all(response.dead_letter_queue_records, writers)
        goes_on = response.result is ErrorHandlerResult.RESUME
        # a changelog record cannot be let go, and when it is sent again it may well be taken
        again = response.result is ErrorHandlerResult.RETRY or (goes_on and self._is_logged(record))
        if failure.retriable and again:
            self._keep_passing(failure, writers)
        elif goes_on and self._is_logged(record):
            log.error(
                "%s; the production exception handler would go on without it, but its store would hold what the "
                "changelog has not",
                failure,
            )
            self._keep(failure, None)
        elif goes_on:
            log.warning("%s; the production exception handler goes on without it", failure)
            for writer, of_writer in writers.items():
                if writer in self._dropped:
                    self._dropped[writer].count(of_writer, failed=True)
        else:
            self._keep(failure, None)

    def _keep_passing(self, failure: DeliveryError, writers: Collection[TaskId]) -> None:
        """Has the tasks that have sent a record go back to their last commit; all of them where nobody knows which."""
        log.error("%s; its tasks go back to their last commit", failure)
        others = self._error.corrupted_tasks if isinstance(self._error, TaskCorruptedError) else ()
        if writers:
            self._keep(TaskCorruptedError([*writers, *others]), failure)
        else:
            self._keep(TaskMigratedError(f"{failure}; the task that has sent it is closed"), failure)

    def _keep(self, error: StreamsError, cause: Exception | None) -> None:
        error.__cause__ = cause
        self._error = error

    def _client_error(self, error: Exception, record: ProducerRecord) -> ClientError:
        """The error inside an exception of the client; anything else is raised."""
        if found := client_error(error):
            return found
        try:
            sent_data(record.key, "key")
            sent_data(record.value, "value")
            sent_time(0 if record.timestamp is None else record.timestamp)
            sent_headers(record.headers)
        except (TypeError, UnicodeError) as reason:
            task_id, node = self._writer_of(record)
            text = f"record to {record.topic} from {node} was not sent: {reason}"
            raise StreamsError(text, task_id=task_id) from error
        raise error

    def _is_logged(self, record: ProducerRecord) -> bool:
        """Whether a record is of a changelog of a task that is open."""
        return record.partition is not None and (record.topic, record.partition) in self._stores

    def _writer_of(self, record: ProducerRecord) -> tuple[TaskId | None, str]:
        return next(iter(self._writers_of(record).items()), (None, "a sink"))

    def _writers_of(self, record: ProducerRecord) -> dict[TaskId, str]:
        partition = ANY_PARTITION if record.partition is None else record.partition
        for place in ((record.topic, partition), (record.topic, ANY_PARTITION), (None, ANY_PARTITION)):
            if writers := self._writers.get(place):
                return dict(writers)
        return {}


def _size(record: ProducerRecord) -> int:
    """The bytes of what a record holds."""
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
