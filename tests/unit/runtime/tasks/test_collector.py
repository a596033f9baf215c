"""Records on their way to the brokers, and what happens to those that do not arrive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import (
    ClusterUnavailableError,
    DeliveryError,
    StreamsError,
    TaskCorruptedError,
    TaskMigratedError,
)
from pykstreams.core.handlers import ErrorHandlerContext, ErrorHandlerResponse, ProductionExceptionHandler
from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import Counter
from pykstreams.core.record import ProducerRecord
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.delivery_attempts import DeliveryAttempts
from pykstreams.runtime.tasks.dropped import DroppedRecords, NodeDrops
from pykstreams.runtime.tasks.held_changelogs import MOST_HELD
from pykstreams.state.interfaces.store import ChangelogWriter
from pykstreams.testing.capture import CapturingProducer
from tests.unit.runtime.cluster_fakes import FakeClock
from tests.unit.runtime.tasks.fakes import FakeKafkaError, message

TASK = TaskId(0, 1)


class FullProducer(CapturingProducer):
    """Has no room until it was polled so many times."""

    def __init__(self, polls: int) -> None:
        super().__init__()
        self.polls = polls

    def produce(self, *args: Any, **options: Any) -> None:
        if self.polls:
            raise BufferError("queue full")
        super().produce(*args, **options)

    def poll(self, timeout: float) -> int:
        self.polls -= 1
        return 0


class Answer(ProductionExceptionHandler):
    """A handler with a fixed answer, which notes what it was asked."""

    def __init__(self, answer: ErrorHandlerResponse | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[ErrorHandlerContext, ProducerRecord, Exception]] = []

    def handle_error(
        self, context: ErrorHandlerContext, record: ProducerRecord, exception: Exception
    ) -> ErrorHandlerResponse:
        self.asked.append((context, record, exception))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def make(
    producer: CapturingProducer | None = None,
    handler: ProductionExceptionHandler | None = None,
    settings: Mapping[str, object] | None = None,
    **options: Any,
) -> tuple[RecordCollector, DroppedRecords]:
    config = {**(settings or {}), **({} if handler is None else {"production.exception.handler": handler})}
    collector = RecordCollector(
        producer or CapturingProducer(),
        config=StreamsConfig(config),
        partition_count=lambda topic: {"known": 3}.get(topic, 0),
        **options,
    )
    collector.register(TASK, "SINK", "out")
    dropped = DroppedRecords(TASK, Counter(), FakeClock(), lambda: None)
    collector.count_drops(TASK, dropped)
    return collector, dropped


def failed(collector: RecordCollector, name: str, **options: bool) -> None:
    collector.delivery_failed(FakeKafkaError(name, **options), message("out", -1, b"v", 5))


def test_a_full_queue_is_waited_for() -> None:
    producer = FullProducer(3)
    collector, _ = make(producer)

    collector.send(ProducerRecord("out", b"k", b"v", 2, 5, [("h", b"x")]))

    assert producer.take() == [("out", 2, b"k", b"v", 5, (("h", b"x"),))]


def test_waiting_for_room_ends_with_the_error_that_made_the_queue_full() -> None:
    producer = FullProducer(1000)
    collector, _ = make(producer)
    failed(collector, "MSG_SIZE_TOO_LARGE")

    with pytest.raises(DeliveryError):
        collector.send(ProducerRecord("out", b"k", b"v"))


def test_a_failure_that_sends_a_task_back_sends_all_back_where_it_interrupts_a_record_of_another_one() -> None:
    """The record is half done, and nobody would do the rest."""
    producer = FullProducer(1000)
    collector, _ = make(producer)
    failed(collector, "NOT_ENOUGH_REPLICAS")

    with pytest.raises(TaskMigratedError, match="record to out from SINK was not delivered"):
        collector.send(ProducerRecord("out", b"k", b"v"))


def test_changelog_writes_go_to_their_partition_and_without_a_time_leave_it_to_the_producer() -> None:
    producer = CapturingProducer()
    collector, _ = make(producer)
    write = collector.changelog_writer(TASK, "counts", "shop-counts-changelog", 1)

    write(b"k", b"v", 7, ())
    write(b"k", None, None, ())

    assert producer.take() == [
        ("shop-counts-changelog", 1, b"k", b"v", 7, ()),
        ("shop-counts-changelog", 1, b"k", None, None, ()),
    ]


class NotingProducer(CapturingProducer):
    """Notes which topics it had records for at each flush."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed: list[list[str]] = []
        self.room: int | None = None
        """For how many records there is room; ``None``: for any number."""
        self.left = 0
        """How many records a flush leaves undelivered."""

    def produce(self, *args: Any, **options: Any) -> None:
        if self.room is not None:
            if not self.room:
                raise BufferError("queue full")
            self.room -= 1
        super().produce(*args, **options)

    def flush(self, timeout_s: float) -> int:
        self.flushed.append([record.topic for record in self.take()])
        return self.left


