"""The state directory: locks, clean-up, process ids."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError, LockError, ProcessorStateError, StoreEngineError
from pykstreams.core.ids import TaskId
from pykstreams.state.directory.file_lock import FileLock
from pykstreams.state.directory.state_directory import StateDirectory, application_folder
from pykstreams.testing.clock import MockClock

TASK = TaskId(0, 1)
HOUR = 3_600_000


@pytest.fixture
def clock() -> MockClock:
    return MockClock(1_700_000_000_000)


def directory(path: Path, clock: MockClock) -> StateDirectory:
    return StateDirectory(path, "shop", clock=clock)


def test_folder_of_a_task_is_below_the_application(tmp_path: Path, clock: MockClock) -> None:
    assert directory(tmp_path, clock).task_dir(TASK) == tmp_path / "shop" / "0_1"
    assert (tmp_path / "shop" / "0_1").is_dir()


def test_application_has_a_folder_apart_from_that_of_a_java_application_of_its_name(tmp_path: Path) -> None:
    assert application_folder(tmp_path, "shop") == tmp_path / "pykstreams" / "shop"


@pytest.mark.parametrize("left", ["worker-0.id", "0_1/.lock"])
def test_state_that_an_earlier_release_has_left_is_used_where_it_is(tmp_path: Path, left: str) -> None:
    write(tmp_path / "shop" / left)

    assert application_folder(tmp_path, "shop") == tmp_path / "shop"


@pytest.mark.parametrize("javas", ["kafka-streams-process-metadata", "0_1/.checkpoint"])
def test_state_of_a_java_application_is_left_alone(tmp_path: Path, javas: str) -> None:
    write(tmp_path / "shop" / "worker-0.id")
    write(tmp_path / "shop" / "0_1" / ".lock")
    write(tmp_path / "shop" / javas)

    assert application_folder(tmp_path, "shop") == tmp_path / "pykstreams" / "shop"


def test_state_of_this_release_comes_before_that_of_an_earlier_one(tmp_path: Path) -> None:
    write(tmp_path / "shop" / "worker-0.id")
    (tmp_path / "pykstreams" / "shop").mkdir(parents=True)

    assert application_folder(tmp_path, "shop") == tmp_path / "pykstreams" / "shop"


def test_worker_finds_its_directory_by_its_settings(tmp_path: Path, clock: MockClock) -> None:
    config = StreamsConfig({"application.id": "shop", "state.dir": str(tmp_path)})
    StateDirectory.of(config, clock=clock).lock(TASK)

    assert StateDirectory.of(config, clock=clock).path == tmp_path / "pykstreams" / "shop"


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def test_folder_that_the_disk_does_not_let_lock_is_an_error_of_its_store_and_can_be_locked_later(
    tmp_path: Path, clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    found = directory(tmp_path, clock)
    for call in ("open", "write"):
        with monkeypatch.context() as patched:
            patched.setattr(os, call, refuse)
            with pytest.raises(StoreEngineError, match=r"0_1' of task 0_1 cannot be locked: .*Read-only") as raised:
                found.lock(TASK)
        assert raised.value.task_id == TASK
    found.lock(TASK)
    found.close()


def test_lock_is_let_go_also_where_the_time_of_it_cannot_be_kept(
    tmp_path: Path, clock: MockClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    first, second = directory(tmp_path, clock), directory(tmp_path, clock)
    first.lock(TASK)
    with monkeypatch.context() as patched:
        patched.setattr(os, "utime", refuse)
        first.unlock(TASK)

    second.lock(TASK)
    second.close()
    assert "was last used is not kept: [Errno 30] Read-only file system" in caplog.text


def test_folder_that_cannot_be_made_tells_the_setting(tmp_path: Path, clock: MockClock) -> None:
    (tmp_path / "shop").write_text("a file")

    with pytest.raises(ProcessorStateError, match=r"folder '.*0_1' of task 0_1 cannot be made: .*set state\.dir"):
        directory(tmp_path, clock).task_dir(TASK)


def test_task_is_locked_by_one_worker_at_a_time(tmp_path: Path, clock: MockClock) -> None:
    first, second = directory(tmp_path, clock), directory(tmp_path, clock)
    assert first.lock(TASK) == first.lock(TASK) == tmp_path / "shop" / "0_1"

    with pytest.raises(LockError, match=rf"folder '.*0_1' of task 0_1 is in use by process {os.getpid()}; wait") as e:
        second.lock(TASK)
    assert e.value.task_id == TASK
    first.unlock(TASK)
    first.unlock(TASK)
    second.lock(TASK)
    second.close()
    first.lock(TASK)
    first.close()


def test_tasks_with_state_are_listed_in_order(tmp_path: Path, clock: MockClock) -> None:
    state = directory(tmp_path, clock)
    assert state.tasks() == []
    for task_id in (TaskId(1, 0), TaskId(0, 10), TaskId(0, 2)):
        (state.task_dir(task_id) / "rocksdb").mkdir()
    state.task_dir(TaskId(5, 5))
    (tmp_path / "shop" / "notes").mkdir()

    assert state.tasks() == [TaskId(0, 2), TaskId(0, 10), TaskId(1, 0)]


def test_wiping_needs_the_lock_and_leaves_it(tmp_path: Path, clock: MockClock) -> None:
    state = directory(tmp_path, clock)
    (state.task_dir(TASK) / "rocksdb").mkdir()
    with pytest.raises(LockError, match="state of task 0_1 cannot be deleted without its lock"):
        state.wipe(TASK)
    state.lock(TASK)
    state.wipe(TASK)

    assert [path.name for path in state.task_dir(TASK).iterdir()] == [".lock"]
    state.close()


def test_state_that_nobody_used_for_long_is_cleaned_up(tmp_path: Path, clock: MockClock) -> None:
    state, other = directory(tmp_path, clock), directory(tmp_path, clock)
    mine, theirs, left, recent = TaskId(0, 0), TaskId(0, 1), TaskId(0, 2), TaskId(0, 3)
    for task_id in (mine, theirs, left, recent):
        (state.task_dir(task_id) / "rocksdb" / "store").mkdir(parents=True)
    state.lock(mine)
    other.lock(theirs)
    state.lock(left)
    state.unlock(left)
    clock.advance(HOUR)
    state.lock(recent)
    state.unlock(recent)
    clock.advance(HOUR // 2)

    assert state.clean_up(HOUR) == [left]
    assert state.tasks() == [mine, theirs, recent]
    state.close()
    other.close()


def test_state_of_a_task_that_is_wanted_while_it_is_not_open_is_cleaned_up_by_no_process(
    tmp_path: Path, clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    state, other = directory(tmp_path, clock), directory(tmp_path, clock)
    wanted, left, gone = TaskId(0, 0), TaskId(0, 1), TaskId(0, 2)
    for task_id in (wanted, left):
        (state.task_dir(task_id) / "rocksdb" / "store").mkdir(parents=True)
        state.lock(task_id)
        state.unlock(task_id)
    clock.advance(HOUR)
    for task_id in (wanted, gone):
        state.keep(task_id)

    assert other.clean_up(HOUR) == [left]
    assert state.tasks() == [wanted]
    assert not state.task_path(gone).exists()
    assert caplog.messages == []


def test_process_id_is_the_same_after_a_restart(tmp_path: Path, clock: MockClock) -> None:
    state = directory(tmp_path, clock)
    made = state.process_id(lambda: "first")
    assert state.process_id(lambda: "never asked") == made == "first"
    state.close()

    assert directory(tmp_path, clock).process_id(lambda: "never asked") == "first"


def test_folder_that_cannot_be_written_is_an_error_of_settings(tmp_path: Path, clock: MockClock) -> None:
    (tmp_path / "shop").write_text("a file")

    with pytest.raises(ConfigError, match=r"folder '.*shop' for local state cannot be made, .*set state\.dir") as e:
        directory(tmp_path, clock).process_id(lambda: "id")

    assert isinstance(e.value.__cause__, FileExistsError)


@pytest.mark.parametrize("kind", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_that_knows_no_locks_is_an_error_of_settings(
    tmp_path: Path, clock: MockClock, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(kind, os.strerror(kind))

    monkeypatch.setattr("fcntl.flock", refuse)

    said = rf"cannot be made, written or locked: .*{os.strerror(kind)}.*worker-0\.id.* on a file system with locks"
    with pytest.raises(ConfigError, match=said):
        directory(tmp_path, clock).process_id(lambda: "id")


def test_a_full_disk_under_a_new_process_id_is_an_error_of_settings(
    tmp_path: Path, clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(lock: FileLock, content: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(FileLock, "write", fill)

    with pytest.raises(ConfigError, match="No space left on device; give the worker room"):
        directory(tmp_path, clock).process_id(lambda: "id")


def test_workers_that_share_a_directory_have_different_process_ids(tmp_path: Path, clock: MockClock) -> None:
    first, second = directory(tmp_path, clock), directory(tmp_path, clock)

    assert first.process_id(lambda: "a") == "a"
    assert second.process_id(lambda: "b") == "b"
    first.close()
    third = directory(tmp_path, clock)
    assert third.process_id(lambda: "c") == "a"
    second.close()
    third.close()


def test_workers_keep_global_stores_in_folders_of_their_own(tmp_path: Path, clock: MockClock) -> None:
    first, second = directory(tmp_path, clock), directory(tmp_path, clock)
    for one in (first, second):
        one.process_id(lambda: "an id")

    assert [first.global_dir, second.global_dir] == [tmp_path / "shop" / "global-0", tmp_path / "shop" / "global-1"]


def test_global_stores_need_the_lock_of_a_worker(tmp_path: Path, clock: MockClock) -> None:
    with pytest.raises(LockError, match="need the lock of a worker; ask for process_id first"):
        directory(tmp_path, clock).global_dir  # noqa: B018


def test_only_global_stores_of_workers_that_do_not_run_are_cleaned_up(tmp_path: Path, clock: MockClock) -> None:
    running, stopped = directory(tmp_path, clock), directory(tmp_path, clock)
    for one in (running, stopped):
        one.process_id(lambda: "an id")
        one.global_dir.mkdir()
    stopped.close()
    directory(tmp_path, clock).clean_up_global()

    assert sorted(path.name for path in (tmp_path / "shop").glob("global-*")) == ["global-0"]


def test_workers_that_share_a_directory_have_one_id_together(tmp_path: Path, clock: MockClock) -> None:
    first, second = directory(tmp_path, clock), directory(tmp_path, clock)
    first.process_id(lambda: "one")
    second.process_id(lambda: "two")
    together = first.instance_id(), second.instance_id()
    first.close()

    assert (together, second.instance_id()) == (("one", "one"), "one")
    second.close()
    with pytest.raises(LockError, match=r"^the id of '.*shop' needs the lock of a worker; ask for process_id first$"):
        second.instance_id()
