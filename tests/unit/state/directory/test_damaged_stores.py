"""Damaged stores are moved out of the way, and of each store the last one is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import LockError
from pykstreams.core.ids import TaskId
from pykstreams.state.directory.damaged_stores import set_aside
from pykstreams.state.directory.state_directory import StateDirectory


@pytest.fixture
def task_dir(tmp_path: Path) -> Path:
    for store in ("counts", "rates"):
        folder = tmp_path / "rocksdb" / store
        folder.mkdir(parents=True)
        (folder / "rows").write_text(store)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_damaged_store_is_moved_beside_the_others_with_the_time_in_its_name(task_dir: Path) -> None:
    moved = set_aside(task_dir, "counts", 1700)

    assert moved == task_dir / "counts.damaged-1700"
    assert (moved / "rows").read_text() == "counts"
    assert names(task_dir / "rocksdb") == ["rates"]


def test_only_the_last_damaged_folder_of_each_store_is_kept(task_dir: Path) -> None:
    set_aside(task_dir, "rates", 1600)
    set_aside(task_dir, "counts", 1700)
    (task_dir / "rocksdb" / "counts").mkdir()
    (task_dir / "counts.damaged-by-mice").mkdir()
    set_aside(task_dir, "counts", 1800)

    assert names(task_dir) == ["counts.damaged-1800", "counts.damaged-by-mice", "rates.damaged-1600", "rocksdb"]


def test_a_file_in_the_place_of_a_store_is_moved_as_well(task_dir: Path) -> None:
    (task_dir / "rocksdb" / "names").write_text("no folder")

    assert set_aside(task_dir, "names", 5) == task_dir / "names.damaged-5"


def test_a_store_whose_folder_is_gone_needs_not_be_moved(task_dir: Path) -> None:
    assert set_aside(task_dir, "names", 5) is None


def test_a_store_is_set_aside_with_the_lock_of_its_task_only(tmp_path: Path) -> None:
    directory = StateDirectory(tmp_path, "shop", clock=SystemClock())

    with pytest.raises(LockError, match="store 'counts' of task 0_1 cannot be set aside without its lock"):
        directory.set_aside(TaskId(0, 1), "counts")
