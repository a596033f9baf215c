"""Standby tasks: which copies an instance opens, how they follow, and how they make room for the task itself."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import BootstrapError, ClusterError, DamagedStoreError, StoreEngineError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import OffsetReader, Offsets
from pykstreams.runtime.pause import Pause
from pykstreams.runtime.restore.open_tasks import CHECKPOINT_S
from pykstreams.runtime.restore.restore import Restorer, StateRestoreListener
from pykstreams.runtime.standby.changelog_rounds import ROUND_S, ChangelogRounds
from pykstreams.runtime.standby.standby_plan import StandbyPlan
from pykstreams.runtime.standby.standby_tasks import LOOK_S, StandbyTasks
from pykstreams.runtime.standby.update_listener import StandbyUpdateListener, SuspendReason, UpdateNotices
from pykstreams.runtime.swap.bootstrap import GENERATION
from pykstreams.runtime.tasks.offset_metadata import encode
from pykstreams.runtime.worker.state_updater import Restored, StateUpdater
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.directory.task_checkpoint import read_checkpoint
from tests.unit.runtime.cluster_fakes import FakeChangelogs, FakeClock, FakeRestoredStore, FakeTask
from tests.unit.runtime.standby.fake_group_offsets import FakeGroupOffsets

TASK, OTHER = TaskId(0, 0), TaskId(0, 1)
TASKS = {task: frozenset({TopicPartition("orders", task.partition)}) for task in (TASK, OTHER)}
LOG = TopicPartition("shop-counts-changelog", 0)
OTHER_LOG = TopicPartition("shop-counts-changelog", 1)
RETRY_S = 30.0


class HeardListener(StandbyUpdateListener):
    """Takes note of all it hears; ``fails_at`` is the name of the notice at which it fails from then on."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []
        self.fails_at = ""

    def on_update_start(self, topic_partition: TopicPartition, store_name: str, starting_offset: int) -> None:
        self._note("start", topic_partition, store_name, starting_offset)

    def on_batch_loaded(
        self,
        topic_partition: TopicPartition,
        store_name: str,
        task_id: TaskId,
        batch_end_offset: int,
        batch_size: int,
        current_end_offset: int,
    ) -> None:
        self._note("batch", topic_partition, store_name, task_id, batch_end_offset, batch_size, current_end_offset)

    def on_update_suspended(
        self,
        topic_partition: TopicPartition,
        store_name: str,
        store_offset: int,
        current_end_offset: int,
        reason: SuspendReason,
    ) -> None:
        self._note("end", topic_partition, store_name, store_offset, current_end_offset, reason)

    def _note(self, what: str, *facts: object) -> None:
        self.heard.append((what, *facts))
        if what == self.fails_at:
            raise ValueError("no room")


class StandbyBench:
    """An instance whose only member is assigned one copy, which a test lets go on by ``after``."""

    def __init__(self, folder: Path) -> None:
        self.group, self.clock, self.logs = FakeGroupOffsets(), FakeClock(), FakeChangelogs()
        self.closed = 0
        self.stores: dict[TaskId, dict[TopicPartition, Any]] = {
            TASK: {LOG: FakeRestoredStore()},
            OTHER: {OTHER_LOG: FakeRestoredStore()},
        }
        self.made: list[FakeTask] = []
        self.failure: Exception | None = None
        self.directory = StateDirectory(folder, "shop", clock=self.clock)
        self.worker = StateDirectory(folder, "shop", clock=self.clock)
        self.restorers = 0
        self.pause = Pause()
        self.listener = HeardListener()
        self.notices = UpdateNotices(self.listener)
        self.failures: list[tuple[str | None, Exception]] = []
        plan = StandbyPlan(self.group)
        self.standbys = StandbyTasks(
            "standbys",
            plan=plan,
            rounds=ChangelogRounds(self._restorer, self.logs, plan.limits, self.clock),
            make_task=self._make,
            directory=self.directory,
            clock=self.clock,
            on_close=self._note_close,
            pause=self.pause,
            notices=self.notices,
            on_listener_failure=lambda member, error: self.failures.append((member, error)),
        )
        self.assign(TASK)

    def assign(self, *tasks: TaskId, member: str = "me") -> None:
        self.standbys.assigned(member, {task: TASKS[task] for task in tasks})

    def _note_close(self) -> None:
        self.closed += 1

    def after(self, seconds: float, *, turns: int = 4) -> None:
        self.clock.advance(seconds)
        for _ in range(turns):
            self.standbys.turn()

    def copies(self) -> list[TaskId]:
        return [task.id for task in self.standbys.tasks()]

    def _make(self, task_id: TaskId, inputs: frozenset[TopicPartition], committed: Offsets) -> FakeTask:
        task = FakeTask(task_id, inputs, self.stores[task_id])
        task.open_failure, self.failure = self.failure, None
        self.made.append(task)
        return task

    def _restorer(self, offsets: OffsetReader) -> tuple[Restorer, Callable[[], None]]:
        self.restorers += 1
        return Restorer(self.logs, offsets, self.notices, log_level=logging.DEBUG), lambda: None


