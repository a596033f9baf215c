"""Commits: everything delivered, then offsets, then state; again when refused, and now and then without news."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping

import pytest

from pykstreams.core.errors import ClusterError, ClusterUnavailableError, TaskMigratedError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.between_batches import BetweenBatches
from pykstreams.runtime.clients.outage import Outage
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.worker.commits.commit import AtLeastOnce, CommitSteps, Committable, ExactlyOnce
from tests.unit.runtime.cluster_fakes import (
    FakeClock,
    FakeDeliveries,
    FakeMembership,
    FakeTask,
    FakeTransactions,
    Message,
)

ORDERS = TopicPartition("orders", 0)
LOG = TopicPartition("shop-counts-changelog", 0)


class CommitBench:
    """One task and what a commit touches."""

    def __init__(self, changelogs: Collection[TopicPartition] = (LOG,)) -> None:
        self.clock = FakeClock()
        self.membership = FakeMembership()
        self.deliveries = FakeDeliveries()
        self.told: list[Offsets] = []
        self.ends: dict[TopicPartition, int] | None = {LOG: 77}
        self.when_ends_are_asked: Callable[[], None] = lambda: None
        self.task = FakeTask(TaskId(0, 0), [ORDERS], {})
        self.one = Committable(self.task, frozenset({ORDERS}), frozenset(changelogs))
        self.between = BetweenBatches()
        self.steps = CommitSteps(
            deliveries=self.deliveries,
            membership=self.membership,
            end_offsets=self._end_offsets,
            on_committed=self.told.append,
            clock=self.clock,
            outage=Outage("commits of worker-1", self.clock, 300),
            recommit_interval_ms=3_600_000,
            between=self.between,
        )

    def _end_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        self.when_ends_are_asked()
        if self.ends is None:
            raise ClusterError("asking for the end offset of shop-counts-changelog-0 failed")
        return {place: self.ends[place] for place in partitions}

    def process(self, *offsets: int) -> None:
        self.task.add(ORDERS, [Message(offset) for offset in offsets])
        self.task.process(1000)


@pytest.fixture
def bench() -> CommitBench:
    return CommitBench()


def test_offsets_are_committed_after_delivery_and_before_state(bench: CommitBench) -> None:
    bench.process(0, 1, 2)

    assert AtLeastOnce(bench.steps).commit([bench.one])

    assert bench.deliveries.flushed == 1
    assert bench.membership.offsets == {ORDERS: (3, "m3")}
    assert bench.task.history == ["prepare", ("post", {LOG: 77})]
    assert bench.told == [{ORDERS: (3, "m3")}]


def test_visitors_look_in_when_the_cache_of_a_task_is_flushed_and_when_its_state_is_written(bench: CommitBench) -> None:
    class Guest:
        def look(self) -> None:
            seen.append(len(bench.task.history))

        def rest(self) -> None:
            raise AssertionError("a commit is no rest")

    seen: list[int] = []
    bench.between.add(Guest())
    bench.process(0, 1, 2)

    assert AtLeastOnce(bench.steps).commit([bench.one])

    assert seen == [1, 2]


def test_task_without_news_is_not_committed(bench: CommitBench) -> None:
    assert AtLeastOnce(bench.steps).commit_all([bench.one])

    assert bench.membership.commits == 0
    assert bench.deliveries.flushed == 0


def test_failed_delivery_commits_nothing(bench: CommitBench) -> None:
    bench.process(0)
    bench.deliveries.fail = ClusterError("record to bills was not delivered")

    with pytest.raises(ClusterError, match="not delivered"):
        AtLeastOnce(bench.steps).commit([bench.one])

    assert bench.membership.offsets == {}
    assert bench.task.history == ["prepare"]


def test_refused_commit_leaves_state_alone_and_is_repeated(bench: CommitBench) -> None:
    commits = AtLeastOnce(bench.steps)
    bench.process(0)
    bench.membership.busy = 1

    first = commits.commit([bench.one])
    second = commits.commit([bench.one])

    assert (first, second) == (False, True)
    assert bench.task.history == ["prepare", "prepare", ("post", {LOG: 77})]


@pytest.mark.parametrize("exactly_once", [False, True])
def test_commit_waits_for_deliveries_for_a_while_only_and_is_repeated(bench: CommitBench, exactly_once: bool) -> None:
    producer = FakeTransactions()
    commits = ExactlyOnce(bench.steps, producer, bench.clock, 10_000) if exactly_once else AtLeastOnce(bench.steps)
    bench.process(0)
    bench.deliveries.fail = ClusterUnavailableError("2 records were not delivered within 5 s")

    first = commits.commit([bench.one])
    bench.deliveries.fail = None
    second = commits.commit([bench.one])

    assert (first, second) == (False, True)
    assert bench.task.history == ["prepare", "prepare", ("post", {LOG: 77})]


def test_transaction_is_given_up_before_the_brokers_roll_it_back(bench: CommitBench) -> None:
    commits = ExactlyOnce(bench.steps, FakeTransactions(), bench.clock, 10_000)
    bench.process(0)
    bench.deliveries.fail = ClusterUnavailableError("2 records were not delivered within 2 s")
    answers = []
    for _ in range(3):
        answers.append(commits.commit([bench.one]))
        bench.clock.advance(3)

    with pytest.raises(TaskMigratedError, match=r"not delivered within 9\.0 s, and the brokers roll it back soon"):
        commits.commit([bench.one])

    assert answers == [False, False, False]


def test_producer_that_is_broken_is_not_asked_to_abort(bench: CommitBench) -> None:
    producer = FakeTransactions()
    commits = ExactlyOnce(bench.steps, producer, bench.clock, 10_000)
    commits.before_processing()
    bench.deliveries.broken = True

    assert not commits.abort()
    assert producer.history == ["begin"]


def test_broken_producer_is_of_no_use_under_at_least_once_either(bench: CommitBench) -> None:
    bench.deliveries.broken = True

    assert not AtLeastOnce(bench.steps).abort()


def test_commits_that_are_refused_for_too_long_are_an_error(bench: CommitBench) -> None:
    commits = AtLeastOnce(bench.steps)
    bench.process(0)
    bench.membership.busy = 8
    for _ in range(7):
        commits.commit([bench.one])
        bench.clock.advance(43)

    with pytest.raises(ClusterError) as raised:
        commits.commit([bench.one])

    assert str(raised.value) == (
        "commits of worker-1 have failed for 301 s, longer than task.timeout.ms allows (300 s): the group's "
        "coordinator does not take the offsets; look at the brokers, or raise task.timeout.ms"
    )


def test_state_keeps_its_offset_when_the_ends_of_changelogs_are_unknown(
    bench: CommitBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.process(0)
    bench.ends = None

    with caplog.at_level(logging.WARNING):
        assert AtLeastOnce(bench.steps).commit([bench.one])

    assert bench.task.history[-1] == ("post", {})
    assert "so state keeps its old offsets" in caplog.text


@pytest.mark.parametrize("exactly_once", [False, True])
@pytest.mark.parametrize("silent", [6.5, math.inf, None])
def test_state_keeps_its_offset_where_others_may_have_written_to_the_changelog_meanwhile(
    bench: CommitBench, exactly_once: bool, silent: float | None
) -> None:
    """The process may have been stopped between the commit and the look at the end."""
    producer = FakeTransactions()
    commits = ExactlyOnce(bench.steps, producer, bench.clock, 10_000) if exactly_once else AtLeastOnce(bench.steps)
    bench.process(0)
    bench.when_ends_are_asked = lambda: setattr(bench.membership, "silent", silent)

    assert commits.commit([bench.one])

    assert bench.task.history == ["prepare", ("post", {})]


def test_source_topic_as_changelog_stands_for_what_was_read() -> None:
    bench = CommitBench(changelogs=[ORDERS])
    bench.process(0, 1)

    AtLeastOnce(bench.steps).commit([bench.one])

    assert bench.task.history[-1] == ("post", {ORDERS: 2})


def test_offsets_that_do_not_move_are_committed_again_every_hour(bench: CommitBench) -> None:
    commits = AtLeastOnce(bench.steps)
    bench.process(0)
    commits.commit_all([bench.one])
    bench.clock.advance(3599)
    commits.commit_all([bench.one])
    before = bench.membership.commits
    bench.clock.advance(2)

    commits.commit_all([bench.one])
    commits.commit_all([bench.one])

    assert (before, bench.membership.commits) == (1, 2)
    assert bench.membership.offsets == {ORDERS: (1, "m1")}
    assert bench.deliveries.flushed == 2


def test_refused_recommit_is_tried_again(bench: CommitBench) -> None:
    commits = AtLeastOnce(bench.steps)
    bench.process(0)
    commits.commit_all([bench.one])
    bench.clock.advance(3601)
    bench.membership.busy = 1

    first = commits.commit_all([bench.one])
    second = commits.commit_all([bench.one])

    assert (first, second) == (False, True)
    assert bench.membership.commits == 2


def test_abort_forgets_failed_deliveries(bench: CommitBench) -> None:
    assert AtLeastOnce(bench.steps).abort()
    assert bench.deliveries.cleared == 1


def test_transaction_holds_offsets_and_comes_before_state(bench: CommitBench) -> None:
    producer = FakeTransactions()
    commits = ExactlyOnce(bench.steps, producer, bench.clock, 10_000)
    commits.prepare()
    commits.prepare()
    commits.before_processing()
    commits.before_processing()
    bench.process(0)

    assert commits.commit([bench.one])

    assert producer.history == ["start", "begin", ("commit", {ORDERS: (1, "m1")}, b"metadata")]
    assert bench.task.history == ["prepare", ("post", {LOG: 77})]
    assert bench.membership.commits == 0


def test_next_transaction_begins_when_processing_goes_on(bench: CommitBench) -> None:
    producer = FakeTransactions()
    commits = ExactlyOnce(bench.steps, producer, bench.clock, 10_000)
    commits.before_processing()
    bench.process(0)
    commits.commit([bench.one])

    commits.before_processing()

    assert producer.history[-1] == "begin"


def test_fenced_transaction_leaves_state_alone(bench: CommitBench) -> None:
    producer = FakeTransactions()
    commits = ExactlyOnce(bench.steps, producer, bench.clock, 10_000)
    commits.before_processing()
    bench.process(0)
    producer.fail = TaskMigratedError("committing the transaction failed")

    with pytest.raises(TaskMigratedError):
        commits.commit([bench.one])

    assert commits.abort()
    assert producer.history[-1] == "abort"
    assert bench.task.history == ["prepare"]


@pytest.mark.parametrize("step", ["prepare", "before_processing"])
def test_producer_that_breaks_outside_of_a_transaction_is_of_no_use_either(step: str, bench: CommitBench) -> None:
    producer = FakeTransactions()
    commits = ExactlyOnce(bench.steps, producer, bench.clock, 10_000)
    producer.broken = True

    with pytest.raises(TaskMigratedError):
        getattr(commits, step)()

    assert not commits.abort()
    assert producer.history == []


def test_abort_tells_when_the_producer_is_of_no_use(bench: CommitBench) -> None:
    producer = FakeTransactions()
    producer.usable = False
    commits = ExactlyOnce(bench.steps, producer, bench.clock, 10_000)
    commits.before_processing()

    assert not commits.abort()


def test_nothing_is_aborted_outside_of_a_transaction(bench: CommitBench) -> None:
    producer = FakeTransactions()

    assert ExactlyOnce(bench.steps, producer, bench.clock, 10_000).abort()
    assert producer.history == []


def test_idle_offsets_are_committed_again_in_a_transaction(bench: CommitBench) -> None:
    producer = FakeTransactions()
    commits = ExactlyOnce(bench.steps, producer, bench.clock, 10_000)
    bench.process(0)
    commits.commit_all([bench.one])
    bench.clock.advance(3601)

    commits.commit_all([bench.one])
    commits.commit_all([bench.one])

    assert producer.history[-2:] == ["begin", ("commit", {ORDERS: (1, "m1")}, b"metadata")]
    assert len([entry for entry in producer.history if entry[0] == "commit"]) == 2


@pytest.mark.parametrize(("repeats", "noted"), [(False, True), (True, False)])
def test_task_that_ends_while_it_repeats_what_a_dead_worker_did_is_not_noted_as_at_rest(
    bench: CommitBench, repeats: bool, noted: bool
) -> None:
    note = TopicPartition("shop-rows-changelog", 0)
    bench.one.note = note
    bench.task.replays = repeats
    bench.process(0)

    assert AtLeastOnce(bench.steps).commit_last([bench.one])
    assert noted is (note in bench.membership.offsets)
