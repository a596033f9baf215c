"""Tasks with open stores: the sums of their offsets, and when their checkpoints are written."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pykstreams.core.errors import ProcessorStateError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.restore.open_tasks import CHECKPOINT_S, OpenTasks
from pykstreams.state.directory.task_checkpoint import read_checkpoint, write_checkpoint
from tests.unit.runtime.cluster_fakes import FakeClock

TASK = TaskId(0, 0)
COUNTS, SUMS = TopicPartition("shop-counts-changelog", 0), TopicPartition("shop-sums-changelog", 0)


@dataclass
class Offsets:
    places: dict[TopicPartition, int] = field(default_factory=dict)
    left: dict[str, int] = field(default_factory=dict)
    on_disk: dict[str, int] = field(default_factory=dict)

    def committed(self) -> dict[TopicPartition, int]:
        return dict(self.places)

    def durable(self) -> dict[str, int]:
        return dict(self.left)

    def flushed(self) -> dict[str, int]:
        return dict(self.on_disk)


@dataclass
class OpenTask:
    id: TaskId = TASK
    state_offsets: Offsets = field(default_factory=Offsets)


class OpenTasksBench:
    def __init__(self, folder: Path) -> None:
        for store in ("counts", "sums"):
            (folder / "rocksdb" / store).mkdir(parents=True)
        self.folder, self.clock, self.task = folder, FakeClock(), OpenTask()
        self.offsets = self.task.state_offsets
        self.tasks = OpenTasks(lambda _: folder, self.clock)

    def after(self, seconds: float) -> dict[str, int]:
        """Lets time pass; returns the checkpoint of then."""
        self.clock.advance(seconds)
        self.tasks.keep()
        return read_checkpoint(self.folder)


@pytest.fixture
def bench(tmp_path: Path) -> OpenTasksBench:
    return OpenTasksBench(tmp_path)


def test_the_offsets_of_the_stores_of_a_task_are_summed_up(bench: OpenTasksBench) -> None:
    bench.tasks.add(bench.task)
    bench.offsets.places = {COUNTS: 7, SUMS: 5}

    assert bench.tasks.sums({}) == {TASK: 12}


def test_what_was_read_since_the_last_commit_counts_too(bench: OpenTasksBench) -> None:
    bench.tasks.add(bench.task)
    bench.offsets.places = {COUNTS: 7, SUMS: 5}

    assert bench.tasks.sums({COUNTS: 100, SUMS: 2}) == {TASK: 105}


def test_a_task_without_changelogs_has_no_sum(bench: OpenTasksBench) -> None:
    bench.tasks.add(bench.task)

    assert bench.tasks.sums({}) == {}


def test_what_the_stores_leave_is_written_when_they_are_closed(bench: OpenTasksBench) -> None:
    bench.tasks.add(bench.task)
    bench.offsets.left = {"counts": 7}
    with bench.tasks.closing(bench.task):
        bench.offsets.left = {}

    assert read_checkpoint(bench.folder) == {"counts": 7}
    assert bench.tasks.sums({}) == {}
    assert bench.tasks.due_in_s is None


def test_stores_that_cannot_be_closed_leave_the_checkpoint_as_it_was(bench: OpenTasksBench) -> None:
    bench.offsets.on_disk = {"counts": 3}
    bench.tasks.add(bench.task)
    bench.offsets.left = {"counts": 7}
    with pytest.raises(ProcessorStateError), bench.tasks.closing(bench.task):
        raise ProcessorStateError("the disk is full")

    assert read_checkpoint(bench.folder) == {"counts": 3}
    assert bench.tasks.sums({}) == {}


def test_a_task_whose_stores_were_never_open_leaves_the_checkpoint_as_it_was(bench: OpenTasksBench) -> None:
    write_checkpoint(bench.folder, {"counts": 7})
    with bench.tasks.closing(bench.task):
        pass

    assert read_checkpoint(bench.folder) == {"counts": 7}


@pytest.mark.parametrize("found", [{"counts": 3}, {"counts": 9, "sums": 1}, {}])
def test_a_checkpoint_is_set_right_when_the_stores_are_opened(bench: OpenTasksBench, found: dict[str, int]) -> None:
    """It may say too little after a kill, and too much where a store was deleted by hand."""
    write_checkpoint(bench.folder, {"counts": 7})
    bench.offsets.on_disk = found
    bench.tasks.add(bench.task)

    assert read_checkpoint(bench.folder) == found


def test_now_and_then_what_is_on_disk_is_written(bench: OpenTasksBench) -> None:
    bench.offsets.on_disk = {"counts": 3, "sums": 4}
    bench.tasks.add(bench.task)
    bench.offsets.left = {"counts": 9, "sums": 9}  # which is not on disk yet
    bench.offsets.on_disk = {"counts": 6, "sums": 4}
    early = bench.after(CHECKPOINT_S - 1)

    assert early == {"counts": 3, "sums": 4}
    assert bench.after(1) == {"counts": 6, "sums": 4}
    assert bench.tasks.due_in_s == CHECKPOINT_S


def test_a_task_whose_stores_stay_open_leaves_the_checkpoint_as_it_was(bench: OpenTasksBench) -> None:
    bench.offsets.on_disk, bench.offsets.left = {"counts": 3}, {"counts": 7}
    bench.tasks.add(bench.task)
    bench.tasks.forget(bench.task)

    assert read_checkpoint(bench.folder) == {"counts": 3}
    assert bench.tasks.sums({}) == {}


def test_nothing_is_written_when_nothing_has_changed(bench: OpenTasksBench) -> None:
    bench.offsets.on_disk = {"counts": 3}
    bench.tasks.add(bench.task)
    (bench.folder / "rocksdb" / "@checkpoint").unlink()

    assert bench.after(CHECKPOINT_S) == {}


def test_a_checkpoint_that_cannot_be_written_is_told_and_tried_again(
    bench: OpenTasksBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.tasks.add(bench.task)
    in_the_way = bench.folder / "rocksdb" / "@checkpoint.new"
    in_the_way.mkdir()
    bench.offsets.on_disk = {"counts": 3}
    failed = bench.after(CHECKPOINT_S)
    in_the_way.rmdir()

    assert failed == {}
    assert "task 0_0: its checkpoint is not written: " in caplog.text
    assert bench.after(CHECKPOINT_S) == {"counts": 3}
