"""Measures how the cost of a record grows with partitions, keys, values, workers and operators, each for itself.

python -m benchmarks.scale [--axes partitions,keys] [--records 300000] [--only pykstreams] [--figure scale.svg]

The work is w2 without a cache (JSON, an aggregate in RocksDB, its changelog), with 4 partitions, 100 000 keys, values
of 100 B and one worker where the axis does not say otherwise; operators are filters and mappings of strings in a chain
that changes nothing. CPU time is that of all workers over the second half of the records.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from rich.table import Table

from benchmarks.cluster import Cluster, benchmark_cluster
from benchmarks.commands import JAVA, OURS, commands, some
from benchmarks.drawing import draw, require_drawing
from benchmarks.figures import Point as Commit
from benchmarks.figures import measure
from benchmarks.programs.job import Job
from benchmarks.report import wide_console
from benchmarks.settings import KEYS, PARTITIONS
from benchmarks.topics.payloads import sized_events, string_events
from benchmarks.workers import run_workers

Costs = dict[str, dict[str, list[tuple[int, float]]]]
"""axis -> program -> (value on the axis, CPU us of a record)"""

COMMIT_INTERVAL_MS: Final = 200
_MOST_BYTES: Final = 500_000_000


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement: where it stands on all axes."""

    partitions: int = PARTITIONS
    keys: int = KEYS
    value_bytes: int = 100
    workers: int = 1
    operators: int = 0
    """In a chain; 0 for the aggregate."""

    def records(self, wanted: int) -> int:
        """How many are measured: fewer when values are so large that they would fill the disk, more when they are fast.

        >>> Point(value_bytes=10_000).records(300_000), Point(operators=1).records(300_000)
        (50000, 1200000)
        """
        return 4 * wanted if self.operators else min(wanted, _MOST_BYTES // self.value_bytes)


AXES: Final[Mapping[str, tuple[str, tuple[int, ...]]]] = {
    "partitions": ("partitions", (1, 4, 16, 64)),
    "keys": ("keys", (10_000, 100_000, 1_000_000, 10_000_000)),
    "values": ("value_bytes", (100, 1_000, 10_000)),
    "workers": ("workers", (1, 2)),
    "operators": ("operators", (1, 5, 20)),
}
"""Name -> (field of a point, its values)."""


def points(axis: str) -> list[tuple[int, Point]]:
    """The measurements along an axis.

    >>> [(value, point.workers) for value, point in points("workers")]
    [(1, 1), (2, 2)]
    """
    field, values = AXES[axis]
    return [(value, replace(Point(), **{field: value})) for value in values]


def main() -> int:
    """Returns the exit code."""
    given = _arguments()
    if given.figure is not None:
        require_drawing()
    console = wide_console()
    programs = commands(given.only, console)
    costs: Costs = {axis: {program: [] for program in programs} for axis in given.axes}
    with benchmark_cluster() as cluster:
        known: dict[tuple[str, Point], float] = {}
        for axis in given.axes:
            for value, point in points(axis):
                for program, command in programs.items():
                    if (program, point) not in known:
                        name = f"bench-{program}-scale-{axis}-{value}"
                        known[program, point] = _cost(cluster, command, name, point, given.records)
                    costs[axis][program].append((value, known[program, point]))
                    console.print(f"{axis} {value:,} {program}: {known[program, point]:.2f} us", highlight=False)
    console.print(table(costs))
    if given.figure is not None:
        draw(costs, given.figure)
    return 0


def second_half(points: Sequence[Commit]) -> Sequence[Commit]:
    """The points of a run from the last one before its middle, so that at least half of the records are in it.

    >>> [point.records for point in second_half([Commit(done, 0, 0) for done in (0, 2, 4, 9, 10)])]
    [4, 9, 10]
    """
    middle = points[-1].records / 2
    return points[max(place for place, point in enumerate(points) if point.records <= middle) :]


def table(costs: Costs) -> Table:
    """One row for each value on each axis."""
    drawn = Table(title="CPU us of a record", title_justify="left")
    drawn.add_column("axis")
    drawn.add_column("value", justify="right")
    programs = list(next(iter(costs.values())))
    for program in programs:
        drawn.add_column(program, justify="right")
    for axis, by_program in costs.items():
        for row in zip(*by_program.values(), strict=True):
            drawn.add_row(axis, f"{row[0][0]:,}", *(f"{cost:.2f}" for _, cost in row))
    return drawn


def _cost(cluster: Cluster, command: Sequence[str], application_id: str, point: Point, wanted: int) -> float:
    """Runs a program at a point, on topics of its own; gives the CPU us of a record."""
    records = point.records(wanted)
    source, sink = f"{application_id}-input", f"{application_id}-output"
    cluster.topics.create(source, partitions=point.partitions)
    cluster.topics.create(sink, partitions=point.partitions)
    events = string_events(records) if point.operators else sized_events(records, point.keys, point.value_bytes)
    cluster.topics.fill(source, events)
    with tempfile.TemporaryDirectory(prefix="bench-states-") as folder:
        job = Job(
            workload="chain" if point.operators else "w2-uncached",
            brokers=cluster.brokers,
            application_id=application_id,
            source=source,
            sink=sink,
            measured=source,
            state_dir=folder,
            commit_interval_ms=str(COMMIT_INTERVAL_MS),
            cache_bytes="0",
            size=str(point.operators),
        )
        seen = run_workers(command, job, point.workers, point.partitions, records)
    cluster.topics.remove(application_id)
    return measure(second_half(seen), whole=True)[1]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--axes", type=partial(some, list(AXES)), default=list(AXES), help=f"some of {','.join(AXES)} (default: all)"
    )
    parser.add_argument("--records", type=int, default=300_000, help="records of each point (default: %(default)s)")
    parser.add_argument(
        "--only", type=partial(some, (OURS, JAVA)), default=[OURS, JAVA], help="one program (default: both)"
    )
    parser.add_argument("--figure", type=Path, metavar="FILE", help="draw an SVG (needs pykstreams[bench])")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
