"""Who runs the steps: processes of this machine, or Spark. Both read, sort by time and run tasks by the same functions.

A Spark task runs one task of the application: ``repartitionById`` brings it its records, ``sortWithinPartitions`` puts
them in order.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa

from pykstreams.bulk.application import Application
from pykstreams.bulk.backfills.history import HistoryReading
from pykstreams.bulk.backfills.records import BY_TIME, RECORDS, RECORDS_SQL
from pykstreams.bulk.backfills.step import BackfillStep
from pykstreams.bulk.backfills.task_run import run_task
from pykstreams.bulk.engines.local import Progress
from pykstreams.bulk.engines.processes import Pool
from pykstreams.bulk.engines.runs_of_tasks import sort_by_task
from pykstreams.bulk.engines.sorting import merged_runs
from pykstreams.bulk.engines.spark import SparkEngine, explained
from pykstreams.bulk.engines.spark_rows import SparkRows, beginnings, begun, task_and_attempt
from pykstreams.bulk.sources.sources import Files, Part
from pykstreams.core.errors import ConfigError

_REPORT_SQL: Final = "task int, report string"

Call: TypeAlias = tuple[Callable[..., int], tuple[object, ...]]


@dataclass(frozen=True)
class Input:
    """The records of one topic: how they are read, and either what they are read from or its parts."""

    reading: HistoryReading
    source: object = None
    parts: tuple[Part, ...] = ()


class Steps(Protocol):
    """Runs steps; a context manager."""

    def __enter__(self) -> Steps: ...

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None: ...

    def for_executors(self, application: Application) -> Application:
        """The application, by the name under which the processes that run steps find it."""
        ...

    def scratch(self, work: Path) -> str | None:
        """Where tasks keep their databases: below the job's folder where that is on this machine, and so is cleaned up
        after tasks that are killed; ``None`` for where a machine keeps such things.
        """
        ...

    def run(self, step: BackfillStep, inputs: Sequence[Input], progress: Progress) -> list[str]:
        """Runs one; returns the reports of its tasks."""
        ...

    def each(self, calls: Sequence[Call]) -> list[int]:
        """Makes calls anywhere; gives their results."""
        ...

    def files(self, source: object, folder: Path) -> Files:
        """A source as files that any process can read."""
        ...


class LocalSteps:
    """Runs steps on this machine.

    :param processes: how many; 1 works in this process.
    """

    def __init__(self, processes: int | None) -> None:
        self._pool = Pool(processes or os.cpu_count() or 1)

    def __enter__(self) -> LocalSteps:
        self._pool.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *rest: object) -> None:
        self._pool.__exit__(kind, *rest)

    def for_executors(self, application: Application) -> Application:
        return application

    def scratch(self, work: Path) -> str | None:
        return str(work)

    def run(self, step: BackfillStep, inputs: Sequence[Input], progress: Progress) -> list[str]:
        scratch = Path(step.work) / f"sorted-{step.number}"
        scratch.mkdir()
        parts = [(one.reading, part) for one in inputs for part in (one.parts or self._files(one.source).parts())]
        try:
            reading = [(read_part, (step, *part, str(scratch), at)) for at, part in enumerate(parts)]
            self._pool.run(reading, lambda done: progress("read parts", done, len(reading)))
            running = [(run_sorted, (step, task, str(scratch))) for task in range(step.tasks)]
            reports = self._pool.run(running, lambda done: progress("run tasks", done, len(running)))
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return [text for text in reports if text is not None]

    def each(self, calls: Sequence[Call]) -> list[int]:
        return self._pool.run(list(calls), lambda done: None)

    def files(self, source: object, folder: Path) -> Files:
        return self._files(source)

    @staticmethod
    def _files(source: object) -> Files:
        if isinstance(source, Files):
            return source
        raise ConfigError(f"{source!r} is read by Spark; use engine='spark', or files that pyarrow reads")


def read_part(step: BackfillStep, reading: HistoryReading, part: Part, scratch: str, number: int) -> int:
    """Reads and sorts a part of a history, for each task apart; gives how many records it has."""
    return sort_by_task(reading.records(part.batches(), number), scratch, number, RECORDS, BY_TIME)


def run_sorted(step: BackfillStep, task: int, scratch: str) -> str | None:
    """Runs a task over what was sorted for it; returns its report."""
    folder = Path(scratch) / str(task)
    runs = sorted(folder.iterdir()) if folder.is_dir() else []
    batches = merged_runs(runs, BY_TIME) if runs else iter(())
    reports = list(run_task(step, task, f"local{os.getpid()}", batches))
    return str(reports[-1].column("report")[0].as_py()) if reports else None


class SparkSteps:
    """Runs steps by a Spark session."""

    def __init__(self, session: object, modules: Sequence[str]) -> None:
        self._engine = SparkEngine(session, modules)
        self._session = self._engine.session

    def __enter__(self) -> SparkSteps:
        return self

    def __exit__(self, *_: object) -> None:
        """The session is the user's, or serves the next job."""

    def for_executors(self, application: Application) -> Application:
        return self._engine.send_code(application)

    def scratch(self, work: Path) -> str | None:
        return str(work) if self._session.sparkContext.master.startswith("local") else None

    def run(self, step: BackfillStep, inputs: Sequence[Input], progress: Progress) -> list[str]:
        progress("run tasks", 0, step.tasks)
        with explained(f"sub-topology {step.subtopology} did not run to its end"):
            rows = beginnings(self._session, step.tasks, RECORDS_SQL)
            for one in inputs:
                rows = rows.union(self._rows(one).through(one.reading.records, RECORDS_SQL))
            placed = rows.repartitionById(step.tasks, "task").sortWithinPartitions(*BY_TIME)
            reports = [row.report for row in placed.mapInArrow(begun(_running(step)), _REPORT_SQL).collect()]
        progress("run tasks", step.tasks, step.tasks)
        return reports

    def each(self, calls: Sequence[Call]) -> list[int]:
        if not calls:
            return []
        numbers = self._session.createDataFrame([(at,) for at in range(len(calls))], "at int")
        made = numbers.repartitionById(len(calls), "at").mapInArrow(_calling(calls), "at int, result long")
        with explained("changelogs were not written"):
            found = made.collect()
        results = {row.at: int(row.result) for row in found}
        return [results[at] for at in range(len(calls))]

    def files(self, source: object, folder: Path) -> Files:
        if isinstance(source, Files):
            return source
        self._engine.read(source).write.parquet(str(folder))
        return Files(str(folder), "parquet")

    def _rows(self, one: Input) -> SparkRows:
        return self._engine.of_parts(one.parts) if one.parts else self._engine.rows(one.source)


def _running(step: BackfillStep) -> Any:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task, attempt = task_and_attempt()
        return run_task(step, task, attempt, batches)

    return run


def _calling(calls: Sequence[Call]) -> Any:
    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = batch.column(0).to_pylist()
            results = [calls[number][0](*calls[number][1]) for number in numbers]
            yield pa.RecordBatch.from_pydict(
                {"at": pa.array(numbers, pa.int32()), "result": pa.array(results, pa.int64())}
            )

    return call