def holding() -> tuple[NotingProducer, RecordCollector, ChangelogWriter]:
    producer = NotingProducer()
    collector, _ = make(producer, holds_changelogs=True)
    write = collector.changelog_writer(TASK, "rows", "log", 1, stays_behind=True)
    return producer, collector, write


def test_a_changelog_that_stays_behind_is_sent_when_all_else_has_been_taken() -> None:
    producer, collector, write = holding()
    write(b"k", b"v", 7, ())
    collector.send(ProducerRecord("out", b"k", b"v"))
    collector.poll()
    collector.flush()

    assert producer.flushed == [["out"], ["log"]]


def test_held_records_keep_their_order_and_their_times(monkeypatch: pytest.MonkeyPatch) -> None:
    producer, collector, write = holding()
    write(b"k", b"v", 7, [("h", b"x")])
    write(b"k", None, None, ())
    monkeypatch.setattr(producer, "flush", lambda timeout_s: 0)
    collector.flush()

    assert producer.take() == [("log", 1, b"k", b"v", 7, (("h", b"x"),)), ("log", 1, b"k", None, None, ())]


def test_much_that_is_held_is_sent_between_two_records_already() -> None:
    producer, collector, write = holding()
    for _ in range(MOST_HELD):
        write(b"k", b"v", 7, ())
    collector.send(ProducerRecord("out", b"k", b"v"))
    collector.poll()

    assert producer.flushed == [["out"]]
    assert [record.topic for record in producer.take()] == ["log"] * MOST_HELD


def test_much_that_is_held_waits_on_where_brokers_take_nothing_for_the_moment() -> None:
    """Else all tasks of the worker would begin again at their last commit."""
    producer, collector, write = holding()
    for _ in range(MOST_HELD):
        write(b"k", b"v", 7, ())
    producer.left = 1
    collector.poll()
    before = producer.take()
    producer.left = 0
    collector.poll()

    assert (len(before), len(producer.take())) == (0, MOST_HELD)


def test_what_a_task_held_when_it_closed_is_never_sent() -> None:
    producer, collector, write = holding()
    write(b"k", b"v", 7, ())
    collector.forget(TASK)
    collector.flush()

    assert producer.flushed == [[]]


def test_what_a_task_held_when_it_was_let_go_of_is_never_sent_though_it_is_not_closed_yet() -> None:
    producer, collector, write = holding()
    write(b"k", b"v", 7, ())
    failed(collector, "NOT_ENOUGH_REPLICAS")
    with pytest.raises(TaskCorruptedError):
        collector.flush()
    collector.clear()
    collector.abandon(TASK)
    write(b"k", b"of a cache that is flushed as the task closes", 7, ())
    collector.flush()  # the next commit, of other tasks

    assert [record for topics in producer.flushed for record in topics] == []


def test_held_records_for_which_there_is_no_room_are_sent_by_the_next_flush() -> None:
    """Else the offsets would be committed, and the store would hold what its changelog has not."""
    producer, collector, write = holding()
    for key in (b"a", b"b", b"c"):
        write(key, b"v", 7, ())
    producer.room = 1
    with pytest.raises(ClusterUnavailableError, match="the producer's queue is full"):
        collector.flush()
    producer.room = None

    collector.flush()

    assert [len(topics) for topics in producer.flushed] == [0, 1, 2]


