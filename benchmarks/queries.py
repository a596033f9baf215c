"""Measures what questions over HTTP cost the processing of the worker that answers them, and how long they take.

python -m benchmarks.queries [--rates 0,1000] [--workload w2] [--records 2000000] [--runs 3]

One worker processes as fast as it can, and is asked for keys of its store meanwhile, so many times a second; the rates
take turns. A question is asked at a schedule, by a process of its own, over connections that are kept: one that comes
late because the worker, or the asking process, is busy counts as late from when it was due. ``of records/s`` is against
the run of the same round with the first rate, which is 0: nobody asks.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from rich.table import Table

from benchmarks.cluster import benchmark_cluster
from benchmarks.commands import OURS, commands
from benchmarks.figures import Figures, middle
from benchmarks.numbers import whole_numbers
from benchmarks.percentiles import SHOWN, percentile
from benchmarks.process import lines, log_tail, running
from benchmarks.programs.ask import LATENCIES, STATUSES
from benchmarks.report import wide_console
from benchmarks.runs import Runs
from benchmarks.settings import KEYS
from benchmarks.workloads import WORKLOADS
from tests.brokers.brokers import free_ports

STORES: Final = {"w2": "totals", "w2-evicting": "totals", "w2-uncached": "totals"}
"""The store that is asked, by workload."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of the questions of a run; none when nobody asked."""

    statuses: str = ""
    latencies_ms: Sequence[float] = ()
    """The smallest first."""


def main() -> int:
    """Returns the exit code."""
    given = _arguments()
    console = wide_console()
    command = commands([OURS], console)[OURS]
    workload = WORKLOADS[given.workload]
    figures: dict[int, list[Figures]] = {rate: [] for rate in given.rates}
    asked: dict[int, list[Asked]] = {rate: [] for rate in given.rates}
    with benchmark_cluster() as cluster:
        for topic, payloads in workload.inputs(given.records).items():
            console.print(f"filling {topic}", highlight=False)
            cluster.topics.create(topic)
            cluster.topics.fill(topic, payloads)
        for number in range(1, given.runs + 1):
            for rate in given.rates:
                (port,) = free_ports(1)
                with asking(port, STORES[given.workload], rate, given.connections) as answers:
                    name = f"bench-queries-{rate}-{number}"
                    run, _ = Runs(cluster, {"http": str(port)}).run(workload, command, name, given.records)
                    figures[rate].append(run)
                    asked[rate].append(told(answers))
                console.print(
                    f"{number}/{given.runs} {rate} requests/s: {run.records_per_second:,.0f} records/s, "
                    f"{run.cpu_seconds_per_million:.2f} CPU s/M; {asked[rate][-1].statuses}",
                    highlight=False,
                )
    console.print(table(figures, asked))
    return 0


@contextmanager
def asking(port: int, store: str, rate: int, connections: int) -> Iterator[Iterator[str]]:
    """A process that asks while there is somebody who answers; gives the lines that it writes."""
    if not rate:
        yield iter(())
        return
    with ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())
        given = [f"port={port}", f"store={store}", f"rate={rate}", f"keys={KEYS}", f"connections={connections}"]
        command = [sys.executable, "-m", "benchmarks.programs.ask", *given]
        process = stack.enter_context(running(command, log.fileno(), stdout=subprocess.PIPE))
        yield lines(process, lambda: log_tail(log))


def told(answers: Iterator[str]) -> Asked:
    """Reads what the asking process says at its end.

    >>> told(iter(["statuses 200=2", "latencies 3000 1000"]))
    Asked(statuses='200=2', latencies_ms=[1.0, 3.0])
    """
    found = dict(line.split(" ", 1) for line in answers if " " in line)
    if not found:
        return Asked()
    return Asked(found[STATUSES], sorted(int(late) / 1000 for late in found[LATENCIES].split()))


def table(figures: dict[int, list[Figures]], asked: dict[int, list[Asked]]) -> Table:
    """A row for each rate: medians of its runs, and the latencies of all of them together, in ms."""
    drawn = Table(title="questions beside processing, latencies in ms", title_justify="left")
    for heading in ("requests/s", "records/s", "of records/s", "CPU s/M", *(f"p{one:g}" for one in SHOWN), "most"):
        drawn.add_column(heading, justify="right")
    drawn.add_column("answers")
    idle = next(iter(figures.values()))
    for rate, runs in figures.items():
        share = middle(one.records_per_second / other.records_per_second for one, other in zip(runs, idle, strict=True))
        late = sorted(one for answers in asked[rate] for one in answers.latencies_ms)
        drawn.add_row(
            f"{rate:,}",
            f"{middle(run.records_per_second for run in runs) or 0:,.0f}",
            f"{share or 0:.2f}",
            f"{middle(run.cpu_seconds_per_million for run in runs) or 0:.2f}",
            *(f"{percentile(late, percent):.1f}" if late else "" for percent in (*SHOWN, 100)),
            asked[rate][-1].statuses,
        )
    return drawn


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queries", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--rates", type=whole_numbers, default=[0, 1000], help="requests/s, the first one to compare with (0,1000)"
    )
    parser.add_argument("--workload", choices=STORES, default="w2", help="what is processed (default: %(default)s)")
    parser.add_argument("--records", type=int, default=2_000_000, help="records per run (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each rate (default: %(default)s)")
    parser.add_argument("--connections", type=int, default=16, help="connections that are kept (default: %(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
