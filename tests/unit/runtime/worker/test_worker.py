"""The loop and its tasks: assigned, restored, fed, committed, handed over, lost and taken up again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import (
    ClusterError,
    ClusterUnavailableError,
    ConfigError,
    MissingSourceTopicError,
    ProcessingError,
    StoreEngineError,
    TaskCorruptedError,
    TaskMigratedError,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.messages import Fetched
from pykstreams.runtime.clients.positions import BEGINNING, Offsets
from pykstreams.runtime.membership.membership import Assignment, Lost
from pykstreams.runtime.restore.restore import Damaged
from pykstreams.runtime.swap.shadow import Shadow
from pykstreams.runtime.tasks.task import Task
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.runtime.topics.topic_watch import TopicWatch
from pykstreams.runtime.worker.commit import AtLeastOnce, Commits, CommitSteps
from pykstreams.runtime.worker.outage import Outage
from pykstreams.runtime.worker.start_offsets import StartOffsets
from pykstreams.runtime.worker.state_updater import Corrupted, Failed, Report, Restored
from pykstreams.runtime.worker.task_manager import RETRY_S, TaskManager
from pykstreams.runtime.worker.turns import LOOK_EVERY
from pykstreams.runtime.worker.worker import Worker, WorkerParts
from tests.unit.runtime.cluster_fakes import (
    FakeClock,
    FakeDeliveries,
    FakeMembership,
    FakeReader,
    FakeTask,
    Message,
    fetched,
)
from tests.unit.runtime.plans import part, plan, source

ONE, TWO = TaskId(0, 0), TaskId(0, 1)
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
LOG = TopicPartition("shop-rows-changelog", 0)
INPUTS = {ONE: frozenset({P0}), TWO: frozenset({P1})}


class FakeUpdater:
    """Restores at once, unless it is told to hold tasks back."""

    def __init__(self) -> None:
        self.hold = False
        self.open_tasks: list[Task] = []
        self.closed: list[tuple[TaskId, bool]] = []
        self.limits: dict[TaskId, Mapping[TopicPartition, int]] = {}
        self.changelogs: dict[TaskId, frozenset[TopicPartition]] = {}
        self.pending: list[Report] = []
        self.stopped = False

    def start(self) -> None:
        pass

    def open(self, task: Task, limits: Mapping[TopicPartition, int]) -> None:
        self.open_tasks.append(task)
        self.limits[task.id] = limits
        if not self.hold:
            self.pending.append(Restored(task.id, self.changelogs.get(task.id, frozenset())))

    def close(self, task: Task, *, wipe: bool = False, swapped: Shadow | None = None) -> None:
        self.closed.append((task.id, wipe))

    def reports(self) -> list[Report]:
        found, self.pending = self.pending, []
        return found

    def remaining(self) -> dict[TaskId, int]:
        return {}

    def stop(self) -> None:
        self.stopped = True


@dataclass
class FakeOutput:
    commits: Commits
    renewed: int = 0
    closed: bool = False
    away: int = 0
    """How many more times the cluster does not answer."""
    holds_records: bool = False

    def prepare(self) -> None:
        if self.away:
            self.away -= 1
            raise ClusterUnavailableError("starting transactions failed: no coordinator")
        self.commits.prepare()

    def poll(self) -> None:
        pass

    def renew(self) -> None:
        self.renewed += 1

    def close(self) -> None:
        self.closed = True


def note_of(task: TaskId) -> TopicPartition:
    return TopicPartition("notes", task.partition)


@dataclass
class World:
    """A worker with everything around it faked."""

    settings: dict[str, object] = field(default_factory=dict)
    start_failure: Exception | None = None
    notes: bool = False
    """Whether tasks with state note that they are worked on."""

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.membership = FakeMembership()
        self.reader = FakeReader()
        self.updater = FakeUpdater()
        self.deliveries = FakeDeliveries()
        self.layout = TopicLayout({"orders": 2}, dict(INPUTS))
        self.made: list[FakeTask] = []
        self.interrupted: list[bool] = []
        """Of each task that was made: whether its last worker has died."""
        self.states: list[bool] = []
        self.gone: Exception | None = None
        self.watch = TopicWatch("topics", self._look)
        steps = CommitSteps(
            deliveries=self.deliveries,
            membership=self.membership,
            end_offsets=lambda partitions: dict.fromkeys(partitions, 0),
            on_committed=lambda offsets: None,
            clock=self.clock,
            outage=Outage("commits of worker", self.clock, 300),
        )
        self.output = FakeOutput(AtLeastOnce(steps))
        start = StartOffsets(plan(part(0, source("A", "orders"))), "earliest", lambda p, t: {}, self.clock)
        self.tasks = TaskManager(
            inputs=self.layout.inputs,
            membership=self.membership,
            reader=self.reader,
            updater=self.updater,
            start_offsets=start,
            make_task=self._make_task,
            before_start=lambda: None,
            clock=self.clock,
            note_of=note_of if self.notes else None,
        )
        self.worker = Worker(
            "worker",
            WorkerParts(
                self.membership,
                self.reader,
                self.updater,
                self.output,
                self.tasks,
                None,
                start,
                lambda: self.layout,
                topic_watch=self.watch,
            ),
            shared=list(INPUTS),
            config=StreamsConfig({"commit.interval.ms": 1000, "buffered.records.per.partition": 2, **self.settings}),
            session_timeout_ms=6000,
            clock=self.clock,
            on_running=self.states.append,
        )
        self.membership.start(list(INPUTS), self.worker.revoked)

    def _make_task(
        self, task_id: TaskId, inputs: Collection[TopicPartition], committed: Offsets, interrupted: bool
    ) -> FakeTask:
        self.interrupted.append(interrupted)
        self.made.append(FakeTask(task_id, inputs, {}, start_failure=self.start_failure))
        return self.made[-1]

    def _look(self) -> None:
        if self.gone is not None:
            raise self.gone

    def assign(self, *tasks: TaskId) -> None:
        self.membership.changes.append(Assignment(1, frozenset(tasks)))
        self.worker.step()
        self.worker.step()

    def feed(self, place: TopicPartition, *offsets: int) -> None:
        self.reader.next = fetched(place, *offsets)
        self.worker.step()


@pytest.fixture
def world() -> World:
    return World()


def test_assigned_task_is_restored_before_its_partitions_are_read(world: World) -> None:
    world.updater.hold = True
    world.assign(ONE)
    before = dict(world.reader.assigned)
    world.updater.pending.append(Restored(ONE, frozenset()))
    world.worker.step()

    assert before == {}
    assert world.reader.assigned == {P0: BEGINNING}
    assert world.states == [True]


def test_task_goes_on_at_its_committed_offset(world: World) -> None:
    world.membership.offsets[P0] = (7, "time")
    world.assign(ONE)

    assert world.reader.assigned == {P0: 7}
    assert world.made[0].history == [("start", {P0: (7, "time")})]
    assert world.updater.limits[ONE] == {P0: 7}


@pytest.fixture
def noting() -> World:
    """A worker that takes notes, with state in each of its tasks."""
    world = World(notes=True)
    world.updater.changelogs = {ONE: frozenset({LOG}), TWO: frozenset({LOG})}
    return world


def test_nothing_is_committed_for_what_was_not_read_but_a_note_that_the_task_is_worked_on(noting: World) -> None:
    noting.assign(ONE)

    assert noting.membership.offsets == {note_of(ONE): (0, "at work")}


def test_task_gets_no_record_before_it_is_noted_that_it_is_worked_on(noting: World) -> None:
    noting.membership.busy = 2
    noting.assign(ONE)
    before = dict(noting.reader.assigned)
    noting.worker.step()
    noting.worker.step()

    assert before == {}
    assert noting.reader.assigned == {P0: BEGINNING}
    assert noting.membership.offsets == {note_of(ONE): (0, "at work")}


def test_task_without_state_needs_no_note() -> None:
    world = World(notes=True)
    world.assign(ONE)
    world.membership.changes.append([ONE])
    world.worker.step()

    assert world.membership.offsets == {}


def test_note_goes_with_the_last_commit_of_a_task_that_leaves(noting: World) -> None:
    noting.assign(ONE, TWO)
    noting.feed(P0, 0)
    noting.membership.changes.append([ONE])
    noting.worker.step()

    assert noting.membership.offsets == {P0: (1, "m1"), note_of(ONE): (0, ""), note_of(TWO): (0, "at work")}


def test_notes_go_when_a_worker_stops_also_those_of_tasks_that_had_nothing_to_do(noting: World) -> None:
    noting.assign(ONE, TWO)
    noting.feed(P0, 0)
    noting.worker.stop(leave=True)
    noting.worker.run()

    assert noting.membership.offsets == {P0: (1, "m1"), note_of(ONE): (0, ""), note_of(TWO): (0, "")}


def test_note_stays_where_a_task_was_lost(noting: World) -> None:
    noting.assign(ONE)
    noting.feed(P0, 0)
    noting.membership.changes.append(Lost(2))
    noting.worker.step()
    noting.assign(ONE)

    assert noting.membership.offsets == {note_of(ONE): (0, "at work")}
    assert noting.interrupted == [False, True]


def test_task_whose_last_worker_ended_in_good_order_was_not_interrupted(noting: World) -> None:
    noting.membership.offsets = {P0: (3, "m"), note_of(ONE): (0, "")}
    noting.assign(ONE)

    assert noting.interrupted == [False]


def test_task_waits_until_its_committed_offsets_are_known(world: World) -> None:
    world.membership.unstable = 2
    world.assign(ONE)
    before = list(world.made)
    world.worker.step()
    world.worker.step()

    assert before == []
    assert world.reader.assigned == {P0: BEGINNING}


def test_commit_comes_after_its_interval_and_not_before(world: World) -> None:
    world.assign(ONE)
    world.feed(P0, 0, 1)
    before = dict(world.membership.offsets)
    world.clock.advance(1.1)
    world.worker.step()

    assert before == {}
    assert world.membership.offsets == {P0: (2, "m2")}


def test_commit_that_user_code_asks_for_comes_at_once(world: World) -> None:
    world.assign(ONE)
    world.made[0].commit_requested = True
    world.feed(P0, 0)

    assert world.membership.offsets == {P0: (1, "m1")}


def test_revoked_task_is_committed_inside_the_rebalance_and_then_closed(world: World) -> None:
    world.assign(ONE, TWO)
    world.feed(P0, 0)
    world.membership.changes += [[ONE], Assignment(2, frozenset({TWO}))]
    world.worker.step()

    assert world.membership.offsets == {P0: (1, "m1")}
    assert world.updater.closed == [(ONE, False)]
    assert world.reader.assigned == {P1: BEGINNING}


def test_records_of_a_task_that_left_are_ignored(world: World) -> None:
    world.assign(ONE)
    world.membership.changes += [[ONE], Assignment(2, frozenset())]
    world.worker.step()
    world.feed(P0, 0)

    assert world.made[0].done == {}


def test_lost_tasks_are_closed_without_a_commit_before_the_loss_is_acknowledged(world: World) -> None:
    world.assign(ONE)
    world.feed(P0, 0)
    lost = Lost(1)
    world.membership.changes.append(lost)
    world.worker.step()

    assert world.membership.offsets == {}
    assert world.updater.closed == [(ONE, False)]
    assert world.membership.acknowledged[-1] == lost
    assert world.reader.assigned == {}


def test_fenced_worker_takes_its_tasks_up_again_from_the_last_commit(world: World) -> None:
    world.assign(ONE)
    world.feed(P0, 0)
    world.membership.fail = TaskMigratedError("offsets were not committed")
    world.clock.advance(1.1)
    world.worker.step()
    world.worker.step()
    world.worker.step()

    assert [task.id for task in world.made] == [ONE, ONE]
    assert world.reader.assigned == {P0: BEGINNING}
    assert world.deliveries.cleared == 1


def test_corrupted_task_is_taken_up_again_and_its_neighbour_stays(world: World) -> None:
    world.assign(ONE, TWO)
    world.made[0].fail = TaskCorruptedError([ONE])
    world.worker.step()

    assert world.updater.closed == [(ONE, False)]
    assert TWO in world.tasks.running


BROKEN = StoreEngineError("store 'counts' of task 0_0 in '/state/shop/0_0' cannot be read", task_id=ONE)


def put_aside(world: World) -> list[TaskId]:
    """Which tasks were made by the time that the worker tries again, and a moment before."""
    world.clock.advance(RETRY_S - 1)
    world.worker.step()
    before = [task.id for task in world.made]
    world.clock.advance(1)
    world.worker.step()
    assert len(before) < len(world.made)
    return before


def test_task_whose_store_fails_is_tried_again_later_and_its_neighbour_goes_on(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.assign(ONE, TWO)
    world.made[0].fail = BROKEN
    world.worker.step()
    world.feed(P1, 5)

    assert world.updater.closed == [(ONE, False)]
    assert world.made[1].done == {P1: 6}
    assert world.states == [True, False]
    assert put_aside(world) == [ONE, TWO]
    assert caplog.messages == [
        "task 0_0 is closed, and tried again every 30 s; other tasks go on: store 'counts' of task 0_0 in "
        "'/state/shop/0_0' cannot be read"
    ]


def test_task_whose_store_fails_while_it_is_opened_is_tried_again_later(world: World) -> None:
    world.updater.hold = True
    world.assign(ONE)
    world.updater.pending.append(Damaged(ONE, BROKEN))
    world.worker.step()

    assert put_aside(world) == [ONE]


def test_store_that_fails_under_exactly_once_takes_the_transaction_with_it_and_no_other_task() -> None:
    world = World({"processing.guarantee": "exactly_once_v2"})
    world.assign(ONE, TWO)
    world.made[0].fail = BROKEN
    world.worker.step()
    world.worker.step()

    assert sorted(world.updater.closed) == [(ONE, False), (TWO, False)]
    assert world.deliveries.cleared == 1
    assert [task.id for task in world.made] == [ONE, TWO, TWO]


def test_record_that_was_lost_is_not_forgotten_over_a_store_that_fails(world: World) -> None:
    world.assign(ONE, TWO)
    world.feed(P1, 5)
    world.deliveries.fail = ProcessingError("not delivered")
    world.made[0].fail = BROKEN
    world.worker.step()
    world.clock.advance(1)

    with pytest.raises(ProcessingError, match="not delivered"):
        world.worker.step()


def test_store_that_fails_and_is_of_no_task_here_ends_the_worker(world: World) -> None:
    world.assign(ONE)
    world.made[0].fail = StoreEngineError("global store 'rates' cannot be read", task_id=TaskId(-1, -1))

    with pytest.raises(StoreEngineError, match="rates"):
        world.worker.step()


def test_topic_that_was_deleted_ends_the_worker(world: World) -> None:
    world.assign(ONE)
    world.gone = MissingSourceTopicError("topic 'orders' does not exist")
    world.watch.look()
    world.worker.step()
    world.watch.look()

    with pytest.raises(MissingSourceTopicError):
        world.worker.step()


def test_task_whose_state_was_deleted_is_opened_anew(world: World) -> None:
    world.updater.hold = True
    world.assign(ONE)
    world.updater.hold = False
    world.updater.pending.append(Corrupted(ONE))
    world.worker.step()
    world.worker.step()

    assert len(world.made) == 2
    assert world.reader.assigned == {P0: BEGINNING}


def test_failure_of_the_state_updater_ends_the_worker(world: World) -> None:
    world.updater.pending.append(Failed(ProcessingError("disk full")))

    with pytest.raises(ProcessingError, match="disk full"):
        world.worker.step()


def test_full_partition_is_paused_and_resumed_with_wide_hysteresis(world: World) -> None:
    """The marks are 20 and 2 here: ten times the setting, and the setting."""
    world.assign(ONE)
    task = world.made[0]
    task.hold = True
    world.feed(P0, *range(20))
    at_the_mark = set(world.reader.paused)
    world.feed(P0, 20)
    above = set(world.reader.paused)
    del task.waiting[P0][:18]
    world.worker.step()
    still = set(world.reader.paused)
    del task.waiting[P0][:1]
    world.worker.step()

    assert (at_the_mark, above, still) == (set(), {P0}, {P0})
    assert world.reader.paused == set()


def test_partition_that_lost_its_position_starts_by_policy(world: World) -> None:
    world.assign(ONE)
    world.reader.next = Fetched(lost_position=[P0, P1])
    world.worker.step()

    assert world.reader.sought == {P0: BEGINNING}


def test_loop_does_not_wait_for_records_while_a_task_has_some(world: World) -> None:
    world.assign(ONE)
    world.made[0].waiting[P0] = [Message(0)]
    world.worker.step()

    assert world.reader.timeouts[-1] == 0


def test_task_that_reads_more_from_now_on_is_committed_and_rebuilt(world: World) -> None:
    world.assign(ONE)
    world.feed(P0, 0)
    more = TopicPartition("returns", 0)
    world.layout = TopicLayout({"orders": 2, "returns": 1}, {**INPUTS, ONE: frozenset({P0, more})})
    world.clock.advance(301)
    world.worker.step()
    world.worker.step()
    world.worker.step()

    assert world.membership.offsets == {P0: (1, "m1")}
    assert set(world.reader.assigned) == {P0, more}


def run(world: World, then: Callable[[], None]) -> None:
    """Runs the worker; at its second fetch something happens."""
    fetch = world.reader.fetch

    def counted(timeout: float) -> Fetched:
        if len(world.reader.timeouts) == 2:
            then()
        return fetch(timeout)

    world.reader.fetch = counted  # type: ignore[method-assign]
    world.membership.changes.append(Assignment(1, frozenset({ONE})))
    world.worker.run()


@pytest.mark.parametrize("leave", [True, False])
def test_stopped_worker_commits_closes_and_leaves_as_it_was_told(world: World, leave: bool) -> None:
    def stop() -> None:
        world.reader.next = fetched(P0, 0)
        world.membership.busy = 1
        world.worker.stop(leave=leave)

    run(world, stop)

    assert world.membership.offsets == {P0: (1, "m1")}
    assert world.updater.closed == [(ONE, False)]
    assert (world.updater.stopped, world.output.closed, world.reader.closed) == (True, True, True)
    assert world.membership.left is leave


def test_failing_worker_commits_nothing_and_closes_everything(world: World) -> None:
    def break_it() -> None:
        world.reader.next = fetched(P0, 0)
        world.made[0].fail = ProcessingError("map failed at record orders-0 offset 0")

    with pytest.raises(ProcessingError, match="orders-0 offset 0"):
        run(world, break_it)

    assert world.membership.offsets == {}
    assert (world.updater.stopped, world.reader.closed) == (True, True)


def test_task_that_cannot_start_ends_the_worker_with_its_own_error(world: World) -> None:
    world.start_failure = ConfigError("no serde was given")

    with pytest.raises(ConfigError, match="no serde was given"):
        run(world, lambda: None)

    assert world.updater.closed == [(ONE, False)]
    assert (world.updater.stopped, world.reader.closed) == (True, True)


def test_last_commit_that_is_fenced_is_said_and_does_not_fail(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def stop() -> None:
        world.reader.next = fetched(P0, 0)
        world.membership.fail = TaskMigratedError("not in the group")
        world.worker.stop(leave=True)

    with caplog.at_level(logging.WARNING):
        run(world, stop)

    assert "the last commit did not succeed, so some records will be processed again: not in the group" in caplog.text


def test_worker_that_was_stopped_for_its_session_asks_the_group_before_it_goes_on(world: World) -> None:
    world.assign(ONE)
    world.made[0].add(P0, [Message(0)])
    world.clock.advance(3.5)
    world.membership.unsure = 1
    world.worker.step()
    before = dict(world.made[0].done)
    world.worker.step()

    assert (before, world.made[0].done) == ({}, {P0: 1})
    assert world.membership.confirmed == 2


def test_worker_that_was_put_out_of_the_group_while_it_was_stopped_processes_nothing(world: World) -> None:
    world.assign(ONE)
    world.made[0].add(P0, [Message(0)])
    world.clock.advance(7)
    world.membership.put_out = TaskMigratedError("no member any more")
    world.worker.step()

    assert world.made[0].done == {}
    assert world.updater.closed == [(ONE, False)]
    assert world.membership.offsets == {}


def test_worker_that_is_stopped_in_the_middle_of_its_records_asks_before_the_next_ones(world: World) -> None:
    world.assign(ONE)
    task = world.made[0]
    task.when_processing = lambda: world.clock.advance(7)
    world.membership.put_out = TaskMigratedError("no member any more")
    world.feed(P0, *range(3 * LOOK_EVERY))
    task.when_processing = lambda: None

    assert task.done == {P0: LOOK_EVERY}
    world.worker.step()
    assert task.done == {P0: LOOK_EVERY}
    assert world.updater.closed == [(ONE, False)]
    assert world.membership.offsets == {}


def test_worker_that_is_never_silent_asks_nobody(world: World) -> None:
    world.assign(ONE)
    for offset in range(20):
        world.feed(P0, offset)
        world.clock.advance(0.5)

    assert world.membership.confirmed == 0
    assert world.membership.offsets[P0][0] > 15


def test_cluster_that_does_not_answer_sends_tasks_back_to_their_last_commit_and_ends_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.assign(ONE)
    world.made[0].fail = ClusterUnavailableError("asking for the topics failed")
    world.feed(P0, 0)
    world.worker.step()
    world.worker.step()

    assert world.updater.closed == [(ONE, False)]
    assert len(world.made) == 2
    assert P0 in world.reader.assigned
    assert "requests of worker fail (for 0 s so far): asking for the topics failed" in caplog.text


def test_cluster_that_does_not_answer_for_the_task_timeout_ends_the_worker(world: World) -> None:
    world.assign(ONE)
    world.output.away = 1000
    world.worker.step()
    world.clock.advance(301)

    with pytest.raises(ClusterError, match=r"requests of worker have failed for 301 s.*task\.timeout\.ms"):
        world.worker.step()


def test_tasks_are_opened_when_the_output_is_ready_and_not_before(world: World) -> None:
    world.output.away = 3
    world.assign(ONE)
    before = len(world.made)
    for _ in range(3):
        world.worker.step()

    assert before == 0
    assert P0 in world.reader.assigned


def test_producer_that_is_made_anew_leaves_no_task_that_would_send_through_the_old_one(world: World) -> None:
    world.assign(ONE)
    world.updater.hold = True
    world.membership.changes.append(Assignment(2, frozenset({ONE, TWO})))
    world.worker.step()
    world.deliveries.broken = True
    world.made[0].fail = TaskMigratedError("the producer cannot go on")
    world.feed(P0, 0)

    assert world.output.renewed == 1
    assert {task_id for task_id, _ in world.updater.closed} == {ONE, TWO}


def test_end_of_a_partition_is_told_to_its_task(world: World) -> None:
    world.assign(ONE)
    world.reader.next = Fetched(ends={P0: 9, P1: 4})
    world.worker.step()

    assert ("end", P0, 9) in world.made[0].history


def test_input_that_cannot_be_read_for_a_while_is_logged_once_per_interval(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.assign(ONE)
    for _ in range(5):
        world.reader.next = Fetched(held_up={"orders-0": "no leader (LEADER_NOT_AVAILABLE)"})
        world.worker.step()

    assert [line for line in caplog.messages if "held up" in line] == [
        "reading orders-0 is held up: no leader (LEADER_NOT_AVAILABLE); the client tries again by itself"
    ]


def test_worker_that_lost_its_tasks_sends_nothing_of_theirs_any_more(world: World) -> None:
    world.assign(ONE)
    world.output.holds_records = True
    world.membership.changes.append(Lost(1))
    world.worker.step()

    assert world.output.renewed == 1
    assert world.updater.closed == [(ONE, False)]


def test_records_of_tasks_that_leave_without_a_commit_are_not_sent_any_more(world: World) -> None:
    world.assign(ONE, TWO)
    world.feed(P0, 0)
    world.output.holds_records = True
    world.deliveries.fail = ClusterUnavailableError("1 records were not delivered within 5 s")
    world.membership.changes.append({ONE})
    world.worker.step()

    assert world.output.renewed == 1
    assert {task_id for task_id, _ in world.updater.closed} == {ONE, TWO}
    assert world.membership.offsets.get(P0) is None


def test_task_that_fails_alone_leaves_what_others_have_sent(world: World) -> None:
    world.assign(ONE, TWO)
    world.output.holds_records = True
    world.made[0].fail = TaskCorruptedError([ONE])
    world.feed(P0, 0)

    assert world.output.renewed == 0
    assert world.updater.closed == [(ONE, False)]


@pytest.mark.parametrize(("guarantee", "added"), [("exactly_once_v2", False), ("at_least_once", True)])
def test_nothing_is_added_to_a_transaction_whose_records_are_not_delivered(guarantee: str, added: bool) -> None:
    world = World(settings={"processing.guarantee": guarantee})
    world.assign(ONE)
    world.feed(P0, 0)
    world.deliveries.fail = ClusterUnavailableError("1 records were not delivered within 5 s")
    world.clock.advance(2)
    world.worker.step()
    world.feed(P0, 1)
    meanwhile = world.made[0].done[P0]
    world.deliveries.fail = None
    world.worker.step()
    world.worker.step()

    assert meanwhile == (2 if added else 1)
    assert world.made[0].done == {P0: 2}