def test_held_records_are_not_sent_after_an_error() -> None:
    producer, collector, write = holding()
    write(b"k", b"v", 7, ())
    failed(collector, "MSG_SIZE_TOO_LARGE")

    with pytest.raises(DeliveryError):
        collector.flush()
    assert producer.take() == []


@pytest.mark.parametrize(("holds", "stays_behind"), [(True, False), (False, True)])
def test_changelogs_are_sent_at_once_unless_both_sides_want_otherwise(holds: bool, stays_behind: bool) -> None:
    producer = CapturingProducer()
    collector, _ = make(producer, holds_changelogs=holds)
    collector.changelog_writer(TASK, "rows", "log", 1, stays_behind=stays_behind)(b"k", b"v", 7, ())

    assert [record.topic for record in producer.take()] == ["log"]


def test_a_failed_delivery_is_raised_before_the_next_commit_and_names_the_node() -> None:
    collector, _ = make()

    failed(collector, "MSG_SIZE_TOO_LARGE")

    with pytest.raises(
        DeliveryError,
        match=r"record to out from SINK was not delivered: text of MSG_SIZE_TOO_LARGE \(MSG_SIZE_TOO_LARGE\)",
    ) as found:
        collector.flush()
    assert found.value.task_id == TASK


def test_only_the_first_error_is_kept_until_it_is_cleared() -> None:
    collector, _ = make()
    failed(collector, "MSG_SIZE_TOO_LARGE")
    failed(collector, "INVALID_RECORD")

    with pytest.raises(DeliveryError, match="MSG_SIZE_TOO_LARGE"):
        collector.check()
    collector.clear()

    collector.check()


@pytest.mark.parametrize("report", [None, FakeKafkaError("_PURGE_QUEUE"), FakeKafkaError("_PURGE_INFLIGHT")])
def test_delivered_records_and_those_that_are_dropped_with_their_transaction_are_no_failures(
    report: FakeKafkaError | None,
) -> None:
    collector, _ = make(settings={"processing.guarantee": "exactly_once_v2"})

    collector.delivery_failed(report, message("out", 0, b"v", 5))

    collector.check()


@pytest.mark.parametrize("name", ["_PURGE_QUEUE", "_PURGE_INFLIGHT"])
def test_record_that_is_dropped_with_those_of_before_is_sent_again(name: str) -> None:
    """A thread of the client that comes late to what a worker has given up drops new records with it."""
    handler = Answer(ErrorHandlerResponse.resume())
    collector, _ = make(handler=handler)

    failed(collector, name)

    with pytest.raises(TaskMigratedError, match=r"record to out from SINK was not delivered: .*; it is sent again"):
        collector.flush()
    assert handler.asked == []


def test_a_fenced_producer_means_that_the_task_has_moved() -> None:
    collector, _ = make()

    failed(collector, "_FENCED", fatal=True)

    with pytest.raises(TaskMigratedError, match="another producer has taken its place"):
        collector.check()


@pytest.mark.parametrize("name", ["_MSG_TIMED_OUT", "REQUEST_TIMED_OUT"])
def test_records_that_timed_out_send_their_tasks_back_to_the_last_commit(name: str) -> None:
    collector, _ = make()
    collector.register(TaskId(0, 3), "SINK", "out")

    failed(collector, name)

    with pytest.raises(TaskCorruptedError) as found:
        collector.check()
    assert found.value.corrupted_tasks == {TASK, TaskId(0, 3)}


def test_nobody_is_asked_about_a_record_whose_time_was_over_until_delivery_timeout_ms_has_passed() -> None:
    clock, handler = FakeClock(), Answer(ErrorHandlerResponse.resume())
    collector, dropped = make(handler=handler, attempts=DeliveryAttempts(clock, record_s=4, give_up_s=10))
    for _ in range(2):
        failed(collector, "_MSG_TIMED_OUT")
        with pytest.raises(TaskMigratedError, match=r"out from SINK was not delivered: .*; it is sent again"):
            collector.poll()
        collector.clear()
        clock.advance(3)
    assert handler.asked == []

    failed(collector, "_MSG_TIMED_OUT")

    collector.poll()
    assert len(handler.asked) == 1
    assert dropped.total == 1