def wait_for(condition: Callable[[], bool]) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + 60
    while not condition():
        assert clock.monotonic() < deadline


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[StandbyBench]:
    found = StandbyBench(tmp_path)
    yield found
    found.standbys.close()
    found.worker.close()


def test_copy_that_is_assigned_is_opened_and_follows_its_changelog_round_by_round(
    bench: StandbyBench,
) -> None:
    store = bench.stores[TASK][LOG]
    bench.logs.ends[LOG] = 2
    bench.logs.put(LOG, 0, 1)
    bench.after(0)
    first = list(store.commits)
    bench.logs.ends[LOG] = 5
    bench.logs.put(LOG, 2, 4)
    bench.after(ROUND_S)

    assert bench.copies() == [TASK]
    assert (first, store.commits) == ([2], [2, 5])
    assert [row[2] for row in store.rows] == [1000, 1001, 1002, 1004]


def test_nothing_is_kept_and_nobody_is_asked_before_a_copy_is_assigned(bench: StandbyBench) -> None:
    bench.assign()
    bench.after(0)

    assert (bench.copies(), bench.group.asked) == ([], 0)


def test_copies_of_all_members_are_kept_and_begin_at_once(bench: StandbyBench) -> None:
    bench.after(0)
    bench.assign(OTHER, member="another")
    bench.after(0)

    assert bench.copies() == [TASK, OTHER]
    assert bench.made[0].history == ["open"]


def test_copy_that_is_not_assigned_any_more_is_closed_at_once_and_its_folder_stays(
    bench: StandbyBench, tmp_path: Path
) -> None:
    bench.after(0)
    (bench.directory.task_dir(TASK) / "rocksdb").mkdir()
    bench.assign(OTHER)
    bench.after(0)

    assert bench.copies() == [OTHER]
    assert bench.made[0].history == ["open", "close"]
    assert (tmp_path / "shop" / "0_0" / "rocksdb").exists()
    bench.worker.lock(TASK)


def test_copy_stays_open_when_it_goes_from_one_member_to_another(bench: StandbyBench) -> None:
    bench.after(0)
    bench.assign(TASK, member="another")
    bench.assign()
    bench.after(0)

    assert bench.copies() == [TASK]
    assert bench.made[0].history == ["open"]


def test_copy_is_opened_anew_when_its_task_reads_more(bench: StandbyBench) -> None:
    bench.after(0)
    more = TASKS[TASK] | {TopicPartition("returns", 0)}
    bench.standbys.assigned("me", {TASK: more})
    bench.after(0)

    assert bench.made[0].history == ["open", "close"]
    assert bench.made[1].inputs == list(more)


