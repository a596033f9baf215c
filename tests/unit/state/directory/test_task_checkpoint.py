"""The checkpoint of a task: which offsets it tells, and when it tells nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pykstreams.core.errors import LockError
from pykstreams.core.ids import TaskId
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.directory.task_checkpoint import read_checkpoint, write_checkpoint
from pykstreams.testing.clock import MockClock

TASK, OTHER = TaskId(0, 0), TaskId(0, 1)


def with_stores(folder: Path, *stores: str) -> Path:
    for store in stores:
        (folder / "rocksdb" / store).mkdir(parents=True)
    return folder


def directory(path: Path) -> StateDirectory:
    return StateDirectory(path, "shop", clock=MockClock(0))


def test_what_was_written_last_is_read(tmp_path: Path) -> None:
    with_stores(tmp_path, "counts", "sums")
    write_checkpoint(tmp_path, {"counts": 3})
    write_checkpoint(tmp_path, {"counts": 7, "sums": 0})

    assert read_checkpoint(tmp_path) == {"counts": 7, "sums": 0}


def test_a_store_whose_folder_is_gone_counts_for_nothing(tmp_path: Path) -> None:
    with_stores(tmp_path, "counts", "sums")
    write_checkpoint(tmp_path, {"counts": 7, "sums": 9})
    (tmp_path / "rocksdb" / "sums").rmdir()

    assert read_checkpoint(tmp_path) == {"counts": 7}


def test_it_goes_where_the_stores_go(tmp_path: Path) -> None:
    with_stores(tmp_path, "counts")
    write_checkpoint(tmp_path, {"counts": 7})
    (tmp_path / "rocksdb").rename(tmp_path / "last")
    with_stores(tmp_path, "counts")

    assert read_checkpoint(tmp_path) == {}


def test_none_is_written_where_nothing_is_on_disk(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, {"counts": 7})

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 2, "offsets": {"counts": 7}}',
        '{"version": 1}',
        json.dumps({"version": 1, "offsets": 7}),
    ],
)
def test_a_file_of_anything_else_tells_nothing(tmp_path: Path, text: str) -> None:
    with_stores(tmp_path, "counts")
    (tmp_path / "rocksdb" / "@checkpoint").write_text(text)

    assert read_checkpoint(tmp_path) == {}


def test_a_file_that_cannot_be_replaced_is_as_it_was(tmp_path: Path) -> None:
    with_stores(tmp_path, "counts")
    write_checkpoint(tmp_path, {"counts": 7})
    (tmp_path / "rocksdb" / "@checkpoint.new").mkdir()
    with pytest.raises(OSError):
        write_checkpoint(tmp_path, {"counts": 9})

    assert read_checkpoint(tmp_path) == {"counts": 7}


def test_folders_that_nobody_has_locked_tell_their_offsets(tmp_path: Path) -> None:
    mine, other = directory(tmp_path), directory(tmp_path)
    for one, task in ((mine, TASK), (other, OTHER)):
        one.lock(task)
        write_checkpoint(with_stores(one.task_dir(task), "counts"), {"counts": 7})
    neither = mine.free_checkpoints()
    mine.unlock(TASK)
    first = mine.free_checkpoints(), other.free_checkpoints()
    other.unlock(OTHER)

    assert neither == {}
    assert first == ({TASK: {"counts": 7}}, {TASK: {"counts": 7}})
    assert set(mine.free_checkpoints()) == {TASK, OTHER}


def test_looking_for_offsets_leaves_folders_unlocked_and_their_times_as_they_are(tmp_path: Path) -> None:
    mine, other = directory(tmp_path), directory(tmp_path)
    write_checkpoint(with_stores(mine.task_dir(TASK), "counts"), {"counts": 7})
    mine.lock(TASK)
    mine.unlock(TASK)
    before = (mine.task_dir(TASK) / ".lock").stat().st_mtime_ns
    mine.free_checkpoints()

    assert (mine.task_dir(TASK) / ".lock").stat().st_mtime_ns == before
    other.lock(TASK)
    with pytest.raises(LockError):
        mine.lock(TASK)


def test_state_that_is_wiped_or_cleaned_up_takes_its_checkpoint_along(tmp_path: Path) -> None:
    mine = directory(tmp_path)
    for task in (TASK, OTHER):
        write_checkpoint(with_stores(mine.task_dir(task), "counts"), {"counts": 7})
        mine.lock(task)
    mine.wipe(TASK)
    mine.unlock(TASK)
    mine.unlock(OTHER)
    wiped = mine.free_checkpoints()
    mine.clean_up(0)

    assert (wiped, mine.free_checkpoints()) == ({OTHER: {"counts": 7}}, {})
