"""Tasks that become standby tasks, and the other way round, with their open stores: nothing is read again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from pykstreams import Consumed, Grouped, Materialized, Serdes, Stores, StreamsBuilder, StreamsConfig
from pykstreams.core.errors import LockError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.clients.positions import OffsetReader, Offsets
from pykstreams.runtime.restore.restore import Restorer, StateRestoreListener
from pykstreams.runtime.standby.changelog_rounds import ROUND_S, ChangelogRounds
from pykstreams.runtime.standby.standby_plan import StandbyPlan
from pykstreams.runtime.standby.standby_tasks import LOOK_S, StandbyTasks
from pykstreams.runtime.swap.only_stores import Nowhere
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.gate import Gates
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.runtime.worker.state_updater import Restored, StateUpdater
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.directory.task_checkpoint import read_checkpoint
from pykstreams.state.interfaces.record_cache import RecordCache
from tests.unit.runtime.cluster_fakes import FakeChangelogs, FakeClock
from tests.unit.runtime.standby.fake_group_offsets import FakeGroupOffsets
from tests.unit.runtime.tasks.fakes import message

TASK = TaskId(0, 0)
ORDERS = TopicPartition("orders", 0)
ON_DISK, IN_MEMORY = TopicPartition("shop-disk-changelog", 0), TopicPartition("shop-memory-changelog", 0)
CHANGELOGS = ON_DISK, IN_MEMORY
TEXT = Serdes.string()


class Begun(StateRestoreListener):
    """From where stores were restored."""

    def __init__(self) -> None:
        self.offsets: dict[str, int] = {}

    def on_restore_start(
        self, topic_partition: TopicPartition, store_name: str, starting_offset: int, ending_offset: int
    ) -> None:
        self.offsets[store_name] = starting_offset


class OneProcess:
    """A process with a worker and standby tasks, whose threads a test takes turns of; its task has two stores."""

    def __init__(self, folder: Path) -> None:
        builder = StreamsBuilder()
        grouped = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=TEXT)).group_by_key(
            Grouped(key_serde=TEXT, value_serde=TEXT)
        )
        grouped.count(materialized=Materialized("disk"))
        grouped.count(materialized=Materialized(Stores.in_memory_key_value_store("memory")))
        self.config = StreamsConfig({"application.id": "shop", "bootstrap.servers": "nowhere"})
        self.plan = builder.build().plan(self.config).subtopologies[0]
        self.clock, self.group, self.begun, self.gates = FakeClock(), FakeGroupOffsets(), Begun(), Gates()
        self.logs, self.standby_logs = FakeChangelogs(), FakeChangelogs()
        self.make_ready: Callable[[], None] = lambda: None
        self.is_ready = True
        self.directory = StateDirectory(folder, "shop", clock=self.clock)
        self.other = StateDirectory(folder, "shop", clock=self.clock)
        self.restorer = Restorer(self.logs, self.logs, self.begun)
        plan = StandbyPlan(self.group)
        self.standby_directory = StateDirectory(folder, "shop", clock=self.clock)
        self.standbys = StandbyTasks(
            "standbys",
            plan=plan,
            rounds=ChangelogRounds(self._standby_restorer, self.standby_logs, plan.limits, self.clock),
            make_task=lambda task_id, inputs, committed: self.make(self.standby_directory, committed),
            directory=self.standby_directory,
            clock=self.clock,
        )
        self.updater = StateUpdater(
            "updater",
            restorer=lambda: (self.restorer, lambda: None),
            directory=self.directory,
            clock=self.clock,
            task_timeout_ms=0,
            cleanup_delay_ms=600_000,
            standbys=self.standbys,
        )
        self.updater._restorer = self.restorer

    def make(self, directory: StateDirectory, committed: Offsets) -> Task:
        return Task(
            TASK,
            self.plan,
            [ORDERS],
            TaskParts(
                config=self.config,
                clock=self.clock,
                collector=RecordCollector(Nowhere(), config=self.config, partition_count=lambda topic: 1),
                cache=RecordCache(0),
                metrics=StreamsMetrics(),
            ),
            InitialState(directory.task_dir(TASK), lambda: self.make_ready(), lambda: self.is_ready),
            gate=self.gates.of(TASK),
        )

    def _standby_restorer(self, offsets: OffsetReader) -> tuple[Restorer, Callable[[], None]]:
        return Restorer(self.standby_logs, offsets, self.begun, log_level=logging.DEBUG), lambda: None

    def assign_standby(self, *tasks: TaskId, active: Collection[TaskId] = ()) -> None:
        self.standbys.assigned("member", dict.fromkeys(tasks, frozenset({ORDERS})), active)

    def turn_standbys(self, seconds: float = 0) -> None:
        self.clock.advance(seconds)
        for _ in range(4):
            self.standbys.turn()

    def turn(self) -> None:
        self.clock.advance(1)
        self.updater.turn(self.restorer, 0)

    def with_copy(self) -> None:
        """Keeps a standby that has read three records of each changelog."""
        self.assign_standby(TASK)
        for place in CHANGELOGS:
            self.standby_logs.ends[place] = 3
            self.standby_logs.put(place, 0, 1, 2)
        self.turn_standbys()
        self.begun.offsets.clear()

    def give(self, end: int = 3) -> Task:
        """Gives the task to the worker, which opens it at its next turn; its changelogs end there."""
        self.logs.ends = dict.fromkeys(CHANGELOGS, end)
        task = self.make(self.directory, {})
        self.updater.open(task, {})
        return task

    def open(self, end: int = 3) -> Task:
        """Gives the task to the worker, which opens it."""
        task = self.give(end)
        self.turn()
        self.turn_standbys()
        self.turn()
        return task

    def working(self, records: int = 3) -> Task:
        """A task that has processed, and committed, some records of one key."""
        task = self.open(end=0)
        task.start({})
        self.process(task, records)
        task.prepare_commit()
        task.post_commit(dict.fromkeys(CHANGELOGS, records))
        return task

    @staticmethod
    def process(task: Task, records: int) -> None:
        task.add(ORDERS, [message("orders", offset, "v", 0, key=b"x") for offset in range(records)])
        task.process(100)

    def is_locked(self) -> bool:
        try:
            self.other.lock(TASK)
        except LockError:
            return True
        self.other.unlock(TASK)
        return False


@pytest.fixture
def process(tmp_path: Path) -> Iterator[OneProcess]:
    found = OneProcess(tmp_path)
    yield found
    found.standbys.close()
    found.directory.close()
    found.other.close()


def test_a_standby_becomes_the_task_and_only_what_it_lacks_is_read(process: OneProcess) -> None:
    process.with_copy()
    (copy,) = process.standbys.tasks()
    stores = {**copy.stores}
    task = process.open(end=5)

    assert process.begun.offsets == {"disk": 3, "memory": 3}
    assert task.stores == stores
    assert process.standbys.tasks() == []
    assert process.logs.assigned == {ON_DISK: 3, IN_MEMORY: 3}


def test_a_standby_whose_task_is_assigned_here_leaves_its_stores_open_before_the_worker_asks_for_them(
    process: OneProcess,
) -> None:
    process.with_copy()
    process.assign_standby(active=[TASK])
    process.turn_standbys(LOOK_S)
    between = process.standbys.tasks(), process.is_locked()
    process.open(end=5)

    assert between == ([], True)
    assert process.begun.offsets == {"disk": 3, "memory": 3}


def test_stores_of_a_task_that_is_assigned_elsewhere_before_the_worker_asks_for_them_are_closed(
    process: OneProcess,
) -> None:
    process.with_copy()
    process.assign_standby(active=[TASK])
    process.turn_standbys()
    process.assign_standby()
    process.turn_standbys()

    assert not process.is_locked()


def test_a_copy_that_lacks_nothing_hands_over_without_reading(process: OneProcess) -> None:
    process.with_copy()
    task = process.open()

    assert process.updater.reports() == [Restored(TASK, frozenset(CHANGELOGS))]
    assert task.stores["memory"].approximate_num_entries() == 1
    assert process.logs.assigned == {}
    assert process.updater.offset_sums() == {TASK: 6}


def test_a_task_that_took_over_works_on(process: OneProcess) -> None:
    process.with_copy()
    task = process.open()
    task.start({})
    process.process(task, 2)

    assert [task.stores[name].get("x") is not None for name in ("disk", "memory")] == [True, True]


def test_a_task_becomes_a_standby_and_goes_on_behind_its_last_commit(process: OneProcess) -> None:
    task = process.working()
    before = {name: task.stores[name].get("x") for name in ("disk", "memory")}
    process.assign_standby(TASK)
    process.begun.offsets.clear()
    process.updater.close(task)
    process.standby_logs.ends = dict.fromkeys(CHANGELOGS, 5)
    process.turn()
    process.turn_standbys()
    (copy,) = process.standbys.tasks()

    assert process.begun.offsets == {"disk": 3, "memory": 3}
    assert {name: copy.stores[name].get("x") for name in ("disk", "memory")} == before
    assert process.standbys.offset_sums() == {TASK: 6}
    assert process.standby_logs.assigned == {ON_DISK: 3, IN_MEMORY: 3}


def test_a_task_may_come_and_go_many_times(process: OneProcess) -> None:
    process.with_copy()
    for number in range(3, 9):
        task = process.open(end=number)
        task.start({})
        process.process(task, 1)
        task.prepare_commit()
        task.post_commit(dict.fromkeys(CHANGELOGS, number + 1))
        process.updater.close(task)
        process.turn()
        process.standby_logs.ends = process.logs.ends = dict.fromkeys(CHANGELOGS, number + 1)
        process.turn_standbys(ROUND_S)

    assert process.standbys.offset_sums() == {TASK: 18}
    assert process.begun.offsets == {"disk": 9, "memory": 9}


def test_what_was_handed_over_and_is_not_on_disk_is_in_no_checkpoint(process: OneProcess) -> None:
    """The databases were not opened since, so what was committed may be lost by a kill."""
    process.with_copy()
    task = process.open()
    while_open = read_checkpoint(process.directory.task_dir(TASK))
    process.updater.close(task)
    process.assign_standby()
    process.turn()
    process.turn_standbys()

    assert while_open == {}
    assert read_checkpoint(process.directory.task_dir(TASK)) == {"disk": 3}


def test_the_folder_is_locked_all_the_time(process: OneProcess) -> None:
    process.with_copy()
    task = process.give()
    process.turn()
    locked = [process.is_locked()]
    process.turn_standbys()
    locked.append(process.is_locked())
    process.turn()
    locked.append(process.is_locked())
    process.updater.close(task)
    process.turn()
    locked.append(process.is_locked())
    process.turn_standbys()
    locked.append(process.is_locked())
    process.assign_standby()
    process.turn_standbys()

    assert locked == [True] * 5
    assert not process.is_locked()


def test_state_is_reported_while_nobody_has_taken_it_up_yet(process: OneProcess) -> None:
    process.with_copy()
    process.give()
    process.turn()
    process.turn_standbys()

    assert process.standbys.tasks() == []
    assert process.standbys.offset_sums() == {TASK: 6}
    assert process.standbys.member_of(TASK) == "member"


def test_work_that_was_not_committed_is_not_handed_over(process: OneProcess) -> None:
    task = process.working()
    process.process(task, 1)
    process.assign_standby(TASK)
    process.begun.offsets.clear()
    process.updater.close(task)
    process.turn()
    process.standby_logs.ends = dict.fromkeys(CHANGELOGS, 3)
    process.turn_standbys()

    assert process.begun.offsets == {"disk": 3, "memory": 0}


def test_a_task_whose_processors_cannot_be_closed_is_opened_anew_as_a_standby(
    process: OneProcess, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    task = process.working()

    def fails() -> None:
        raise ValueError("broken")

    task._state.callbacks.on_close("KSTREAM-SOURCE-0000000000", fails)
    process.assign_standby(TASK)
    process.begun.offsets.clear()
    process.updater.close(task)
    process.turn()
    reported = process.updater.offset_sums()
    process.standby_logs.ends = dict.fromkeys(CHANGELOGS, 3)
    process.turn_standbys()

    assert "closing went wrong; its state is read again" in caplog.text
    assert reported == {}
    assert process.begun.offsets == {"disk": 3, "memory": 0}


def test_a_task_that_is_no_standby_here_is_closed(process: OneProcess) -> None:
    task = process.working()
    process.updater.close(task)
    process.turn()

    assert not process.is_locked()
    assert task.stores == {}


def test_a_task_that_does_not_come_after_all_leaves_the_stores_to_the_standby(process: OneProcess) -> None:
    process.with_copy()
    task = process.give()
    process.turn()
    process.updater.close(task)
    process.turn_standbys()
    process.turn()
    process.turn_standbys()

    assert [one.stores["memory"].approximate_num_entries() for one in process.standbys.tasks()] == [1]
    assert process.begun.offsets == {"disk": 3, "memory": 3}


def test_stores_that_nobody_wants_any_more_are_closed(process: OneProcess) -> None:
    process.with_copy()
    task = process.give()
    process.turn()
    process.turn_standbys()
    process.assign_standby()
    process.updater.close(task)
    process.turn()
    process.turn_standbys(LOOK_S)

    assert not process.is_locked()
    assert process.standbys.offset_sums() == {}


def test_a_task_that_begins_with_other_state_opens_its_stores_anew(process: OneProcess) -> None:
    process.with_copy()
    process.is_ready = False
    task = process.open(end=5)

    assert process.begun.offsets == {"disk": 3, "memory": 0}
    assert list(task.stores) == ["disk", "memory"]


def test_a_store_that_cannot_be_released_is_closed_and_opened_as_before(
    process: OneProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.with_copy()
    (copy,) = process.standbys.tasks()
    monkeypatch.setattr(copy.stores["memory"], "can_be_released", False)
    process.open(end=5)

    assert process.begun.offsets == {"disk": 3, "memory": 0}


def test_a_task_whose_stores_cannot_be_taken_up_closes_them(process: OneProcess) -> None:
    process.with_copy()
    (copy,) = process.standbys.tasks()
    stores: list[Any] = list(copy.stores.values())
    task = process.make(process.directory, {})
    process.logs.ends = dict.fromkeys(CHANGELOGS, 3)

    def fails() -> None:
        raise ValueError("broken")

    process.make_ready = fails
    process.updater.open(task, {})
    process.turn()
    process.turn_standbys()
    with pytest.raises(ValueError, match="broken"):
        process.turn()
    task.close()

    assert [one._has_rows_open for one in stores] == [False, False]


def test_all_that_have_a_task_in_turn_have_the_same_gate() -> None:
    gates = Gates()

    assert gates.of(TASK) is gates.of(TASK)
    assert gates.of(TASK) is not gates.of(TaskId(0, 1))