def test_worker_that_is_given_the_task_finds_the_copy_closed_with_its_offset(bench: StandbyBench) -> None:
    store = bench.stores[TASK][LOG]
    bench.logs.ends[LOG] = 10
    bench.logs.put(LOG, 0, 1, 2)
    bench.after(0)
    updater = StateUpdater(
        "updater",
        restorer=lambda: (Restorer(bench.logs, bench.logs, StateRestoreListener()), lambda: None),
        directory=bench.worker,
        clock=bench.clock,
        task_timeout_ms=0,
        cleanup_delay_ms=600_000,
        standbys=bench.standbys,
    )
    restorer = updater._restorer = Restorer(FakeChangelogs(), FakeChangelogs(), StateRestoreListener())
    active = FakeTask(TASK, TASKS[TASK], {})
    updater.open(active, {})
    bench.clock.advance(1)
    updater.turn(restorer, 0)
    while_it_is_there = updater.reports(), active.history[:]
    bench.after(LOOK_S)  # the copy may still be assigned
    updater.turn(restorer, 0)

    assert while_it_is_there == ([], [])
    assert (store.commits, bench.made[0].history, bench.copies()) == ([3], ["open", "close"], [])
    assert (updater.reports(), active.history) == ([Restored(TASK, frozenset())], ["open"])

    updater.close(active)
    updater.turn(restorer, 0)
    bench.after(0)

    assert bench.copies() == [TASK]


def test_folder_that_somebody_else_has_is_waited_for(bench: StandbyBench) -> None:
    bench.worker.lock(TASK)
    bench.after(0)
    while_locked = bench.copies()
    bench.worker.unlock(TASK)
    bench.after(LOOK_S)

    assert (while_locked, bench.copies()) == ([], [TASK])


def test_source_topic_that_serves_as_changelog_is_followed_up_to_what_is_committed(bench: StandbyBench) -> None:
    (orders,) = TASKS[TASK]
    store = FakeRestoredStore()
    bench.stores[TASK] = {orders: store}
    bench.logs.ends[orders] = 100
    bench.group.offsets[orders] = (2, "")
    bench.logs.put(orders, 0, 1, 2, 3)
    bench.after(0)
    before = list(store.commits)
    bench.group.offsets[orders] = (4, "")
    bench.after(LOOK_S, turns=1)
    bench.logs.put(orders, 2, 3, 4)
    bench.after(ROUND_S)

    assert (before, store.commits) == ([2], [2, 4])
    assert len(store.rows) == 4


def test_copy_is_opened_anew_when_its_state_is_to_begin_with_something_else(bench: StandbyBench) -> None:
    (orders,) = TASKS[TASK]
    bench.group.offsets[orders] = (2, "")
    bench.after(0)
    bench.group.offsets[orders] = (5, encode(0, {"other.number": 3}))
    bench.after(LOOK_S)
    unchanged = len(bench.made)
    bench.group.offsets[orders] = (7, encode(0, {GENERATION: 3}))
    bench.after(LOOK_S)

    assert (unchanged, len(bench.made)) == (1, 2)
    assert bench.made[0].history == ["open", "close"]


