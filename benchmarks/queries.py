"""Measures what questions over HTTP cost the processing of the worker that answers them, and how long they take.

python -m benchmarks.queries [--rates 0,1000] [--workload w2] [--records 2000000] [--runs 3]

One worker processes as fast as it can, and is asked for keys of its store meanwhile, so many times a second; the rates
take turns. A question is asked at a schedule, by a process of its own, over connections that are kept: one that comes
late because the worker, or the asking process, is busy counts as late from when it was due. ``of records/s`` is against
the run of the same round with the first rate, which is 0: nobody asks.

Questions cost a small machine more than the worker: the process that asks and the one that serves HTTP run beside it.
So in each round the same questions also go to another worker, which has nothing to do; what is lost then is not the
worker's loss. ``of elsewhere`` is against that run.
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

from benchmarks.cluster import Cluster, benchmark_cluster
from benchmarks.command_lines import whole_numbers
from benchmarks.commands import OURS, commands
from benchmarks.figures import Figures, middle
from benchmarks.percentiles import SHOWN, percentile
from benchmarks.process import lines, log_tail, running
from benchmarks.programs.ask import LATENCIES, STATUSES
from benchmarks.programs.job import Job
from benchmarks.report import wide_console
from benchmarks.runs import Runs
from benchmarks.settings import KEYS
from benchmarks.workloads import WORKLOADS, Workload
from tests.brokers.ports import free_ports

STORES: Final = {"w2": "totals", "w2-evicting": "totals", "w2-uncached": "totals"}
"""The store that is asked, by workload."""


@dataclass(frozen=True, slots=True)
class Case:
    """So many questions a second, of the worker that is measured or of another one."""

    rate: int
    elsewhere: bool = False

    def __str__(self) -> str:
        return f"{self.rate:,} requests/s{' of another worker' if self.elsewhere else ''}"


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
    cases = [case for rate in given.rates for case in ([Case(rate, True)] if rate else []) + [Case(rate)]]
    figures: dict[Case, list[Figures]] = {case: [] for case in cases}
    asked: dict[Case, list[Asked]] = {case: [] for case in cases}
    with benchmark_cluster() as cluster:
        for topic, payloads in workload.inputs(given.records).items():
            console.print(f"filling {topic}", highlight=False)
            cluster.topics.create(topic)
            cluster.topics.fill(topic, payloads)
        for number in range(1, given.runs + 1):
            for case in cases:
                port, other = free_ports(2)
                name = f"bench-queries-{cases.index(case)}-{number}"
                with ExitStack() as stack:
                    if case.elsewhere:
                        stack.enter_context(idle_worker(cluster, workload, command, name, other))
                    at = other if case.elsewhere else port
                    answers = stack.enter_context(asking(at, STORES[given.workload], case.rate, given.connections))
                    run, _ = Runs(cluster, {"http": str(port)}).run(workload, command, name, given.records)
                    figures[case].append(run)
                    if not case.elsewhere:
                        asked[case].append(told(answers))
                told_of = asked[case][-1].statuses if asked[case] else ""
                console.print(
                    f"{number}/{given.runs} {case}: {run.records_per_second:,.0f} records/s, "
                    f"{run.cpu_seconds_per_million:.2f} CPU s/M; {told_of}",
                    highlight=False,
                )
    console.print(table(figures, asked))
    return 0


@contextmanager
def idle_worker(cluster: Cluster, workload: Workload, command: Sequence[str], name: str, port: int) -> Iterator[None]:
    """A worker of the same topology at a port, which has no input."""
    application_id = f"{name}-elsewhere"
    cluster.topics.create(f"{application_id}-input")
    workload.prepare(cluster.topics, application_id, 0)
    with ExitStack() as stack:
        job = Job(
            workload=workload.name,
            brokers=cluster.brokers,
            application_id=application_id,
            source=f"{application_id}-input",
            sink=f"{application_id}-output",
            measured=f"{application_id}-input",
            state_dir=stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-state-")),
            http=str(port),
        )
        log = stack.enter_context(tempfile.TemporaryFile())
        stack.enter_context(running([*command, *job.arguments()], log.fileno()))
        yield


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


def table(figures: dict[Case, list[Figures]], asked: dict[Case, list[Asked]]) -> Table:
    """A row for each case: medians of its runs, and the latencies of all of them together, in ms."""
    drawn = Table(title="questions beside processing, latencies in ms", title_justify="left")
    for heading in (
        "requests/s",
        "records/s",
        "of records/s",
        "of elsewhere",
        "CPU s/M",
        *(f"p{one:g}" for one in SHOWN),
        "most",
    ):
        drawn.add_column(heading, justify="right")
    drawn.add_column("answers")
    idle = next(iter(figures.values()))
    for case, runs in figures.items():
        late = sorted(one for answers in asked[case] for one in answers.latencies_ms)
        drawn.add_row(
            str(case),
            f"{middle(run.records_per_second for run in runs) or 0:,.0f}",
            _share(runs, idle),
            _share(runs, figures.get(Case(case.rate, True), [])),
            f"{middle(run.cpu_seconds_per_million for run in runs) or 0:.2f}",
            *(f"{percentile(late, percent):.1f}" if late else "" for percent in (*SHOWN, 100)),
            asked[case][-1].statuses if asked[case] else "",
        )
    return drawn


def _share(runs: Sequence[Figures], others: Sequence[Figures]) -> str:
    found = middle(one.records_per_second / other.records_per_second for one, other in zip(runs, others, strict=False))
    return "" if found is None else f"{found:.2f}"


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