def test_a_changelog_that_failed_is_blamed_on_the_task_of_its_partition() -> None:
    collector, _ = make()
    for partition in range(3):
        collector.changelog_writer(TaskId(0, partition), "counts", "changelog", partition)

    collector.delivery_failed(FakeKafkaError("_MSG_TIMED_OUT"), message("changelog", 0, b"v", 5, partition=2))

    with pytest.raises(TaskCorruptedError) as found:
        collector.check()
    assert found.value.corrupted_tasks == {TaskId(0, 2)}


def test_tasks_of_all_records_that_were_not_taken_go_back_to_the_last_commit() -> None:
    """Their records fail together where one broker was away, and each other task would commit without its own."""
    collector, _ = make()
    for partition in range(3):
        collector.changelog_writer(TaskId(0, partition), "counts", "changelog", partition)

    for partition in (2, 0, 2):
        report = message("changelog", 0, b"v", 5, partition=partition)
        collector.delivery_failed(FakeKafkaError("_MSG_TIMED_OUT"), report)

    with pytest.raises(TaskCorruptedError) as found:
        collector.check()
    assert found.value.corrupted_tasks == {TaskId(0, 0), TaskId(0, 2)}


def test_all_tasks_go_back_where_nobody_knows_who_has_sent_one_of_the_records_that_were_not_taken() -> None:
    collector, _ = make()
    failed(collector, "_MSG_TIMED_OUT")

    collector.delivery_failed(FakeKafkaError("_MSG_TIMED_OUT"), message("of a closed task", 0, b"v", 5))

    with pytest.raises(TaskMigratedError, match="the task that has sent it is closed"):
        collector.check()


class RefusingProducer(CapturingProducer):
    """Refuses what is longer than four bytes, as the client does at once; has no room while ``full``."""

    full = 0

    def produce(
        self, topic: str, value: bytes | None = None, key: bytes | None = None, *args: Any, **options: Any
    ) -> None:
        if self.full:
            self.full -= 1
            raise BufferError("queue full")
        if value is not None and len(value) > 4:
            raise Exception(FakeKafkaError("MSG_SIZE_TOO_LARGE"))
        super().produce(topic, value, key, *args, **options)


LOST_CHANGELOG = (
    "record to log-1, the changelog of store 'counts' of task 0_1, was not delivered: text of MSG_SIZE_TOO_LARGE "
    "(MSG_SIZE_TOO_LARGE); it has 6 bytes: raise max.message.bytes of the topic and producer.message.max.bytes, or "
    "make it smaller"
)


