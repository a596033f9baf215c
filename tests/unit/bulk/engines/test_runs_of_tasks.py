"""Rows that are sorted for each task apart lie in files but for a bounded part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from pykstreams.bulk.engines import runs_of_tasks
from pykstreams.bulk.engines.runs_of_tasks import sort_by_task
from pykstreams.bulk.engines.sorting import merged_runs

SCHEMA = pa.schema([("task", pa.int32()), ("time", pa.int64())])
TASKS, BATCHES = 50, 40


def batches() -> Iterator[pa.RecordBatch]:
    """A row of each task in every batch, later ones before earlier ones."""
    for number in reversed(range(BATCHES)):
        yield pa.RecordBatch.from_pydict({"task": [*range(TASKS)], "time": [number] * TASKS}, SCHEMA)


def in_files(folder: Path) -> int:
    """How many rows have been written."""
    return sum(pa.ipc.open_file(str(path)).read_all().num_rows for path in folder.rglob("*.arrow"))


def test_each_task_has_its_rows_in_order(tmp_path: Path) -> None:
    assert sort_by_task(batches(), str(tmp_path), 3, SCHEMA, ("time",)) == TASKS * BATCHES

    for task in range(TASKS):
        found = pa.Table.from_batches(merged_runs(sorted((tmp_path / str(task)).iterdir()), ("time",)), SCHEMA)
        assert found.to_pydict() == {"task": [task] * BATCHES, "time": [*range(BATCHES)]}


def test_rows_of_all_tasks_together_are_in_memory_up_to_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [one, *_] = batches()
    monkeypatch.setattr(runs_of_tasks, "RUN_BYTES", 4 * one.nbytes)
    waiting = []

    def watched() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches()):
            waiting.append(number - in_files(tmp_path) // TASKS)
            yield batch

    sort_by_task(watched(), str(tmp_path), 0, SCHEMA, ("time",))

    assert max(waiting) <= 5
    assert in_files(tmp_path) == TASKS * BATCHES
