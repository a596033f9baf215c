"""A delivery that fails for a passing reason ends nothing: its tasks go back to their last commit, wait, and go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import DeliveryError, TaskCorruptedError
from pykstreams.core.handlers import ErrorHandlerResponse
from pykstreams.core.record import ProducerRecord
from pykstreams.runtime.clients.outage import Outage
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.worker.commits.commit import AtLeastOnce, CommitSteps, ExactlyOnce
from pykstreams.runtime.worker.starts_over import LONGEST_S, StartsOver
from pykstreams.testing.capture import CapturingProducer
from tests.unit.runtime.cluster_fakes import FakeTransactions
from tests.unit.runtime.tasks.fakes import FakeKafkaError, message
from tests.unit.runtime.tasks.test_collector import Answer
from tests.unit.runtime.worker.worker_bench import ONE, P0, P1, TWO, WorkerBench

PASSING = (
    "_MSG_TIMED_OUT",
    "NOT_LEADER_FOR_PARTITION",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "_TIMED_OUT",
    "REQUEST_TIMED_OUT",
    "NETWORK_EXCEPTION",
    "KAFKA_STORAGE_ERROR",
    "INVALID_MSG",
)
GUARANTEES = ("at_least_once", "exactly_once_v2")


class Bench:
    """A worker with a collector over a producer whose brokers refuse what they are told to refuse."""

    def __init__(self, guarantee: str, handler: Any = None) -> None:
        self.bench = WorkerBench({"processing.guarantee": guarantee})
        config = StreamsConfig({} if handler is None else {"production.exception.handler": handler})
        self.collector = RecordCollector(CapturingProducer(), config=config, partition_count=lambda topic: 1)
        self.transactions = FakeTransactions()
        steps = CommitSteps(
            deliveries=self.collector,
            membership=self.bench.membership,
            end_offsets=lambda partitions: dict.fromkeys(partitions, 0),
            on_committed=lambda offsets: None,
            clock=self.bench.clock,
            outage=Outage("commits of worker", self.bench.clock, 300),
        )
        exactly_once = ExactlyOnce(steps, self.transactions, self.bench.clock, 10_000)
        self.bench.output.commits = AtLeastOnce(steps) if guarantee == "at_least_once" else exactly_once
        self.bench.assign(ONE, TWO)

    def register(self) -> None:
        """What compiling a task does."""
        self.collector.register(ONE, "SINK", "out")
        self.collector.changelog_writer(ONE, "counts", "shop-counts-changelog", 0)

    def refuse(self, name: str, topic: str = "out", partition: int = 0) -> None:
        self.collector.delivery_failed(FakeKafkaError(name), message(topic, 7, b"v", 5, partition=partition))

    def commit(self) -> None:
        self.bench.clock.advance(1)
        self.bench.worker.step()

    def made(self) -> list[Any]:
        return [task.id for task in self.bench.made]


def committed(bench: Bench) -> Any:
    if isinstance(bench.bench.output.commits, AtLeastOnce):
        return {place: offset for place, (offset, _) in bench.bench.membership.offsets.items()}
    sent = [entry[1] for entry in bench.transactions.history if isinstance(entry, tuple)]
    return {place: offset for offsets in sent for place, (offset, _) in offsets.items()}


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("name", PASSING)
def test_a_worker_whose_record_was_not_taken_for_a_while_goes_on_without_loss(name: str, guarantee: str) -> None:
    one = Bench(guarantee)
    one.register()
    one.bench.feed(P0, 0)
    one.refuse(name)
    one.commit()
    assert P0 not in committed(one)
    assert one.made() == [ONE, TWO], "no task is taken up again at once"

    one.bench.clock.advance(0.1)
    one.bench.worker.step()
    one.bench.worker.step()
    one.bench.feed(P0, 0)
    one.commit()
    assert committed(one)[P0] == 1
    assert one.made() == ([ONE, TWO, ONE] if guarantee == "at_least_once" else [ONE, TWO, ONE, TWO])


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_no_task_is_committed_without_its_record_where_those_of_several_were_not_taken(guarantee: str) -> None:
    """A broker that was away has led the changelogs of both."""
    one = Bench(guarantee)
    for number, (task, place) in enumerate(((ONE, P0), (TWO, P1))):
        one.collector.changelog_writer(task, "counts", "shop-counts-changelog", number)
        one.bench.feed(place, 0)
    for number in range(2):
        one.refuse("_MSG_TIMED_OUT", "shop-counts-changelog", number)
    one.commit()
    one.commit()

    assert committed(one) == {}


def test_a_transaction_with_a_record_that_was_not_taken_is_aborted() -> None:
    one = Bench("exactly_once_v2")
    one.register()
    one.bench.feed(P0, 0)
    one.refuse("NOT_ENOUGH_REPLICAS")
    one.commit()

    assert one.transactions.history[-1] == "abort"


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_changelog_record_is_sent_again_whatever_the_handler_says_of_records_to_let_go(guarantee: str) -> None:
    one = Bench(guarantee, Answer(ErrorHandlerResponse.resume()))
    one.register()
    one.bench.feed(P0, 0)
    one.refuse("_MSG_TIMED_OUT", "shop-counts-changelog")
    one.commit()

    assert one.bench.updater.closed


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_record_of_a_task_that_has_closed_since_ends_nothing(guarantee: str) -> None:
    one = Bench(guarantee)
    one.bench.feed(P0, 0)
    one.refuse("_MSG_TIMED_OUT")
    one.commit()
    one.bench.worker.step()

    assert sorted(one.bench.updater.closed) == [(ONE, None), (TWO, None)]
    assert one.made() == [ONE, TWO, ONE, TWO]


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_dead_letter_that_was_not_taken_for_a_while_ends_nothing(guarantee: str) -> None:
    one = Bench(guarantee)
    one.collector.send_all([ProducerRecord("dead", b"k", b"v")], {ONE: "NODE"})
    one.bench.feed(P0, 0)
    one.refuse("_MSG_TIMED_OUT", "dead")
    one.commit()

    assert (ONE, None) in one.bench.updater.closed
    assert P0 not in committed(one)


def test_a_handler_that_says_fail_ends_the_worker() -> None:
    one = Bench("at_least_once", Answer(ErrorHandlerResponse.fail()))
    one.register()
    one.bench.feed(P0, 0)
    one.refuse("_MSG_TIMED_OUT")

    with pytest.raises(DeliveryError, match="record to out from SINK was not delivered"):
        one.commit()


def test_a_task_that_is_starts_over_again_and_again_waits_longer_until_it_is_committed() -> None:
    bench = WorkerBench()
    bench.assign(ONE, TWO)
    waits = []
    for _ in range(3):
        next(task for task in reversed(bench.made) if task.id == ONE).fail = TaskCorruptedError([ONE])
        bench.worker.step()
        waits.append(steps_until(bench, lambda: ONE in bench.tasks.running))
    bench.feed(P1, 0)
    bench.feed(P0, 0)
    bench.clock.advance(2)
    bench.worker.step()
    bench.made[-1].fail = TaskCorruptedError([ONE])
    bench.worker.step()
    waits.append(steps_until(bench, lambda: ONE in bench.tasks.running))

    assert [round(wait, 1) for wait in waits] == [0.1, 0.2, 0.4, 0.1]


def test_a_task_that_starts_over_again_and_again_waits_longer_also_where_others_are_committed() -> None:
    bench = WorkerBench()
    bench.assign(ONE, TWO)
    waits = []
    for offset in range(3):
        next(task for task in reversed(bench.made) if task.id == ONE).fail = TaskCorruptedError([ONE])
        bench.worker.step()
        waits.append(steps_until(bench, lambda: ONE in bench.tasks.running))
        bench.feed(P1, offset)
        bench.clock.advance(2)
        bench.worker.step()
        assert bench.membership.offsets[P1][0] == offset + 1

    assert [round(wait, 1) for wait in waits] == [0.1, 0.2, 0.4]


def steps_until(bench: WorkerBench, done: Callable[[], bool]) -> float:
    began = bench.clock.monotonic()
    while not done():
        bench.clock.advance(0.1)
        bench.worker.step()
        bench.worker.step()
    return bench.clock.monotonic() - began


def test_waits_grow_up_to_the_longest() -> None:
    starts = StartsOver(0.1)

    assert [starts.wait_s([ONE]) for _ in range(9)][-3:] == [6.4, LONGEST_S, LONGEST_S]
    assert starts.wait_s([TWO]) == 0.1
    assert starts.wait_s([ONE, TWO]) == LONGEST_S
    starts.committed([ONE, TWO])
    assert starts.wait_s([ONE]) == 0.1
