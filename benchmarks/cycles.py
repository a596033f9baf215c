"""Watches the memory of workers whose users' functions leave objects in cycles, for an hour.

python -m benchmarks.cycles [--minutes 60] [--rate 2000] [--collect-after 50000,500000]

Each record becomes a basket of lines that know their basket, with about 2 KB of text in all: nothing frees them but
the collector. One worker for each threshold of the collector reads the same topic beside the others, and keeps the
newest value of 10 000 keys in a store with a cache; 50 000 is what ``KafkaStreams.run`` sets. On Linux only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import IO, Final

from rich.console import Console
from rich.table import Table

from benchmarks.cluster import Cluster, benchmark_cluster
from benchmarks.command_lines import whole_numbers
from benchmarks.commands import OURS, commands
from benchmarks.figures import Point
from benchmarks.process import log_tail, memory_mb, point_of, running
from benchmarks.programs.job import Job
from benchmarks.programs.schedule import SECOND_NS
from benchmarks.report import wide_console

SOURCE: Final = "bench-input-cycles"
APPLICATION: Final = "bench-cycles"
PARTS: Final = 6
"""Of the whole time, each a column."""
_PAUSE_S: Final = 5.0
_LEAD_NS: Final = 5 * SECOND_NS
_PATIENCE_S: Final = 120.0


@dataclass(slots=True)
class Watched:
    """One worker, and what was seen of it."""

    collect_after: int
    process: subprocess.Popen[bytes]
    said: IO[bytes]
    """Its lines of progress, appended wherever they are read."""
    log: IO[bytes]
    resident_mb: list[float]

    def look(self) -> None:
        """Takes its memory down; ``RuntimeError`` when it has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(f"a worker ended with {self.process.returncode}:\n{log_tail(self.log)}")
        resident = memory_mb(self.process.pid)[1]
        if resident is not None:
            self.resident_mb.append(resident)

    def progress(self) -> Point:
        """Its newest commit."""
        self.said.seek(0)
        points = filter(None, map(point_of, self.said.read().decode().splitlines()))
        return max(points, key=lambda point: point.wall_ns, default=Point(0, 0, 0))


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cycles", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=int, default=60, help="(default: %(default)s)")
    parser.add_argument("--rate", type=int, default=2000, help="records/s (default: %(default)s)")
    parser.add_argument(
        "--collect-after",
        type=whole_numbers,
        default=[50_000, 500_000],
        help="thresholds of the collector, a worker each (default: 50000,500000)",
    )
    given = parser.parse_args()
    console = wide_console()
    command = commands([OURS], console)[OURS]
    with benchmark_cluster() as cluster:
        table, undone = _watch(cluster, command, given.collect_after, given.minutes * 60, given.rate, console)
        for name in (SOURCE, APPLICATION):
            cluster.topics.remove(name)
    console.print(table)
    if undone:
        console.print(f"{undone:,} records were not done {_PATIENCE_S:g} s after the last one", highlight=False)
    return 1 if undone else 0


def parts(samples: Sequence[float]) -> list[tuple[float, float]]:
    """(median, most) of each part of the time.

    >>> parts([1, 1, 3, 4, 5, 5, 6, 6, 7, 7, 8, 9])
    [(1.0, 1), (3.5, 4), (5.0, 5), (6.0, 6), (7.0, 7), (8.5, 9)]
    """
    bounds = [len(samples) * part // PARTS for part in range(PARTS + 1)]
    slices = [samples[first:last] for first, last in pairwise(bounds)]
    return [(median(each), max(each)) for each in slices if each]


def _watch(
    cluster: Cluster, command: Sequence[str], thresholds: Sequence[int], seconds: int, rate: int, console: Console
) -> tuple[Table, int]:
    """Returns the table, and how many records the slowest worker has not done."""
    count = seconds * rate
    cluster.topics.create(SOURCE)
    with ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())
        workers = [stack.enter_context(_worker(cluster, command, each)) for each in thresholds]
        generate = [sys.executable, "-m", "benchmarks.programs.generate", f"brokers={cluster.brokers}"]
        generate += [f"topic={SOURCE}", f"start_ns={time.time_ns() + _LEAD_NS}", f"rate={rate}", f"count={count}"]
        generator = stack.enter_context(running(generate, log.fileno(), stdout=subprocess.DEVNULL))
        began = told = time.monotonic()
        while (now := time.monotonic()) < began + seconds + _PATIENCE_S:
            time.sleep(_PAUSE_S)
            for worker in workers:
                worker.look()
            if generator.poll() not in {None, 0}:
                raise RuntimeError(f"the records could not be written:\n{log_tail(log)}")
            if now > told + 300:
                told = now
                seen = ", ".join(f"{worker.collect_after:,}: {worker.resident_mb[-1]:.0f} MB" for worker in workers)
                console.print(f"after {(now - began) / 60:.0f} min {seen}", highlight=False)
            if all(worker.progress().records >= count for worker in workers):
                break
        undone = count - min(worker.progress().records for worker in workers)
        return _table(workers, seconds, rate), undone


@contextmanager
def _worker(cluster: Cluster, command: Sequence[str], collect_after: int) -> Iterator[Watched]:
    application_id = f"{APPLICATION}-{collect_after}"
    cluster.topics.create(f"{application_id}-output")
    with (
        tempfile.TemporaryDirectory(prefix="bench-state-") as state,
        tempfile.TemporaryFile() as log,
        tempfile.TemporaryFile("a+b") as said,
    ):
        job = Job(
            workload="cycles",
            brokers=cluster.brokers,
            application_id=application_id,
            source=SOURCE,
            sink=f"{application_id}-output",
            measured=SOURCE,
            state_dir=state,
            size=str(collect_after),
        )
        with running([*command, *job.arguments()], log.fileno(), stdout=said.fileno()) as process:
            yield Watched(collect_after, process, said, log, [])


def _table(workers: Sequence[Watched], seconds: int, rate: int) -> Table:
    table = Table(
        title=f"resident MB, median and most of each of {PARTS} parts of {seconds / 60:g} min; {rate:,} records/s",
        title_justify="left",
    )
    table.add_column("threshold", justify="right")
    for part in range(1, PARTS + 1):
        table.add_column(f"part {part}", justify="right")
    table.add_column("CPU s/M records, idle time included", justify="right")
    for worker in workers:
        done = worker.progress()
        shown = [f"{middle:.0f} / {most:.0f}" for middle, most in parts(worker.resident_mb)]
        table.add_row(f"{worker.collect_after:,}", *shown, f"{done.cpu_ns / max(done.records, 1) / 1000:.1f}")
    return table


if __name__ == "__main__":
    sys.exit(main())
