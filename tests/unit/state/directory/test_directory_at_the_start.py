"""What a worker does to its state directory when it starts: rights are set, and what is too old is deleted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.core.ids import TaskId
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.testing.clock import MockClock


def rights(path: Path) -> str:
    return stat.filemode(path.stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="rights are inherited on Windows")
@pytest.mark.parametrize(("group_may_write", "expected"), [(False, "drwxr-x---"), (True, "drwxrwx---")])
def test_only_the_owner_may_write_to_the_state_directory_unless_the_group_may_too(
    tmp_path: Path, group_may_write: bool, expected: str
) -> None:
    above = tmp_path / "state"
    config = config_of(above, **{"allow.os.group.write.access": group_may_write})
    above.mkdir()
    above.chmod(0o777)
    directory = StateDirectory.of(config, clock=MockClock())
    directory.path.mkdir(parents=True)
    for folder in (directory.path, directory.path.parent):
        folder.chmod(0o755)
    directory.make(config)

    assert [rights(path) for path in (above, above / "pykstreams", above / "pykstreams" / "shop")] == [expected] * 3


@pytest.mark.skipif(os.name == "nt", reason="rights are inherited on Windows")
def test_rights_that_the_umask_keeps_back_are_not_given_and_folders_for_everybody_stay_as_they_are(
    tmp_path: Path,
) -> None:
    above = tmp_path / "state"
    config = config_of(above)
    directory = StateDirectory.of(config, clock=MockClock())
    directory.path.mkdir(parents=True)
    directory.path.chmod(0o700)
    above.chmod(0o1777)
    directory.make(config)

    assert (rights(directory.path), rights(above)) == ("drwx------", "drwxrwxrwt")


def test_rights_that_cannot_be_set_are_logged_and_the_start_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    config = config_of(tmp_path / "state", **{"allow.os.group.write.access": True})
    monkeypatch.setattr(Path, "chmod", refuse)
    StateDirectory.of(config, clock=MockClock()).make(config)

    assert f"the rights of '{tmp_path / 'state'}' stay as they are: [Errno 1] Operation not permitted;" in caplog.text


@pytest.mark.parametrize(("max_age_ms", "left"), [(-1, ["0_1", "0_2"]), (1000, ["0_2"]), (0, [])])
def test_state_that_is_too_old_is_deleted_at_the_start(tmp_path: Path, max_age_ms: int, left: list[str]) -> None:
    clock = MockClock(1_700_000_000_000)
    config = config_of(tmp_path, **{"state.cleanup.dir.max.age.ms": max_age_ms})
    directory = StateDirectory.of(config, clock=clock)
    for task_id in (TaskId(0, 1), TaskId(0, 2)):
        (directory.lock(task_id) / "rocksdb").mkdir()
        directory.unlock(task_id)
        clock.advance(999)
    directory.make(config)

    assert [str(task_id) for task_id in directory.tasks()] == left


def test_state_that_another_process_works_on_is_never_too_old(tmp_path: Path) -> None:
    config = config_of(tmp_path, **{"state.cleanup.dir.max.age.ms": 0})
    other = StateDirectory.of(config, clock=MockClock())
    (other.lock(TaskId(0, 1)) / "rocksdb").mkdir()
    StateDirectory.of(config, clock=MockClock()).make(config)
    other.close()

    assert other.tasks() == [TaskId(0, 1)]


def config_of(state_dir: Path, **settings: object) -> StreamsConfig:
    return StreamsConfig({"application.id": "shop", "state.dir": str(state_dir), **settings})
