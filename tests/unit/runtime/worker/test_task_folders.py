"""Folders of tasks: claimed, waited for, left to standby tasks again, and cleaned up."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykstreams.core.errors import LockError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.tasks.stores.open_stores import OpenStores
from pykstreams.runtime.tasks.stores.state_offsets import StateOffsets
from pykstreams.runtime.worker.task_folders import TaskFolders
from pykstreams.state.directory.file_lock import FileLock
from pykstreams.state.directory.state_directory import StateDirectory
from tests.unit.runtime.cluster_fakes import FakeClock

TASK = TaskId(0, 0)


class Standbys:
    def __init__(self, *tasks: TaskId) -> None:
        self.tasks = set(tasks)
        self.asked_for: set[TaskId] = set()
        self.left: dict[TaskId, tuple[OpenStores, FileLock]] = {}
        self.wanted: set[TaskId] = set()

    def give_up(self, task_id: TaskId) -> bool:
        self.asked_for.add(task_id)
        return task_id in self.tasks

    def taken(self, task_id: TaskId) -> tuple[OpenStores, FileLock] | None:
        return self.left.pop(task_id, None)

    def wants(self, task_id: TaskId) -> bool:
        return task_id in self.wanted

    def take(self, task_id: TaskId, stores: OpenStores, lock: FileLock) -> None:
        self.left[task_id] = stores, lock

    def allow(self, task_id: TaskId) -> None:
        self.asked_for.discard(task_id)


class TaskFoldersBench:
    def __init__(self, folder: Path) -> None:
        self.clock = FakeClock()
        self.mine = StateDirectory(folder, "shop", clock=self.clock)
        self.other = StateDirectory(folder, "shop", clock=self.clock)

    def folders(self, standbys: Standbys | None = None) -> TaskFolders:
        return TaskFolders(self.mine, self.clock, task_timeout_ms=5_000, cleanup_delay_ms=600_000, standbys=standbys)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[TaskFoldersBench]:
    found = TaskFoldersBench(tmp_path)
    yield found
    found.mine.close()
    found.other.close()


def claim(folders: TaskFolders, *, is_waiting: bool = False) -> bool:
    return folders.claim(TASK, give_up_at=folders.give_up_at(), is_waiting=is_waiting)


def test_a_claimed_folder_is_locked_until_it_is_released(bench: TaskFoldersBench) -> None:
    folders = bench.folders()
    assert claim(folders)
    (folders.path(TASK) / "rows").touch()
    with pytest.raises(LockError):
        bench.other.lock(TASK)
    folders.unlock(TASK)
    bench.other.lock(TASK)

    assert (folders.path(TASK) / "rows").exists()


def test_state_is_deleted_with_the_release_if_asked_for(bench: TaskFoldersBench) -> None:
    folders = bench.folders()
    claim(folders)
    (folders.path(TASK) / "rows").touch()
    folders.wipe(TASK)
    folders.unlock(TASK)

    assert not (folders.path(TASK) / "rows").exists()


def test_a_folder_that_somebody_else_has_is_waited_for_and_warned_of_when_it_is_not_handed_over(
    bench: TaskFoldersBench, caplog: pytest.LogCaptureFixture
) -> None:
    folders = bench.folders()
    bench.other.lock(TASK)
    give_up_at = folders.give_up_at()
    with caplog.at_level(logging.INFO):
        claimed = [folders.claim(TASK, give_up_at=give_up_at, is_waiting=False)]
        for wait_s in (1, 2, 1):
            bench.clock.advance(wait_s)
            claimed.append(folders.claim(TASK, give_up_at=give_up_at, is_waiting=True))

    assert not any(claimed)
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
    assert "task 0_0 waits up to 5 s for its state" in caplog.text
    assert "task 0_0 waits for its state, for up to 2 s: folder" in caplog.text


def test_a_task_does_not_wait_longer_than_its_time_out_but_for_a_standby(bench: TaskFoldersBench) -> None:
    standbys = Standbys()
    folders = bench.folders(standbys)
    bench.other.lock(TASK)
    give_up_at = folders.give_up_at()
    bench.clock.advance(6)
    with pytest.raises(LockError, match=r"task 0_0 has waited 5 s \(task.timeout.ms\) for its state"):
        folders.claim(TASK, give_up_at=give_up_at, is_waiting=True)
    standbys.tasks.add(TASK)

    assert not folders.claim(TASK, give_up_at=give_up_at, is_waiting=True)


def test_a_standby_is_asked_to_leave_and_may_come_back_after_the_release(bench: TaskFoldersBench) -> None:
    standbys = Standbys(TASK)
    folders = bench.folders(standbys)
    claim(folders)
    asked_for = set(standbys.asked_for)
    folders.unlock(TASK)

    assert (asked_for, standbys.asked_for) == ({TASK}, set())


def test_folders_that_nobody_uses_are_deleted_when_it_is_time(bench: TaskFoldersBench) -> None:
    folders = bench.folders()
    claim(folders)
    (folders.path(TASK) / "rows").touch()
    folders.unlock(TASK)
    folders.clean_up()
    early = (bench.mine.path / "0_0" / "rows").exists()
    bench.clock.advance(1 + folders.cleanup_in_s())
    folders.clean_up()

    assert early
    assert not (bench.mine.path / "0_0" / "rows").exists()
    assert folders.cleanup_in_s() > 0


def test_stores_that_a_standby_has_left_open_come_with_the_lock_of_their_folder(bench: TaskFoldersBench) -> None:
    standbys, stores = Standbys(), OpenStores({}, StateOffsets({}))
    folders = bench.folders(standbys)
    bench.other.lock(TASK)
    standbys.left[TASK] = stores, bench.other.give(TASK)
    claimed = claim(folders)
    left = folders.left_open(TASK), folders.left_open(TASK)
    with pytest.raises(LockError):
        bench.other.lock(TASK)
    folders.unlock(TASK)

    assert (claimed, left) == (True, (stores, None))
    bench.other.lock(TASK)


def test_a_task_that_is_to_be_a_standby_leaves_its_folder_locked(bench: TaskFoldersBench) -> None:
    standbys, stores = Standbys(), OpenStores({}, StateOffsets({}))
    standbys.wanted.add(TASK)
    folders = bench.folders(standbys)
    claim(folders)
    done = folders.hand_on(TASK, lambda: stores)
    kept, lock = standbys.left[TASK]
    with pytest.raises(LockError):
        bench.other.lock(TASK)
    lock.release()

    assert (done, kept, standbys.asked_for) == (True, stores, set())
    bench.other.lock(TASK)


def test_a_task_is_not_handed_on_where_no_standby_belongs_or_its_stores_cannot_stay(bench: TaskFoldersBench) -> None:
    standbys, stores = Standbys(), OpenStores({}, StateOffsets({}))
    folders = bench.folders(standbys)
    claim(folders)
    unwanted = folders.hand_on(TASK, lambda: stores)
    standbys.wanted.add(TASK)
    kept = folders.hand_on(TASK, lambda: None)
    folders.unlock(TASK)

    assert (unwanted, kept, standbys.left) == (False, False, {})
    assert not bench.folders().hand_on(TASK, lambda: stores)
    bench.other.lock(TASK)


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error")])
def test_a_folder_that_cannot_be_cleaned_up_is_warned_of_and_the_others_are_cleaned_up(
    bench: TaskFoldersBench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: OSError
) -> None:
    """What fails here ends the worker, which has nothing to do with that state."""
    folders, delete = bench.folders(), shutil.rmtree
    for task_id in (TASK, TaskId(0, 1)):
        (bench.mine.task_dir(task_id) / "rocksdb" / "store").mkdir(parents=True)
        bench.mine.lock(task_id)
        bench.mine.unlock(task_id)

    def refused(path: Path) -> None:
        if path.parent.name == str(TASK):
            raise error
        delete(path)

    monkeypatch.setattr("pykstreams.state.directory.state_directory.shutil.rmtree", refused)
    bench.clock.advance(1_200)
    folders.clean_up()

    assert bench.mine.tasks() == [TASK]
    assert "state that nobody has used for long is not deleted, and is tried again in 600 s: " in caplog.text
    assert "cannot be deleted" in caplog.text
    assert folders.cleanup_in_s() == 600
