"""Measures how much memory a worker takes per task and per store.

python -m benchmarks.footprint [--tasks 1,10,100] [--stores 1,5,20] [--megabytes 400] [--only pykstreams]

With more tasks the state stays as large: so many megabytes in values of 1 KB, each key once, no cache. So what grows
is what a task takes, write buffers of its store included. With more stores, four tasks count the same 100 000 events
once in each store.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from rich.table import Table

from benchmarks.cluster import Cluster, benchmark_cluster
from benchmarks.command_lines import whole_numbers
from benchmarks.commands import JAVA, OURS, commands, some
from benchmarks.process import Run, run_program
from benchmarks.programs.job import Job
from benchmarks.report import wide_console
from benchmarks.settings import PARTITIONS
from benchmarks.topics.payloads import Payload, customer, json_events

VALUE_BYTES: Final = 1000
_EVENTS: Final = 100_000
_BASE_MS: Final = 1_700_000_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table."""

    workload: str
    tasks: int
    stores: int
    records: int

    def payloads(self) -> Iterator[Payload]:
        return rows(self.records) if self.workload == "relay" else json_events(self.records)


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.footprint", description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=whole_numbers, default=[1, 10, 100], help="(default: 1,10,100)")
    parser.add_argument("--stores", type=whole_numbers, default=[1, 5, 20], help="of each task (default: 1,5,20)")
    parser.add_argument("--megabytes", type=int, default=400, help="of all tasks (default: %(default)s)")
    parser.add_argument(
        "--only", type=partial(some, (OURS, JAVA)), default=[OURS, JAVA], help="one program (default: both)"
    )
    given = parser.parse_args()
    console = wide_console()
    programs = commands(given.only, console)
    records = given.megabytes * 1_000_000 // VALUE_BYTES
    cases = [Case("relay", tasks, 1, records) for tasks in given.tasks]
    cases += [Case("stores", PARTITIONS, stores, _EVENTS) for stores in given.stores]
    table = Table(title="memory of a worker in MB, when all is done and at most", title_justify="left")
    for heading in ("records", "tasks", "stores of a task", "program", "MB", "at most"):
        table.add_column(heading, justify="left" if heading == "program" else "right")
    with benchmark_cluster() as cluster:
        for number, case in enumerate(cases):
            source = f"bench-input-footprint-{number}"
            cluster.topics.create(source, partitions=case.tasks)
            cluster.topics.fill(source, case.payloads())
            for program, command in programs.items():
                run = _run(cluster, case, command, f"bench-{program}-footprint-{number}", source)
                numbers = (f"{case.records:,}", str(case.tasks), str(case.stores), program)
                memory = (f"{run.resident_mb or 0:.0f}", f"{run.peak_mb or 0:.0f}")
                table.add_row(*numbers, *memory)
                console.print(*numbers, "/".join(memory), "MB", highlight=False)
            cluster.topics.remove(source)
    console.print(table)
    return 0


def rows(count: int) -> Iterator[Payload]:
    """Rows of 1 KB, each key once."""
    for number in range(count):
        yield customer(number), b"%0*d" % (VALUE_BYTES, number), _BASE_MS + number


def _run(cluster: Cluster, case: Case, command: Sequence[str], application_id: str, source: str) -> Run:
    sink = f"{application_id}-output"
    cluster.topics.create(sink)
    with tempfile.TemporaryDirectory(prefix="bench-state-") as state:
        job = Job(
            workload=case.workload,
            brokers=cluster.brokers,
            application_id=application_id,
            source=source,
            sink=sink,
            measured=source,
            state_dir=state,
            cache_bytes="0",
            size=str(case.stores),
        )
        run = run_program(command, job, case.records)
    cluster.topics.remove(application_id)
    return run


if __name__ == "__main__":
    sys.exit(main())