def test_copy_whose_offset_its_changelog_does_not_have_is_deleted_and_begun_anew(
    bench: StandbyBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.stores[TASK][LOG].offset = 3
    bench.logs.begins[LOG], bench.logs.ends[LOG] = 7, 9
    (bench.directory.task_dir(TASK) / "rocksdb").mkdir()
    bench.standbys.turn()
    bench.stores[TASK][LOG].offset = None
    bench.after(0)

    assert "store 'counts' of task 0_0 stands for offset 3 of shop-counts-changelog-0, which goes from 7" in caplog.text
    assert "the standby task is deleted, and its changelogs are read from the beginning" in caplog.text
    assert not (bench.directory.task_dir(TASK) / "rocksdb").exists()
    assert (len(bench.made), bench.copies()) == (2, [TASK])


def test_copy_whose_changelog_was_made_anew_is_kept_and_told_of_at_each_try(
    bench: StandbyBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.stores[TASK][LOG].offset = 3
    (bench.directory.task_dir(TASK) / "rocksdb").mkdir()
    bench.after(0)
    first = len(bench.made), bench.copies()
    bench.after(RETRY_S)

    assert first == (1, [])
    assert len(bench.made) == 2
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == 2 * [
        "standby task 0_0 is closed, and tried again every 30 s: store 'counts' of task 0_0 stands for offset 3 of "
        "shop-counts-changelog-0, which goes from 0 to 0: topic 'shop-counts-changelog' was deleted and made anew, or "
        "has lost records, so the state here is kept"
    ]
    assert (bench.directory.task_dir(TASK) / "rocksdb").exists()


def test_copy_that_is_damaged_does_not_close_the_others(bench: StandbyBench, caplog: pytest.LogCaptureFixture) -> None:
    def fails(rows: object) -> None:
        raise StoreEngineError("store 'counts' cannot be written")

    bench.assign(TASK, OTHER)
    bench.stores[TASK][LOG].restore = fails
    bench.logs.ends[LOG] = 2
    bench.logs.put(LOG, 0, 1)
    bench.after(0)

    assert bench.copies() == [OTHER]
    assert "standby task 0_0 is closed, and tried again every 30 s: store 'counts' cannot be written" in caplog.text


@pytest.mark.parametrize("met", ["opened", "written"])
def test_damaged_store_of_a_copy_is_set_aside_and_read_anew(
    bench: StandbyBench, caplog: pytest.LogCaptureFixture, met: str
) -> None:
    def fails(rows: object) -> None:
        raise error

    error = DamagedStoreError(f"store 'counts' cannot be {met}: Corruption", store="counts", task_id=TASK)
    folder = bench.directory.task_dir(TASK) / "rocksdb" / "counts"
    folder.mkdir(parents=True)
    if met == "opened":
        bench.failure = error
    else:
        bench.stores[TASK][LOG].restore = fails
    bench.logs.ends[LOG] = 2
    bench.logs.put(LOG, 0, 1)
    bench.after(0)
    first = bench.copies(), folder.exists()
    bench.stores[TASK][LOG] = FakeRestoredStore()
    bench.logs.put(LOG, 0, 1)
    bench.after(RETRY_S)

    assert first == ([], False)
    assert len([*bench.directory.task_dir(TASK).glob("counts.damaged-*")]) == 1
    assert f"task 0_0: store 'counts' is damaged; it was set aside in '{bench.directory.task_dir(TASK)}" in caplog.text
    assert bench.copies() == [TASK]


def test_copy_that_cannot_be_opened_is_told_and_tried_again(
    bench: StandbyBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.failure = BootstrapError("the files are not there")
    bench.after(0)
    bench.after(LOOK_S)
    first = len(bench.made), bench.copies()
    bench.after(RETRY_S)

    assert first == (1, [])
    assert "standby task 0_0 is closed, and tried again every 30 s: the files are not there" in caplog.text
    assert bench.copies() == [TASK]


def test_group_that_does_not_answer_is_told_and_asked_again(
    bench: StandbyBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.group.fail = ClusterError("no broker answers")
    bench.after(0)
    bench.after(LOOK_S)
    bench.group.fail = None
    bench.after(LOOK_S)

    told = "the committed offsets of standby tasks are not known, and are asked for again: no broker answers"
    assert caplog.text.count(told) == 1
    assert bench.copies() == [TASK]


def test_error_while_following_closes_the_copies_and_tries_again_with_a_new_consumer(
    bench: StandbyBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.after(0)
    bench.logs.fail = ValueError("broken")
    bench.logs.ends[LOG] = 2
    bench.after(ROUND_S)
    closed = bench.copies(), bench.made[0].history
    bench.logs.put(LOG, 0, 1)
    bench.after(RETRY_S)

    assert "all standby tasks are closed, and opened again in 30 s: broken" in caplog.text
    assert closed == ([], ["open", "close"])
    assert (bench.copies(), bench.restorers) == ([TASK], 2)


def test_an_error_that_is_no_exception_does_not_end_the_thread_of_the_copies(
    bench: StandbyBench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Foreign extensions raise such (``PanicException`` of pyo3), and a listener may call ``sys.exit``."""

    def panic(rows: object) -> None:
        raise SystemExit("panicked")

    bench.logs.ends[LOG] = 1
    bench.logs.put(LOG, 0)
    with monkeypatch.context() as broken:
        broken.setattr(bench.stores[TASK][LOG], "restore", panic)
        bench.after(0)
    closed = bench.copies()
    bench.logs.put(LOG, 0)
    bench.after(RETRY_S)

    assert "all standby tasks are closed, and opened again in 30 s: panicked" in caplog.text
    assert (closed, bench.copies()) == ([], [TASK])


def test_full_disk_under_one_copy_does_not_close_the_others(
    bench: StandbyBench, caplog: pytest.LogCaptureFixture
) -> None:
    """What others have in memory would be read anew each time that it is tried again."""
    bench.after(0)
    bench.failure = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    bench.assign(TASK, OTHER)
    bench.after(0)
    first = bench.copies()
    bench.after(RETRY_S)

    assert "standby task 0_1 is closed, and tried again every 30 s: its stores in" in caplog.text
    assert "No space left on device. Their disk is full: make room" in caplog.text
    assert (first, bench.copies()) == ([TASK], [TASK, OTHER])


def test_what_was_read_is_not_read_again_in_the_next_round(bench: StandbyBench) -> None:
    store = bench.stores[TASK][LOG]
    bench.logs.ends[LOG] = 2
    bench.logs.put(LOG, 0, 1)
    bench.after(0)
    bench.after(ROUND_S)

    assert (len(store.rows), bench.logs.assigned) == (2, {})


def test_thread_closes_everything_when_it_is_stopped(bench: StandbyBench) -> None:
    bench.standbys.start()
    wait_for(lambda: bench.copies() == [TASK])
    bench.standbys.stop()

    assert bench.made[0].history == ["open", "close"]
    assert bench.closed == 1
    bench.worker.lock(TASK)


def test_what_cannot_be_closed_is_named_and_the_rest_is_closed(
    bench: StandbyBench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ClusterError("the consumer is busy")

    monkeypatch.setattr(bench.standbys._rounds, "close", fail)
    bench.standbys.close()

    assert [said.partition(": ")[2] for said in caplog.messages] == [
        "closing the consumer of changelogs went wrong; the rest is closed"
    ]
    assert bench.closed == 1


def test_thread_without_a_copy_is_woken_by_an_assignment(bench: StandbyBench) -> None:
    bench.assign()
    bench.standbys.start()
    bench.assign(TASK)
    wait_for(lambda: bench.copies() == [TASK])
    bench.assign()
    wait_for(lambda: bench.copies() == [])
    bench.standbys.stop()

    assert bench.made[0].history == ["open", "close"]


def test_copies_are_reported_with_what_they_have_read_and_whose_they_are(bench: StandbyBench) -> None:
    bench.assign(OTHER, member="another")
    bench.logs.ends = {LOG: 10, OTHER_LOG: 2}
    bench.logs.put(LOG, 0, 1, 2)
    bench.after(0)
    bench.logs.put(OTHER_LOG, 0, 1)
    bench.after(0)

    assert bench.standbys.offset_sums() == {TASK: 3, OTHER: 2}
    assert (bench.standbys.member_of(TASK), bench.standbys.member_of(OTHER)) == ("me", "another")


def test_closed_copy_leaves_a_checkpoint_and_is_reported_no_more(bench: StandbyBench) -> None:
    bench.logs.ends[LOG] = 10
    bench.logs.put(LOG, 0, 1, 2)
    (bench.directory.task_dir(TASK) / "rocksdb" / "counts").mkdir(parents=True)
    bench.after(0)
    while_open = bench.worker.free_checkpoints()
    bench.assign()
    bench.after(0)

    assert (while_open, bench.worker.free_checkpoints()) == ({}, {TASK: {"counts": 3}})
    assert bench.standbys.offset_sums() == {}


def test_checkpoint_of_an_open_copy_is_written_now_and_then_with_what_is_on_disk(bench: StandbyBench) -> None:
    (bench.directory.task_dir(TASK) / "rocksdb" / "counts").mkdir(parents=True)
    bench.after(0)
    for end in (2, 4):
        bench.logs.ends[LOG] = end
        bench.logs.put(LOG, end - 1)
        bench.stores[TASK][LOG].flushed = end - 1
        bench.after(CHECKPOINT_S)
    left = read_checkpoint(bench.directory.task_dir(TASK))

    assert (bench.stores[TASK][LOG].commits, left) == ([2, 4], {"counts": 3})


def test_copy_that_is_deleted_leaves_no_checkpoint(bench: StandbyBench) -> None:
    bench.stores[TASK][LOG].offset = 3
    bench.logs.begins[LOG], bench.logs.ends[LOG] = 7, 9
    (bench.directory.task_dir(TASK) / "rocksdb" / "counts").mkdir(parents=True)
    bench.standbys.turn()
    bench.assign()
    bench.standbys.turn()

    assert bench.worker.free_checkpoints() == {}


def test_copies_do_not_follow_their_changelogs_during_a_pause_and_come_and_go_as_before(bench: StandbyBench) -> None:
    store = bench.stores[TASK][LOG]
    bench.pause.is_set = True
    bench.logs.ends[LOG] = 2
    bench.logs.put(LOG, 0, 1)
    bench.after(ROUND_S)
    paused = bench.copies(), list(store.rows)
    bench.pause.is_set = False
    bench.after(ROUND_S)
    resumed = len(store.rows)
    bench.pause.is_set = True
    bench.assign(OTHER)
    bench.after(0)

    assert (paused, resumed, bench.copies()) == (([TASK], []), 2, [OTHER])


def test_listener_hears_of_one_start_of_each_batch_and_of_the_end_of_a_copy_that_goes(bench: StandbyBench) -> None:
    bench.stores[TASK][LOG].offset = 1
    bench.logs.ends[LOG] = 3
    bench.logs.put(LOG, 1, 2)
    bench.after(0)
    bench.logs.ends[LOG] = 6
    bench.logs.put(LOG, 3, 4)
    bench.after(ROUND_S)
    bench.assign()
    bench.after(0)

    assert bench.listener.heard == [
        ("start", LOG, "counts", 1),
        ("batch", LOG, "counts", TASK, 2, 2, 2),
        ("batch", LOG, "counts", TASK, 4, 2, 5),
        ("end", LOG, "counts", 4, 5, SuspendReason.MIGRATED),
    ]
    assert bench.made[0].history[-1] == "close"


@pytest.mark.parametrize("releases", [True, False])
def test_listener_hears_that_a_copy_becomes_the_active_task(bench: StandbyBench, releases: bool) -> None:
    bench.after(0)
    bench.made[0].can_release = releases
    bench.standbys.give_up(TASK)
    bench.after(0)

    assert bench.listener.heard == [
        ("start", LOG, "counts", 0),
        ("end", LOG, "counts", -1, -1, SuspendReason.PROMOTED),
    ]


def test_listener_that_fails_is_said_to_the_member_and_what_it_was_told_of_is_read_again(bench: StandbyBench) -> None:
    store = bench.stores[TASK][LOG]
    bench.listener.fails_at = "batch"
    bench.logs.ends[LOG] = 2
    bench.logs.put(LOG, 0, 1)
    bench.after(0)
    ((member, error),) = bench.failures

    assert member == "me"
    assert str(error) == (
        "on_batch_loaded of the standby_update_listener (HeardListener) failed for store 'counts' of task 0_0: "
        "ValueError('no room'); mend it, or catch there what may be missed"
    )
    assert isinstance(error.__cause__, ValueError)
    assert store.commits == [0]
    assert bench.copies() == []
    bench.listener.fails_at = ""
    bench.logs.put(LOG, 0, 1)
    bench.after(RETRY_S)
    bench.after(LOOK_S)
    assert bench.copies() == [TASK]


def test_listener_that_fails_at_an_end_does_not_keep_the_copy_open(bench: StandbyBench) -> None:
    bench.listener.fails_at = "end"
    bench.after(0)
    bench.assign()
    bench.after(0)

    assert bench.made[0].history[-1] == "close"
    assert [member for member, _ in bench.failures] == [None]
    bench.worker.lock(TASK)