@pytest.mark.parametrize("timestamp", [7, None])
@pytest.mark.parametrize("full", [0, 1])
@pytest.mark.parametrize("held", [False, True])
def test_a_changelog_record_that_the_client_refuses_keeps_the_task_from_its_commit(
    timestamp: int | None, full: int, held: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The handler would go on, and the store would hold what its changelog has not."""
    handler = Answer(ErrorHandlerResponse.resume())
    producer = RefusingProducer()
    producer.full = full
    collector, dropped = make(producer, handler, holds_changelogs=held)

    collector.changelog_writer(TASK, "counts", "log", 1, stays_behind=held)(b"k", b"large", timestamp, ())

    with pytest.raises(DeliveryError) as found:
        collector.flush()
    assert str(found.value) == LOST_CHANGELOG
    assert (found.value.task_id, found.value.name) == (TASK, "MSG_SIZE_TOO_LARGE")
    ((context, record, _),) = handler.asked
    assert (context.processor_node_id, record) == ("counts", ("log", b"k", b"large", 1, timestamp, ()))
    assert "the production exception handler would go on without it" in caplog.text
    assert (dropped.total, dropped.by_node()) == (0, {})


def test_a_changelog_record_that_the_brokers_refuse_keeps_the_task_from_its_commit() -> None:
    collector, _ = make(handler=Answer(ErrorHandlerResponse.resume()))
    collector.changelog_writer(TASK, "counts", "log", 1)

    collector.delivery_failed(
        FakeKafkaError("MSG_SIZE_TOO_LARGE"), message("log", 0, b"large", 5, key=b"k", partition=1)
    )

    with pytest.raises(DeliveryError) as found:
        collector.check()
    assert str(found.value) == LOST_CHANGELOG


def test_a_record_that_the_client_refuses_after_a_wait_for_room_is_the_handlers() -> None:
    handler = Answer(ErrorHandlerResponse.resume())
    collector, _ = make(RefusingProducer(), handler)

    collector.produce_when_there_is_room("out", b"large", b"k", -1, 5, ())

    collector.check()
    assert [record.topic for _, record, _ in handler.asked] == ["out"]


def test_a_dead_letter_that_the_client_refuses_is_an_error_and_makes_no_other_one() -> None:
    handler = Answer(ErrorHandlerResponse.resume([ProducerRecord("dlq", b"k", b"large")]))
    collector, _ = make(RefusingProducer(), handler)

    failed(collector, "MSG_SIZE_TOO_LARGE")

    with pytest.raises(DeliveryError, match="record to dlq from SINK was not delivered"):
        collector.check()
    assert len(handler.asked) == 1


def test_tasks_that_closed_are_not_blamed() -> None:
    collector, _ = make()
    collector.register(TaskId(0, 3), "SINK", "out")
    collector.forget(TASK)

    failed(collector, "_MSG_TIMED_OUT")

    with pytest.raises(TaskCorruptedError) as found:
        collector.check()
    assert found.value.corrupted_tasks == {TaskId(0, 3)}


def test_a_handler_may_go_on_without_the_record_and_send_it_elsewhere() -> None:
    letter = ProducerRecord("dlq", b"k", b"v")
    handler = Answer(ErrorHandlerResponse.resume([letter]))
    producer = CapturingProducer()
    collector, dropped = make(producer, handler)

    failed(collector, "MSG_SIZE_TOO_LARGE")

    collector.check()
    ((context, record, exception),) = handler.asked
    assert (context.topic, context.processor_node_id, context.task_id) == (None, "SINK", TASK)
    assert record == ("out", b"k", b"v", 0, 5, ())
    assert isinstance(exception, DeliveryError)
    assert exception.name == "MSG_SIZE_TOO_LARGE"
    assert [found.topic for found in producer.take()] == ["dlq"]
    assert (dropped.total, dropped.by_node()) == (1, {"SINK": NodeDrops(total=1, failed=1)})


def test_dead_letter_of_a_record_that_was_not_taken_holds_its_key_and_value_and_names_no_input() -> None:
    producer = CapturingProducer()
    collector = RecordCollector(
        producer,
        config=StreamsConfig({"errors.dead.letter.queue.topic.name": "dead"}),
        partition_count=lambda topic: 1,
    )
    failed(collector, "MSG_SIZE_TOO_LARGE")

    [letter] = producer.take()
    found = dict(letter.headers)
    assert (letter.topic, letter.key, letter.value) == ("dead", b"k", b"v")
    assert found["__streams.errors.topic"] is None
    assert b"was not delivered" in (found["__streams.errors.message"] or b"")


@pytest.mark.parametrize("name", ["TOPIC_AUTHORIZATION_FAILED", "UNKNOWN"])
def test_no_handler_is_asked_about_what_nobody_can_help(name: str) -> None:
    handler = Answer(ErrorHandlerResponse.resume())
    collector, _ = make(handler=handler)

    failed(collector, name)

    with pytest.raises(DeliveryError):
        collector.check()
    assert handler.asked == []


def test_retry_for_an_error_that_will_not_go_away_fails() -> None:
    collector, _ = make(handler=Answer(ErrorHandlerResponse.retry()))

    failed(collector, "MSG_SIZE_TOO_LARGE")

    with pytest.raises(DeliveryError):
        collector.check()


def test_a_handler_that_fails_itself_is_an_error_that_tells_both() -> None:
    collector, _ = make(handler=Answer(KeyError("oops")))

    failed(collector, "MSG_SIZE_TOO_LARGE")

    with pytest.raises(StreamsError, match=r"itself failed with KeyError\('oops'\).*MSG_SIZE_TOO_LARGE"):
        collector.check()


def test_partition_counts_of_topics_that_do_not_exist_are_an_error() -> None:
    collector, _ = make()

    assert collector.partitions_of("known", "SINK") == 3
    with pytest.raises(StreamsError, match="topic 'gone', to which SINK writes with a partitioner, does not exist"):
        collector.partitions_of("gone", "SINK")
