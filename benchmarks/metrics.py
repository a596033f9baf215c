"""Measures what metrics cost: a workload without them, at INFO and at DEBUG, in turn.

python -m benchmarks.metrics [--workload w1-json] [--levels none,INFO,DEBUG] [--records 2000000] [--runs 5]

Without them, the methods that sum metrics up do nothing; a worker calls them, and looks at the clock for each batch,
all the same. ``of CPU`` is against the run of the same round with the first level.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from rich.table import Table

from benchmarks.cluster import benchmark_cluster
from benchmarks.commands import OURS, commands, some
from benchmarks.figures import Figures, middle, ratio
from benchmarks.programs.job import NO_METRICS
from benchmarks.report import wide_console
from benchmarks.runs import Runs
from benchmarks.workloads import WORKLOADS

LEVELS: Final = (NO_METRICS, "INFO", "DEBUG", "TRACE")


def main() -> int:
    """Returns the exit code."""
    given = _arguments()
    console = wide_console()
    command = commands([OURS], console)[OURS]
    workload = WORKLOADS[given.workload]
    found: dict[str, list[Figures]] = {level: [] for level in given.levels}
    with benchmark_cluster() as cluster:
        for topic, payloads in workload.inputs(given.records).items():
            console.print(f"filling {topic}", highlight=False)
            cluster.topics.create(topic)
            cluster.topics.fill(topic, payloads)
        for number in range(1, given.runs + 1):
            for level, runs in found.items():
                name = f"bench-metrics-{level.lower()}-{number}"
                figures, _ = Runs(cluster, {"metrics": level}).run(workload, command, name, given.records)
                runs.append(figures)
                console.print(
                    f"{number}/{given.runs} {level}: {figures.cpu_seconds_per_million:.2f} CPU s/M records",
                    highlight=False,
                )
    console.print(table(workload.name, found))
    return 0


def table(workload: str, found: Mapping[str, Sequence[Figures]]) -> Table:
    """A row for each level: medians of its runs, and its CPU against the first level."""
    drawn = Table(title=f"{workload} by metrics.recording.level", title_justify="left")
    drawn.add_column("level")
    for heading in ("records/s", "CPU s/M", "of the runs", "of CPU"):
        drawn.add_column(heading, justify="right")
    first = next(iter(found.values()))
    for level, runs in found.items():
        drawn.add_row(
            level,
            f"{middle(run.records_per_second for run in runs) or 0:,.0f}",
            f"{middle(run.cpu_seconds_per_million for run in runs) or 0:.2f}",
            " ".join(f"{run.cpu_seconds_per_million:.2f}" for run in runs),
            f"{ratio(runs, first) or 0:.3f}",
        )
    return drawn


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metrics", description=__doc__.splitlines()[0])
    plain = [name for name, one in WORKLOADS.items() if one.updates is None and not one.restores]
    parser.add_argument("--workload", choices=plain, default="w1-json", help="what is processed (default: %(default)s)")
    parser.add_argument(
        "--levels", type=partial(some, LEVELS), default=list(LEVELS[:3]), help="the first one to compare with"
    )
    parser.add_argument("--records", type=int, default=2_000_000, help="records per run (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="runs of each level (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
