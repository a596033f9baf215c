"""Sorts rows for each task apart, into runs that lie in a folder a task.

Invariant: in memory are ``RUN_BYTES`` of rows and one batch, whatever the number of tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pykstreams.bulk.engines.sorting import RUN_BYTES, SortedRuns


def sort_by_task(
    batches: Iterable[pa.RecordBatch], scratch: str, number: int, schema: pa.Schema, order: tuple[str, ...]
) -> int:
    """Sorts rows into runs of their tasks; returns how many there were.

    :param scratch: the folder of the tasks' folders, which are named after them.
    :param number: the part that is sorted; the names of its runs begin with it.
    :param order: the columns to sort by; that of the task is called ``task``.
    """
    runs: dict[int, SortedRuns] = {}
    count = 0
    for batch in batches:
        count += batch.num_rows
        for task, rows in _by_task(batch):
            if task not in runs:
                folder = Path(scratch) / str(task)
                folder.mkdir(exist_ok=True)
                runs[task] = SortedRuns(folder, str(number), schema, order)
            runs[task].add(rows)
        if sum(each.waiting_bytes for each in runs.values()) > RUN_BYTES:
            _spill(runs.values())
    _spill(runs.values())
    return count


def _spill(runs: Iterable[SortedRuns]) -> None:
    for each in runs:
        each.spill()


def _by_task(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Divides a batch by task."""
    if batch.num_rows == 0:
        return
    tasks = batch.column("task")
    if pc.min(tasks).equals(pc.max(tasks)):
        yield tasks[0].as_py(), batch
        return
    order = pc.sort_indices(tasks)
    found = batch.take(order)
    lengths = pc.value_counts(found.column("task"))
    at = 0
    for entry in lengths.to_pylist():
        yield entry["values"], found.slice(at, entry["counts"])
        at += entry["counts"]
