"""Stores that are built together: the tasks of several jobs, numbered through, so that one run of stages makes all.

A stage knows its job and the number of its task there; only what engines see are numbers of all tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pykstreams.bulk.stages.store_job import StoreJob


@dataclass(frozen=True)
class JobsTogether:
    """Jobs whose stages are the same; the tasks of the first one come first.

    >>> JobsTogether(()).tasks
    0
    """

    jobs: tuple[StoreJob, ...]

    @property
    def tasks(self) -> int:
        """How many tasks there are."""
        return sum(job.tasks for job in self.jobs)

    @property
    def firsts(self) -> list[int]:
        """The number of the first task of each job."""
        return [sum(job.tasks for job in self.jobs[:at]) for at in range(len(self.jobs))]

    def of_task(self, number: int) -> tuple[StoreJob, int]:
        """The job of a task, and the number of the first of its tasks."""
        first = 0
        for job in self.jobs:
            if number < first + job.tasks:
                return job, first
            first += job.tasks
        raise ValueError(f"task {number} is none of {first}")


def numbered(batches: Iterator[pa.RecordBatch], first: int) -> Iterator[pa.RecordBatch]:
    """Batches with a column ``task`` of a job, with the numbers of all tasks.

    :param first: the number of the first task of the job.
    """
    for batch in batches:
        at = batch.schema.get_field_index("task")
        yield batch.set_column(at, batch.schema.field(at), pc.add(batch.column(at), pa.scalar(first, pa.int32())))
