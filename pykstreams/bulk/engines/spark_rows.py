"""Rows of a source on Spark: what a stage makes of them becomes a DataFrame.

Rows that have parts are read inside of the tasks, by the code that reads them without Spark; they never are a DataFrame
themselves. Those of a DataFrame have its partitions for parts, and are in order as far as Spark keeps one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa

from pykstreams.bulk.sources.sources import Part
from pykstreams.core.errors import ConfigError

Stage: TypeAlias = Callable[[Iterator[pa.RecordBatch], int], Iterator[pa.RecordBatch]]
"""(batches of a part, the number of the part) -> batches"""

_TASKS_PER_CORE: Final = 8


class SparkRows(Protocol):
    """The rows of a source."""

    @property
    def schema(self) -> pa.Schema | None:
        """Their columns; ``None`` where each batch tells its own."""
        ...

    def count(self) -> int:
        """How many there are."""
        ...

    def sampled(self, share: float) -> SparkRows:
        """About so many of them."""
        ...

    def through(self, stage: Stage, sql: str) -> Any:
        """A DataFrame of what a stage makes of each part.

        :param sql: its columns.
        """
        ...


@dataclass(frozen=True)
class FrameRows:
    """The rows of a DataFrame."""

    frame: Any

    @property
    def schema(self) -> pa.Schema | None:
        from pyspark.sql.pandas.types import to_arrow_schema

        return to_arrow_schema(self.frame.schema, timezone="UTC")

    def count(self) -> int:
        return int(self.frame.count())

    def sampled(self, share: float) -> FrameRows:
        return FrameRows(self.frame.sample(share, seed=0))

    def through(self, stage: Stage, sql: str) -> Any:
        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return stage(batches, task_and_attempt()[0])

        return self.frame.mapInArrow(run, sql)


@dataclass(frozen=True)
class PartRows:
    """The rows of parts.

    :param every: how many rows are passed over for each one that is taken, and that one.
    """

    session: Any
    parts: Sequence[Part]
    every: int = 1

    @property
    def schema(self) -> pa.Schema | None:
        return self.parts[0].schema if self.parts else None

    def count(self) -> int:
        known = [part.rows for part in self.parts]
        if None not in known:
            return sum(rows or 0 for rows in known)
        return sum(row.rows for row in self.through(_counted, "rows long").collect())

    def sampled(self, share: float) -> PartRows:
        return replace(self, every=round(1 / share))

    def through(self, stage: Stage, sql: str) -> Any:
        parts, every, session = self.parts, self.every, self.session
        tasks = max(1, min(len(parts), _TASKS_PER_CORE * session.sparkContext.defaultParallelism))
        rows = [(at, at * tasks // len(parts)) for at in range(len(parts))]
        numbers = session.createDataFrame(rows, "part int, task int").repartitionById(tasks, "task")

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from stage(_every(parts[number].batches(), every), number)

        return numbers.mapInArrow(run, sql)


_FIRST: Final = -(2**63)


def beginnings(session: Any, tasks: int, sql: str) -> Any:
    """A row for each task, which comes first of all its rows, and which ``begun`` takes away again.

    Spark leaves out tasks of which it finds that they get nothing, and these have something to report, too.

    :param sql: the columns, with ``task`` and ``time`` among them; they are sorted by time, or by others, nulls first.
    """
    return session.createDataFrame([{"task": at, "time": _FIRST} for at in range(tasks)], sql)


def begun(stage: Callable[[Iterator[pa.RecordBatch]], Any]) -> Callable[[Iterator[pa.RecordBatch]], Any]:
    """A stage that gets all rows of a task but the first."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: Iterator[pa.RecordBatch] = stage(_without_first(batches))
        return found

    return run


def _without_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for at, batch in enumerate(batches):
        yield batch if at else batch.slice(1)


def task_and_attempt() -> tuple[int, str]:
    """The number of the task of Spark that this is called in, and what tells the attempt from others."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        raise ConfigError("a stage that writes ran outside of a Spark task")
    return context.partitionId(), f"a{context.taskAttemptId()}"


def _every(batches: Iterator[pa.RecordBatch], step: int) -> Iterator[pa.RecordBatch]:
    if step == 1:
        yield from batches
        return
    seen = 0
    for batch in batches:
        yield batch.take(pa.array(range(-seen % step, batch.num_rows, step), pa.int64()))
        seen += batch.num_rows


def _counted(batches: Iterable[pa.RecordBatch], number: int) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"rows": pa.array([sum(batch.num_rows for batch in batches)], pa.int64())})
