"""When tasks are swapped, and what becomes of a swap that goes wrong."""

from __future__ import annotations

import logging

import pytest

from pykstreams.core.errors import (
    BootstrapError,
    ClusterError,
    ClusterUnavailableError,
    StreamsError,
    TaskMigratedError,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.consumers.messages import RecordMessage
from pykstreams.runtime.clients.errors import ClientError
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.clients.producer import DeliveryFailures
from pykstreams.runtime.swap.bootstrap import GENERATION
from pykstreams.runtime.swap.generation import Generation
from pykstreams.runtime.swap.shadow import Shadow
from pykstreams.runtime.swap.swap_output import SwapOutput
from pykstreams.runtime.tasks.offset_metadata import ProcessorMetadata
from pykstreams.runtime.tasks.task import Task
from pykstreams.runtime.worker.swaps import Swaps
from pykstreams.runtime.worker.task_manager import Running, TaskManager
from pykstreams.state.interfaces.store import ChangelogWriter
from tests.unit.runtime.cluster_fakes import FakeClock, FakeMembership

NUMBER = 7
FIRST, SECOND = TaskId(0, 0), TaskId(0, 1)


# These are what they stand for by type, so that mypy compares them with it; nothing of that is made, and what is not
# replaced fails.


class TaskToSwap(Task):
    def __init__(self, task_id: TaskId, generation: int | None = None) -> None:
        self.id = task_id
        self._numbers = ProcessorMetadata({} if generation is None else {GENERATION: generation})

    @property
    def metadata(self) -> ProcessorMetadata:
        return self._numbers


def running(task: Task) -> Running:
    return Running(task, frozenset(), frozenset())


class FakeTasks(TaskManager):
    all_running = True

    def __init__(self, *tasks: Task) -> None:
        self.running = {task.id: running(task) for task in tasks}
        self.held: dict[TaskId, Running] = {}
        self.released: list[tuple[TaskId, bool]] = []

    def has(self, one: Running) -> bool:
        return self.running.get(one.task.id) is one or self.held.get(one.task.id) is one

    def hold(self, task_id: TaskId) -> None:
        self.held[task_id] = self.running.pop(task_id)

    def close_held(self, task_id: TaskId, swapped: Shadow | None) -> None:
        if self.held.pop(task_id, None) is not None:
            self.released.append((task_id, swapped is not None))
            self.running[task_id] = running(TaskToSwap(task_id, NUMBER if swapped is not None else None))


class FakeShadow(Shadow):
    near = False

    def __init__(self, task: Task) -> None:
        self.task_id = task.id
        self.written: Offsets | None = None
        self.failure: StreamsError | None = None
        self.heard: list[str] = []

    def follow(self, committed: Offsets) -> None:
        self.heard.append("follow")

    def swap(self, committed: Offsets) -> None:
        self.heard.append("swap")


class FakeGeneration(Generation):
    def __init__(self) -> None:
        self.error: StreamsError | None = None
        self.told: list[frozenset[TaskId]] = []

    def is_due(self, task_id: TaskId, number: int | None) -> bool:
        return number is None

    def report(self, worker: str, waiting: frozenset[TaskId]) -> None:
        self.told.append(waiting)

    def give_up(self, error: StreamsError) -> None:
        self.error = error


class FakeSwapOutput(SwapOutput):
    def __init__(self) -> None:
        self.fail: StreamsError | None = None
        self.committed: list[Offsets] = []

    def commit(self, offsets: Offsets, group_metadata: bytes) -> None:
        assert group_metadata == FakeMembership().transaction_metadata()
        if self.fail is not None:
            raise self.fail
        self.committed.append(offsets)


class SwapsBench:
    """The swaps of a worker among fakes; it is also their updater."""

    def __init__(self, *tasks: TaskToSwap) -> None:
        self.tasks = FakeTasks(*tasks)
        self.clock = FakeClock()
        self.shadows: list[FakeShadow] = []
        self.generation = FakeGeneration()
        self.output = FakeSwapOutput()
        self.membership = FakeMembership()
        self.swaps = Swaps(
            "worker",
            tasks=self.tasks,
            updater=self,
            membership=self.membership,
            output=self.output,
            make_shadow=lambda task, committed, generation: FakeShadow(task),
            clock=self.clock,
            transaction_s=60,
        )
        self.swaps.want(self.generation)
        self.swaps.poll()

    def follow(self, shadow: Shadow) -> None:
        assert isinstance(shadow, FakeShadow)
        self.shadows.append(shadow)

    def write(self) -> None:
        """Brings the shadow to where everything is written."""
        shadow = self.shadows[-1]
        shadow.near = True
        assert self.swaps.after_commit() is not None
        shadow.written = {TopicPartition("orders", 0): (5, "")}


def test_one_task_is_swapped_after_the_other() -> None:
    bench = SwapsBench(TaskToSwap(SECOND), TaskToSwap(FIRST))
    for _ in range(2):
        bench.write()
        bench.swaps.poll()
        bench.swaps.poll()
    bench.swaps.poll()

    assert [shadow.task_id for shadow in bench.shadows] == [FIRST, SECOND]
    assert bench.tasks.released == [(FIRST, True), (SECOND, True)]
    assert bench.generation.told == [{FIRST, SECOND}, {SECOND}, frozenset(), frozenset()]


def test_a_shadow_that_is_not_near_hears_of_commits_and_the_task_goes_on() -> None:
    bench = SwapsBench(TaskToSwap(FIRST))

    assert bench.swaps.after_commit() is None
    assert bench.swaps.after_commit() is None
    assert bench.shadows[0].heard == ["follow", "follow"]
    bench.shadows[0].near = True
    assert bench.swaps.after_commit() is not None
    assert bench.swaps.after_commit() is None
    assert bench.shadows[0].heard == ["follow", "follow", "swap"]


def test_a_shadow_that_took_long_comes_nearer_before_the_task_is_held() -> None:
    bench = SwapsBench(TaskToSwap(FIRST))
    shadow = bench.shadows[0]
    assert not bench.swaps.commit_requested
    for seconds, is_held in ((60, False), (5, False), (0.1, True)):
        bench.clock.advance(seconds)
        shadow.near = True
        assert bench.swaps.commit_requested
        assert (bench.swaps.after_commit() is not None) == is_held
        shadow.near = False

    assert shadow.heard == ["follow", "follow", "swap"]
    assert not bench.swaps.commit_requested


def test_a_shadow_that_is_always_slow_is_waited_for_in_the_end() -> None:
    bench = SwapsBench(TaskToSwap(FIRST))
    bench.shadows[0].near = True
    for _ in range(10):
        bench.clock.advance(1)
        assert bench.swaps.after_commit() is None
    bench.clock.advance(1)

    assert bench.swaps.after_commit() is not None


def test_nothing_begins_while_tasks_are_restored() -> None:
    bench = SwapsBench()
    bench.tasks.all_running = False
    bench.tasks.running[FIRST] = running(TaskToSwap(FIRST))
    bench.swaps.poll()

    assert bench.shadows == []


@pytest.mark.parametrize("error", [TaskMigratedError("fenced"), ClusterError("timed out")])
def test_a_commit_that_the_brokers_refuse_is_tried_again(error: StreamsError) -> None:
    bench = SwapsBench(TaskToSwap(FIRST))
    bench.write()
    bench.output.fail = error
    bench.swaps.poll()

    assert bench.tasks.released == [(FIRST, False)]

    bench.output.fail = None
    bench.swaps.poll()
    bench.write()
    bench.swaps.poll()

    assert bench.tasks.released[1:] == [(FIRST, True)]
    assert bench.generation.error is None


def test_brokers_that_refuse_again_and_again_end_it(caplog: pytest.LogCaptureFixture) -> None:
    bench = SwapsBench(TaskToSwap(FIRST))
    bench.output.fail = ClusterError("timed out")
    for _ in range(5):
        bench.write()
        bench.swaps.poll()
        bench.swaps.poll()

    assert str(bench.generation.error) == "timed out"
    assert len(bench.shadows) == 5
    assert "task 0_0 keeps its state, and no further task is swapped: timed out" in caplog.text


def test_a_swap_that_meets_a_rebalance_is_committed_when_the_tasks_are_shared_out() -> None:
    bench = SwapsBench(TaskToSwap(FIRST))
    bench.membership.rebalances = True
    bench.write()
    for _ in range(6):
        bench.clock.advance(10)
        bench.swaps.poll()
    meanwhile = list(bench.tasks.released)
    bench.membership.rebalances = False
    bench.swaps.poll()

    assert meanwhile == []
    assert len(bench.shadows) == 1
    assert bench.tasks.released == [(FIRST, True)]


def test_a_swap_that_meets_a_rebalance_is_given_up_when_its_transaction_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each swap has the whole time of a transaction."""
    bench = SwapsBench(TaskToSwap(FIRST))
    bench.membership.rebalances = True
    for _ in range(2):
        bench.write()
        for _ in range(8):
            bench.swaps.poll()
            bench.clock.advance(10)
        bench.swaps.poll()

    assert bench.tasks.released == [(FIRST, False)] * 2
    assert len(bench.shadows) == 3
    why = "the group has shared out its tasks anew for 70 s, longer than a transaction may last (60 s, producer."
    assert caplog.text.count(f"task 0_0 was not swapped, and is tried again: {why}transaction.timeout.ms)") == 2


def test_a_bootstrap_that_cannot_be_loaded_ends_it_and_the_task_goes_on() -> None:
    bench = SwapsBench(TaskToSwap(FIRST), TaskToSwap(SECOND))
    bench.shadows[0].failure = BootstrapError("damaged")
    bench.swaps.poll()
    bench.swaps.poll()

    assert str(bench.generation.error) == "damaged"
    assert (bench.tasks.released, set(bench.tasks.running)) == ([], {FIRST, SECOND})
    assert len(bench.shadows) == 1


def test_a_task_that_leaves_takes_its_swap_with_it() -> None:
    bench = SwapsBench(TaskToSwap(FIRST), TaskToSwap(SECOND))
    bench.write()
    del bench.tasks.held[FIRST]
    bench.swaps.poll()
    bench.swaps.poll()

    assert bench.output.committed == []
    assert [shadow.task_id for shadow in bench.shadows] == [FIRST, SECOND]


# --- the way out ---


class FakeProducer:
    def __init__(self) -> None:
        self.history: list[str] = []
        self.failures = DeliveryFailures()

    def start_transactions(self, timeout_s: float) -> None:
        self.history.append("start")

    def begin(self) -> None:
        self.history.append("begin")

    def commit(self, offsets: Offsets, group_metadata: bytes) -> None:
        self.history.append("commit")

    def abort(self) -> bool:
        self.history.append("abort")
        return True

    def discard(self) -> None:
        self.history.append("discard")


class FakeCollector:
    def delivery_failed(self, error: ClientError | None, message: RecordMessage) -> None:
        """Nothing fails."""

    def changelog_writer(self, task_id: TaskId, store: str, topic: str, partition: int) -> ChangelogWriter:
        raise NotImplementedError("nothing is written in these tests")

    def poll(self) -> None:
        """Nothing is delivered."""

    def flush(self) -> None:
        """Nothing waits."""


class InDoubt(FakeProducer):
    """A producer that does not know what became of its transaction."""

    def abort(self) -> bool:
        super().abort()
        return False


class Away(FakeProducer):
    """A producer to which no broker answers."""

    def start_transactions(self, timeout_s: float) -> None:
        super().start_transactions(timeout_s)
        raise ClusterUnavailableError("starting transactions failed")


def test_transaction_that_a_producer_cannot_abort_is_ended_by_another_one_and_not_by_its_time_out() -> None:
    """The offsets of the task are in it, and nobody opens the task while it is open: for a minute."""
    first, second = InDoubt(), FakeProducer()
    left = [first, second]
    output = SwapOutput(lambda: (left.pop(0), FakeCollector()))
    output.begin()
    output.abort()

    assert first.history == ["start", "begin", "abort", "discard"]
    assert second.history == ["start"]
    output.begin()
    assert second.history == ["start", "begin"]


def test_transaction_that_cannot_be_ended_now_is_ended_by_the_next_one(caplog: pytest.LogCaptureFixture) -> None:
    first, second, third = InDoubt(), Away(), FakeProducer()
    left = [first, second, third]
    output = SwapOutput(lambda: (left.pop(0), FakeCollector()))
    output.begin()
    with caplog.at_level(logging.INFO):
        output.abort()
    output.begin()

    assert second.history == ["start", "discard"]
    assert third.history == ["start", "begin"]
    assert "starting transactions failed" in caplog.text


def test_a_producer_serves_until_a_transaction_is_given_up() -> None:
    made: list[FakeProducer] = []

    def make() -> tuple[FakeProducer, FakeCollector]:
        made.append(FakeProducer())
        return made[-1], FakeCollector()

    output = SwapOutput(make)
    assert made == []
    for _ in range(2):
        output.begin()
        output.commit({}, b"")
    output.begin()
    output.abort()
    output.begin()
    output.commit({}, b"")
    for _ in range(2):
        output.close()

    assert [one.history for one in made] == [
        ["start", "begin", "commit", "begin", "commit", "begin", "abort", "discard"],
        ["start", "begin", "commit", "discard"],
    ]
    assert made[0].failures.handler is not None


def test_a_producer_that_fails_to_abort_is_let_go_all_the_same() -> None:
    class Failing(FakeProducer):
        def abort(self) -> bool:
            raise StreamsError("the library is out of order")

    producer = Failing()
    output = SwapOutput(lambda: (producer, FakeCollector()))
    output.begin()
    with pytest.raises(StreamsError, match="out of order"):
        output.abort()

    assert producer.history == ["start", "begin", "discard"]


def test_a_producer_that_cannot_start_is_let_go() -> None:
    producer = Away()
    output = SwapOutput(lambda: (producer, FakeCollector()))
    with pytest.raises(ClusterUnavailableError):
        output.begin()

    assert producer.history == ["start", "discard"]


def test_nothing_is_written_outside_of_a_transaction() -> None:
    output = SwapOutput(lambda: (FakeProducer(), FakeCollector()))
    output.abort()

    with pytest.raises(StreamsError, match="no transaction was begun for a swap of state"):
        output.flush()
