"""Standby tasks beside workers that are killed: whoever takes over has what a worker would restore, and counts on.

In each run one machine works and another keeps copies. At drawn moments the first is killed, the second takes over with
what its copies have by then, and the copies are kept on a third or on the first, over what it has left there.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from random import Random

import pytest

from pykstreams import StreamsConfig
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.clients.positions import OffsetReader, Offsets
from pykstreams.runtime.restore.restore import Restorer, StateRestoreListener
from pykstreams.runtime.standby.changelog_rounds import ChangelogRounds
from pykstreams.runtime.standby.standby_plan import StandbyPlan
from pykstreams.runtime.standby.standby_tasks import StandbyTasks
from pykstreams.runtime.swap.bootstrap import TaskBase
from pykstreams.runtime.swap.only_stores import Nowhere
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.testing.clock import MockClock
from pykstreams.testing.records import ProducedRecord
from tests.simulation.swaps import Brokers, SimulatedWorker, Transaction, WholeReader
from tests.simulation.test_bootstrap_swap import KEYS, LAYOUT, PARTITIONS, TASKS, row_key, rows_of, topology

pytestmark = pytest.mark.slow

_MOST_STEPS = 20_000
_STORES = ("counts", "windows")


class StandbyRun:
    """One run, in which the worker has all tasks, and the other machine copies of all of them."""

    def __init__(self, folder: Path, seed: int, guarantee: str) -> None:
        self.folder, self.seed, self.random = folder, seed, Random(seed)
        self.config = StreamsConfig(
            {
                "application.id": "shop",
                "bootstrap.servers": "memory",
                "commit.interval.ms": 100,
                "statestore.cache.max.bytes": 0,
                "processing.guarantee": guarantee,
            }
        )
        self.plan = topology(self.config, [])
        self.brokers = Brokers(
            dict.fromkeys(("orders", "out", "shop-counts-changelog", "shop-windows-changelog"), PARTITIONS)
        )
        self.base = TaskBase(self.plan, self.config, self.brokers, None)
        self.clock = MockClock(0)
        self.sent, self.machines = 0, 2
        self.hanging: list[Transaction] = []
        self.machine, self.copy_machine = folder / "1", folder / "2"
        self.worker = self._start()
        self.standbys = self._keep_copies()

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {place: self.brokers.offsets[place] for place in partitions if place in self.brokers.offsets}

    def send(self) -> None:
        self.sent += 1
        key = self.random.choice(KEYS).encode()
        self.brokers.append(ProducedRecord("orders", None, key, b"order", 40 * self.sent, ()))

    def step(self) -> None:
        random = self.random
        if random.random() < 0.7:
            self.worker.go_on()
        else:
            self.clock.advance(random.choice((0, 100, 1000)))
            self.standbys.turn()
        if self.hanging and random.random() < 0.05:
            self.brokers.end(self.hanging.pop(), commit=False)

    def fail_over(self) -> bool:
        """Kills the worker, and lets the machine with the copies take over; false when it is not a good moment."""
        if not self.config.exactly_once and not self.worker.is_clean:
            return False  # a model of what is sent twice is not needed here
        self.worker.die()
        self.hanging += [one.transaction for one in self.worker.producers if one.transaction in self.brokers.open]
        self.standbys.close()
        before, self.machine = self.machine, self.copy_machine
        self.worker = self._start()
        self.machines += 1
        self.copy_machine = before if self.random.random() < 0.5 else self.folder / str(self.machines)
        self.standbys = self._keep_copies()
        return True

    def run(self, done: Callable[[], bool]) -> None:
        for _ in range(_MOST_STEPS):
            if done():
                return
            self.step()
        raise AssertionError(f"seed {self.seed}: not done after {_MOST_STEPS} steps")

    def is_right(self, tasks: Collection[Task]) -> bool:
        """Whether all tasks are there, with all that was sent."""
        return {task.id for task in tasks} == TASKS and all(
            rows_of(task, store) == self.expected(task.id.partition, store) for task in tasks for store in _STORES
        )

    def expected(self, partition: int, store: str) -> dict[bytes, int]:
        orders = self.brokers.records("orders", partition)
        return dict(Counter(row_key(store, (one.key() or b"").decode(), one.timestamp()[1]) for one in orders))

    def end(self) -> None:
        self.standbys.close()
        self.worker.die()

    def _start(self) -> SimulatedWorker:
        worker = SimulatedWorker(self.plan, self.config, LAYOUT, self.brokers, self.machine, self.random)
        worker.assign(TASKS)
        return worker

    def _keep_copies(self) -> StandbyTasks:
        directory = StateDirectory(self.copy_machine, "shop", clock=self.clock)

        def make_task(task_id: TaskId, inputs: frozenset[TopicPartition], committed: Offsets) -> Task:
            collector = RecordCollector(Nowhere(), config=self.config, partition_count=self.brokers.counts.__getitem__)
            return Task(
                task_id,
                self.plan.subtopologies[0],
                sorted(inputs),
                TaskParts(
                    config=self.config,
                    clock=self.clock,
                    collector=collector,
                    cache=RecordCache(0),
                    metrics=StreamsMetrics(),
                ),
                self.base.of_task(task_id, committed, directory),
            )

        def restorer(offsets: OffsetReader) -> tuple[Restorer, Callable[[], None]]:
            reader = WholeReader(self.brokers, self.random)
            return Restorer(reader, offsets, StateRestoreListener(), log_level=logging.DEBUG), reader.close

        plan = StandbyPlan(self)
        standbys = StandbyTasks(
            "standbys",
            plan=plan,
            rounds=ChangelogRounds(restorer, self.brokers, plan.limits, self.clock),
            make_task=make_task,
            directory=directory,
            clock=self.clock,
        )
        standbys.assigned("standbys", LAYOUT.inputs)
        return standbys


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
@pytest.mark.parametrize("seed", range(6))
def test_copies_take_over_at_any_moment_and_counts_stay_exact(
    seed: int, guarantee: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    simulated = StandbyRun(tmp_path, seed, guarantee)
    try:
        fail_overs = 3
        while fail_overs:
            for _ in range(simulated.random.randint(1, 40)):
                simulated.send()
                simulated.step()
            fail_overs -= simulated.fail_over()
        simulated.run(lambda: simulated.is_right(list(simulated.worker.tasks.tasks())))
        simulated.run(lambda: simulated.is_right(simulated.standbys.tasks()))
    finally:
        simulated.end()

    assert not [line for line in caplog.records if "standby" in line.getMessage() and line.exc_info]


def test_what_a_copy_has_is_not_restored_again(tmp_path: Path) -> None:
    simulated = StandbyRun(tmp_path, 7, "exactly_once_v2")
    try:
        for _ in range(200):
            simulated.send()
        simulated.run(lambda: simulated.is_right(list(simulated.worker.tasks.tasks())))
        simulated.run(lambda: simulated.is_right(simulated.standbys.tasks()))
        simulated.fail_over()
        simulated.run(lambda: simulated.is_right(list(simulated.worker.tasks.tasks())))
        begun = simulated.worker.begun_restores.offsets
    finally:
        simulated.end()

    assert len(begun) == PARTITIONS * len(_STORES)
    assert all(0 < begin == end for begin, end in begun)
