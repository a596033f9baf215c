"""Tasks that move between machines which keep copies of each other's: stores change hands open, and counts stay exact.

In each run machines share the tasks, and every one keeps copies of those that others have, so that a task which leaves
becomes a copy, and a copy a task. At drawn moments the tasks are shared out anew, and now and then a machine is killed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pykstreams import Consumed, Grouped, Materialized, Stores, StreamsBuilder, StreamsConfig
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.clients.positions import OffsetReader, Offsets
from pykstreams.runtime.restore.restore import Restorer
from pykstreams.runtime.standby.changelog_rounds import ChangelogRounds
from pykstreams.runtime.standby.standby_plan import StandbyPlan
from pykstreams.runtime.standby.standby_tasks import StandbyTasks
from pykstreams.runtime.swap.bootstrap import TaskBase
from pykstreams.runtime.swap.only_stores import Nowhere
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.gate import Gates
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.testing.clock import MockClock
from pykstreams.testing.records import ProducedRecord
from tests.simulation.swaps import BegunRestores, Brokers, SimulatedWorker, Transaction, WholeReader
from tests.simulation.test_bootstrap_swap import KEYS, LAYOUT, PARTITIONS, TASKS, TEXT

pytestmark = pytest.mark.slow

_MOST_STEPS = 20_000
_STORES = ("counts", "memory")


class Machine:
    """A worker, and the standby tasks of its machine; tests take the turns of both."""

    def __init__(self, run: MovingRun, folder: Path) -> None:
        self.run, self.folder = run, folder
        self.gates, self.begun = Gates(), BegunRestores()
        self.directory = StateDirectory(folder, "shop", clock=run.clock)
        plan = StandbyPlan(run)
        self.standbys = StandbyTasks(
            "standbys",
            plan=plan,
            rounds=ChangelogRounds(self._restorer, run.brokers, plan.limits, run.clock),
            make_task=self._make_task,
            directory=self.directory,
            clock=run.clock,
        )
        self.worker = SimulatedWorker(
            run.plan, run.config, LAYOUT, run.brokers, folder, run.random, self.standbys, self.gates
        )

    def die(self) -> None:
        self.worker.die()
        self.standbys.close()

    def _make_task(self, task_id: TaskId, inputs: frozenset[TopicPartition], committed: Offsets) -> Task:
        run = self.run
        base = TaskBase(run.plan, run.config, run.brokers, None)
        return Task(
            task_id,
            run.plan.subtopologies[0],
            sorted(inputs),
            TaskParts(
                config=run.config,
                clock=run.clock,
                collector=RecordCollector(Nowhere(), config=run.config, partition_count=run.brokers.counts.__getitem__),
                cache=RecordCache(0),
                metrics=StreamsMetrics(),
            ),
            base.of_task(task_id, committed, self.directory),
            gate=self.gates.of(task_id),
        )

    def _restorer(self, offsets: OffsetReader) -> tuple[Restorer, Callable[[], None]]:
        reader = WholeReader(self.run.brokers, self.run.random)
        return Restorer(reader, offsets, self.begun, log_level=logging.DEBUG), reader.close


class MovingRun:
    """One run."""

    def __init__(self, folder: Path, seed: int, guarantee: str, cache_bytes: int) -> None:
        self.folder, self.seed, self.random = folder, seed, Random(seed)
        self.config = StreamsConfig(
            {
                "application.id": "shop",
                "bootstrap.servers": "memory",
                "commit.interval.ms": 100,
                "statestore.cache.max.bytes": cache_bytes,
                "processing.guarantee": guarantee,
            }
        )
        builder = StreamsBuilder()
        grouped = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=TEXT)).group_by_key(
            Grouped(key_serde=TEXT, value_serde=TEXT)
        )
        grouped.count(materialized=Materialized("counts"))
        grouped.count(materialized=Materialized(Stores.in_memory_key_value_store("memory")))
        self.plan = builder.build().plan(self.config)
        self.brokers = Brokers(dict.fromkeys(("orders", "shop-counts-changelog", "shop-memory-changelog"), PARTITIONS))
        self.clock = MockClock(0)
        self.sent = 0
        self.hanging: list[Transaction] = []
        self.machines = [Machine(self, folder / str(number)) for number in range(2)]
        self.share_out()

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {place: self.brokers.offsets[place] for place in partitions if place in self.brokers.offsets}

    def send(self) -> None:
        self.sent += 1
        key = self.random.choice(KEYS).encode()
        self.brokers.append(ProducedRecord("orders", None, key, b"order", self.sent, ()))

    def share_out(self) -> None:
        """Gives each task to one machine, and copies of it to the others; who loses tasks is told first."""
        chosen = {task: self.random.choice(self.machines) for task in sorted(TASKS)}
        active = {
            machine: frozenset(task for task, one in chosen.items() if one is machine) for machine in self.machines
        }
        kept = {
            one: frozenset(task for task in tasks if self.brokers.owners.get(task) is one.worker)
            for one, tasks in active.items()
        }
        for machine in self.machines:
            mine = active[machine]
            machine.standbys.assigned("member", {task: LAYOUT.inputs[task] for task in TASKS - mine}, mine)
            machine.worker.assign(kept[machine])
        for machine in self.machines:
            machine.worker.assign(active[machine])

    def kill(self) -> None:
        """Kills a machine; another comes in its place, over what it has left or with nothing."""
        number = self.random.randrange(len(self.machines))
        gone = self.machines[number]
        gone.die()
        self.hanging += [one.transaction for one in gone.worker.producers if one.transaction in self.brokers.open]
        folder = gone.folder if self.random.random() < 0.5 else self.folder / f"{self.sent}-{number}"
        self.machines[number] = Machine(self, folder)
        self.share_out()

    def step(self) -> None:
        machine = self.random.choice(self.machines)
        if self.random.random() < 0.7:
            machine.worker.go_on()
        else:
            self.clock.advance(self.random.choice((0, 100, 1000)))
            machine.standbys.turn()
        if self.hanging and self.random.random() < 0.05:
            self.brokers.end(self.hanging.pop(), commit=False)

    def run(self, done: Callable[[], bool]) -> None:
        for _ in range(_MOST_STEPS):
            if done():
                return
            self.step()
        raise AssertionError(f"seed {self.seed}: not done after {_MOST_STEPS} steps")

    def is_right(self) -> bool:
        """Whether every task is active once and a copy once, with all that was sent."""
        active = [task for machine in self.machines for task, runs in machine.worker.tasks.tasks().items() if runs]
        copies = [task for machine in self.machines for task in machine.standbys.tasks()]
        return all(
            len(tasks) == len(TASKS) and all(self._has_everything(task) for task in tasks) for tasks in (active, copies)
        )

    def _has_everything(self, task: Task) -> bool:
        counted = dict(
            Counter((one.key() or b"").decode() for one in self.brokers.records("orders", task.id.partition))
        )
        return all(_rows_of(task, store) == counted for store in _STORES)

    def end(self) -> None:
        for machine in self.machines:
            machine.die()


def _rows_of(task: Task, name: str) -> dict[str, int]:
    def read() -> dict[str, int]:
        store: Any = task.readable_store(name)
        return {} if store is None else {key: value.value for key, value in store.all()}

    return task.gate.read(read)


@pytest.mark.parametrize("cache_bytes", [0, 10_000_000])
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
@pytest.mark.parametrize("seed", range(4))
def test_counts_stay_exact_however_tasks_move(
    seed: int, guarantee: str, cache_bytes: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Under at-least-once nobody is killed: a model of what is counted twice is not needed here."""
    simulated = MovingRun(tmp_path, seed, guarantee, cache_bytes)
    try:
        for number in range(12):
            for _ in range(simulated.random.randint(1, 60)):
                simulated.send()
                simulated.step()
            if guarantee == "exactly_once_v2" and number % 4 == 3:
                simulated.kill()
            else:
                simulated.share_out()
        simulated.run(simulated.is_right)
    finally:
        simulated.end()

    assert not [line for line in caplog.records if line.exc_info]


def test_no_store_is_read_from_its_beginning_after_the_first_time(tmp_path: Path) -> None:
    simulated = MovingRun(tmp_path, 7, "exactly_once_v2", 0)
    try:
        for _ in range(100):
            simulated.send()
        simulated.run(simulated.is_right)
        listeners = [one for machine in simulated.machines for one in (machine.begun, machine.worker.begun_restores)]
        for listener in listeners:
            listener.offsets.clear()
        for _ in range(5):
            simulated.share_out()
            simulated.run(simulated.is_right)
        begun = [offsets for listener in listeners for offsets in listener.offsets]
    finally:
        simulated.end()

    assert begun
    assert min(begin for begin, _ in begun) > 0
