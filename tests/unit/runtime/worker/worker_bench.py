"""A worker with everything around it faked."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterUnavailableError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.between_batches import BetweenBatches
from pykstreams.runtime.clients.consumers.lost_positions import LostPositions
from pykstreams.runtime.clients.outage import Outage
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.key_places.key_watch import KeyWatch
from pykstreams.runtime.membership.membership import Assignment
from pykstreams.runtime.pause import Pause
from pykstreams.runtime.tasks.task import Task
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.runtime.topics.topic_watch import TopicWatch
from pykstreams.runtime.worker.commits.commit import AtLeastOnce, Commits, CommitSteps
from pykstreams.runtime.worker.start_offsets import StartOffsets
from pykstreams.runtime.worker.state_updater import Leaves, Report, Restored
from pykstreams.runtime.worker.task_manager import TaskManager
from pykstreams.runtime.worker.tasks_aside import TasksAside
from pykstreams.runtime.worker.topic_check import TopicCheck
from pykstreams.runtime.worker.unsettled_offsets import UnsettledOffsets
from pykstreams.runtime.worker.worker import Worker, WorkerParts
from pykstreams.state.directory.disk_room import DiskRoom
from pykstreams.state.interfaces.record_cache import RecordCache
from tests.unit.runtime.cluster_fakes import (
    FakeBounds,
    FakeClock,
    FakeDeliveries,
    FakeMembership,
    FakeReader,
    FakeTask,
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
        self.closed: list[tuple[TaskId, Leaves]] = []
        self.limits: dict[TaskId, Mapping[TopicPartition, int]] = {}
        self.changelogs: dict[TaskId, frozenset[TopicPartition]] = {}
        self.pending: list[Report] = []
        self.stopped = False
        self.restored = 0

    def start(self) -> None:
        pass

    def open(self, task: Task, limits: Mapping[TopicPartition, int]) -> None:
        self.open_tasks.append(task)
        self.limits[task.id] = limits
        if not self.hold:
            self.pending.append(Restored(task.id, self.changelogs.get(task.id, frozenset())))

    def close(self, task: Task, leaves: Leaves = None) -> None:
        self.closed.append((task.id, leaves))

    def reports(self) -> list[Report]:
        found, self.pending = self.pending, []
        return found

    def remaining(self) -> dict[TaskId, int]:
        return {}

    def positions(self) -> dict[TopicPartition, int]:
        return {}

    def stop(self) -> None:
        self.stopped = True


@dataclass
class FakeWorkerOutput:
    """An output whose cluster may be away for some time; what is committed goes to ``commits``."""

    commits: Commits
    make_commits: Callable[[], Commits] | None = None
    """Makes them over another producer; ``None``: they stay as they are."""
    renewed: int = 0
    closed: bool = False
    away: int = 0
    """How many more times the cluster does not answer."""
    holds_records: bool = False
    polled: int = 0
    is_behind: bool = False
    """Whether the brokers take less than is sent."""

    def prepare(self) -> None:
        if self.away:
            self.away -= 1
            raise ClusterUnavailableError("starting transactions failed: no coordinator")
        self.commits.prepare()

    def poll(self) -> None:
        self.polled += 1

    def keeps_up(self) -> bool:
        return not self.is_behind

    def renew(self) -> None:
        self.renewed += 1
        if self.make_commits is not None:
            self.commits = self.make_commits()

    def close(self) -> None:
        self.closed = True


def note_of(task: TaskId) -> TopicPartition:
    return TopicPartition("notes", task.partition)


@dataclass
class WorkerBench:
    """A worker with everything around it faked."""

    settings: dict[str, object] = field(default_factory=dict)
    start_failure: Exception | None = None
    leaves_on_failure: bool = True
    notes: bool = False
    """Whether tasks with state note that they are worked on."""
    key_watch: KeyWatch | None = None

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.membership = FakeMembership()
        self.reader = FakeReader()
        self.updater = FakeUpdater()
        self.deliveries = FakeDeliveries()
        self.layout = TopicLayout({"orders": 2}, dict(INPUTS))
        self.made: list[FakeTask] = []
        self.changes: list[int] = []
        """1 for each task that was made, -1 for each that was let go of."""
        self.interrupted: list[bool] = []
        """Of each task that was made: whether its last worker has died."""
        self.states: list[bool] = []
        self.cache = RecordCache(1000)
        self.pause = Pause()
        self.between = BetweenBatches()
        self.gone: Exception | None = None
        self.before_start_failure: Exception | None = None
        self.bounds: dict[TopicPartition, tuple[int, int]] = defaultdict(lambda: (0, 100))
        """The first and the last offset of each partition, as brokers say."""
        self.room = DiskRoom(free=100, wanted=10)
        self.watch = TopicWatch("topics", self._look)
        self.steps = steps = CommitSteps(
            deliveries=self.deliveries,
            membership=self.membership,
            end_offsets=lambda partitions: dict.fromkeys(partitions, 0),
            on_committed=lambda offsets: None,
            clock=self.clock,
            outage=Outage("commits of worker", self.clock, 300),
        )
        self.output = FakeWorkerOutput(AtLeastOnce(steps))
        start = StartOffsets(plan(part(0, source("A", "orders"))), "earliest", lambda p, t: {}, self.clock)
        self.tasks = TaskManager(
            inputs=self.layout.inputs,
            membership=self.membership,
            reader=self.reader,
            updater=self.updater,
            start_offsets=start,
            make_task=self._make_task,
            before_start=self._before_start,
            aside=TasksAside(self.clock, lambda _: self.room),
            unsettled=UnsettledOffsets("shop", self.clock, 300),
            note_of=note_of if self.notes else lambda _: None,
            on_change=self.changes.append,
        )
        self.worker = Worker(
            "worker",
            WorkerParts(
                membership=self.membership,
                reader=self.reader,
                updater=self.updater,
                output=self.output,
                tasks=self.tasks,
                purge=None,
                lost_positions=LostPositions(FakeBounds(self.bounds), start, self.clock),
                topic_check=TopicCheck(lambda: self.layout, self.clock, 300_000, lambda act: act()),
                cache=self.cache,
                woken=threading.Event(),
                swaps=None,
                pause=self.pause,
                between=self.between,
                topic_watch=self.watch,
                metrics=StreamsMetrics(),
                process_id="",
                key_watch=self.key_watch,
            ),
            layout=self.layout,
            config=StreamsConfig({"commit.interval.ms": 1000, "buffered.records.per.partition": 2, **self.settings}),
            clock=self.clock,
            on_running=self.states.append,
            leaves_on_failure=self.leaves_on_failure,
        )
        self.membership.start(self.layout, self.worker.revoked)

    def _make_task(
        self, task_id: TaskId, inputs: Collection[TopicPartition], committed: Offsets, interrupted: bool
    ) -> FakeTask:
        self.interrupted.append(interrupted)
        self.made.append(FakeTask(task_id, inputs, {}, start_failure=self.start_failure))
        return self.made[-1]

    def _before_start(self) -> None:
        if self.before_start_failure is not None:
            raise self.before_start_failure

    def _look(self) -> None:
        if self.gone is not None:
            raise self.gone

    def assign(self, *tasks: TaskId) -> None:
        self.membership.changes.append(self.assignment(*tasks))
        self.worker.step()
        self.worker.step()

    def assignment(self, *tasks: TaskId) -> Assignment:
        return Assignment(frozenset(tasks), self.layout)

    def feed(self, place: TopicPartition, *offsets: int) -> None:
        self.reader.next = fetched(place, *offsets)
        self.worker.step()


def run(bench: WorkerBench, then: Callable[[], None]) -> None:
    """Runs the worker; at its second fetch something happens."""

    def at_the_second() -> None:
        if len(bench.reader.timeouts) == 2:
            then()

    bench.reader.when_fetching = at_the_second
    bench.membership.changes.append(bench.assignment(ONE))
    bench.worker.run()
