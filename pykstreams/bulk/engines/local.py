"""Runs the stages without Spark: Arrow sorts, processes of this machine share the work.

Two phases: each part of the source is encoded and sorted into runs, one file a run and task; then each task merges its
runs, folds and writes. Memory is that of some runs for each process, whatever the size of the snapshot.

A process that dies (out of memory, killed) fails the job; nothing is published then.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pykstreams.bulk.engines.processes import Pool
from pykstreams.bulk.engines.runs_of_tasks import sort_by_task
from pykstreams.bulk.engines.sorting import SortedRuns, merged_runs
from pykstreams.bulk.sources.sources import Part
from pykstreams.bulk.stages.batches import BY_KEY, BY_TIME, ENCODED, OF_ROWS, ROWS
from pykstreams.bulk.stages.encode import encode
from pykstreams.bulk.stages.fold import fold, fold_by_time, restore
from pykstreams.bulk.stages.newest import encode_newest, keyed
from pykstreams.bulk.stages.store_job import StoreJob
from pykstreams.bulk.stages.write import fold_and_write, write
from pykstreams.bulk.targets.target import FoldOrder
from pykstreams.state.bulk.folder import folder_at
from pykstreams.state.bulk.job_lock import work_folder

Progress = Callable[[str, int, int], None]
"""Takes (what is done, how far, of how much)."""

_REPORT: Final = "report"


class LocalEngine:
    """Builds stores on this machine, one after the other by the same processes; a context manager.

    :param processes: how many; 1 works in this process.
    """

    def __init__(self, processes: int | None = None) -> None:
        self._pool = Pool(processes or os.cpu_count() or 1)

    def __enter__(self) -> LocalEngine:
        self._pool.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *rest: object) -> None:
        self._pool.__exit__(kind, *rest)

    def build(self, job: StoreJob, parts: list[Part], progress: Progress) -> tuple[StoreJob, list[str]]:
        """Builds one store; returns the job and the reports of its tasks."""
        pool = self._pool
        with work_folder(folder_at(job.root).local) as scratch:
            encoding: list[Any] = [(encode_part, (job, part, str(scratch), at)) for at, part in enumerate(parts)]
            if job.target.row_key is not None and parts:
                keys = scratch / "keys"
                keys.mkdir()
                keying = [(key_part, (job, part, str(keys), at)) for at, part in enumerate(parts)]
                pool.run(keying, lambda done: progress("keyed parts", done, len(keying)))
                met = parts[0].schema
                encoding = [(encode_met, (job, str(keys), str(scratch), at, met)) for at in range(len(job.shares))]
            pool.run(encoding, lambda done: progress("encoded parts", done, len(encoding)))
            writing = [(build_task, (job, task, str(scratch))) for task in range(job.tasks)]
            return job, pool.run(writing, lambda done: progress("written tasks", done, len(writing)))


def encode_part(job: StoreJob, part: Part, scratch: str, number: int) -> int:
    """The first phase, for one part of the source; gives how many rows it encoded."""
    return sort_by_task(encode(job, part.batches(), number), scratch, number, ENCODED, _order(job))


def key_part(job: StoreJob, part: Part, folder: str, number: int) -> int:
    """Before it, where rows of one key have to meet: for one part of the source; gives how many rows it has."""
    return sort_by_task(keyed(job, part.batches(), number), folder, number, ENCODED, BY_KEY)


def encode_met(job: StoreJob, folder: str, scratch: str, number: int, schema: pa.Schema | None) -> int:
    """The first phase, for rows that have met; gives how many rows it encoded."""
    met = Path(folder) / str(number)
    if not met.is_dir():
        return 0
    found = encode_newest(job, merged_runs(sorted(met.iterdir()), BY_KEY), schema)
    return sort_by_task(found, scratch, number, ENCODED, _order(job))


def build_task(job: StoreJob, task: int, scratch: str) -> str:
    """The second phase, for one task; returns its report."""
    folder = Path(scratch) / str(task)
    folder.mkdir(exist_ok=True)
    runs = sorted(folder.iterdir())
    attempt = f"local{os.getpid()}-{task}"
    batches = merged_runs(runs, _order(job)) if runs else iter(())
    reports = list(_last_stage(job, task, attempt, batches, folder))
    text: str = reports[-1].column(_REPORT)[0].as_py()
    return text


def _last_stage(
    job: StoreJob, task: int, attempt: str, batches: Iterator[pa.RecordBatch], folder: Path
) -> Iterator[pa.RecordBatch]:
    if job.target.order is FoldOrder.AS_STORED:
        return fold_and_write(job, task, attempt, batches)
    if job.target.order is FoldOrder.BY_TIME:
        logged = _sorted(folder, "logged", ENCODED, BY_KEY, fold_by_time(job, task, attempt, batches))
        rows = restore(job, task, logged)
    else:
        rows = fold(job, task, attempt, batches)
    return write(job, task, attempt, _sorted(folder, "rows", ROWS, OF_ROWS, rows))


def _order(job: StoreJob) -> tuple[str, ...]:
    return BY_TIME if job.target.order is FoldOrder.BY_TIME else BY_KEY


def _sorted(
    folder: Path, stem: str, schema: pa.Schema, keys: tuple[str, ...], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    runs = SortedRuns(folder, stem, schema, keys)
    for batch in batches:
        runs.add(batch)
    return runs.merged()
