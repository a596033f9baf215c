"""Measures the time from when a record is due to be written until its result can be read, by rate and guarantee.

python -m benchmarks.latency [--rates 1000,20000] [--seconds 15] [--guarantees exactly_once_v2] [--only pykstreams]

A generator writes at a schedule and waits for nobody; each record carries the time at which it was due, so what waits
because something stands still counts as late, too. A reader of committed records takes the time of arrival on the same
clock. The work is the newest value of each key in a store without a cache, in one sub-topology, or behind a
repartition topic in two. ``nothing`` is the reader on the input topic: what generator, broker and reader take.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from benchmarks import settings
from benchmarks.cluster import Cluster, benchmark_cluster
from benchmarks.command_lines import whole_numbers
from benchmarks.commands import JAVA, OURS, commands, some
from benchmarks.percentiles import SHOWN, percentile
from benchmarks.process import lines, log_tail, running
from benchmarks.programs.job import Job
from benchmarks.programs.receive import FIRST, LATENCIES
from benchmarks.programs.schedule import SECOND_NS, value_at
from benchmarks.report import wide_console

COMMIT_INTERVAL_MS: Final = 100
NOTHING: Final = "nothing"
_LEAD_NS: Final = SECOND_NS
_GUARANTEES: Final = (settings.AT_LEAST_ONCE, settings.EXACTLY_ONCE)


@dataclass(frozen=True, slots=True)
class Case:
    """One row: a program at a rate."""

    program: str
    guarantee: str
    subtopologies: int
    rate: int


@dataclass(frozen=True, slots=True)
class Length:
    """How long a run is; the records of the warm-up are not looked at."""

    warm_up_s: int
    seconds: int

    def records(self, rate: int) -> int:
        return (self.warm_up_s + self.seconds) * rate


def main() -> int:
    """Returns the exit code."""
    given = _arguments()
    console = wide_console()
    programs = commands(given.only, console)
    length = Length(given.warm_up, given.seconds)
    table = _table(length, given.linger_ms)
    with benchmark_cluster() as cluster:
        # the broker's own JVM starts cold, too; no figure is taken from this run
        _measure(cluster, Case(NOTHING, "", 0, max(given.rates)), None, length, given.linger_ms)
        for rate in given.rates:
            late = _measure(cluster, Case(NOTHING, "", 0, rate), None, length, given.linger_ms)
            _add(table, console, Case(NOTHING, "", 0, rate), late)
            for guarantee in given.guarantees:
                for subtopologies in given.subtopologies:
                    for program, command in programs.items():
                        case = Case(program, guarantee, subtopologies, rate)
                        _add(table, console, case, _measure(cluster, case, command, length, given.linger_ms))
    console.print(table)
    return 0


def measured(latencies: Sequence[int], length: Length, rate: int) -> list[float]:
    """The latencies behind the warm-up in ms, the smallest first.

    >>> measured([9000, 2000, 1000], Length(warm_up_s=1, seconds=2), rate=1)
    [1.0, 2.0]
    """
    return sorted(late / 1000 for late in latencies[length.warm_up_s * rate :])


def _measure(
    cluster: Cluster, case: Case, command: Sequence[str] | None, length: Length, linger_ms: int
) -> list[float]:
    application_id = f"bench-{case.program}-relay-{case.guarantee.replace('_', '-')}-{case.subtopologies}-{case.rate}"
    source, sink = f"{application_id}-input", f"{application_id}-output"
    for topic in (source, sink):
        cluster.topics.create(topic)
    count = length.records(case.rate)
    python = [sys.executable, "-m"]
    place = [f"brokers={cluster.brokers}"]
    reading = [*place, f"topic={sink if command else source}", f"partitions={settings.PARTITIONS}", f"count={count}"]
    with ExitStack() as stack:
        state = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-state-"))
        log = stack.enter_context(tempfile.TemporaryFile())
        reader = stack.enter_context(running([*python, "benchmarks.programs.receive", *reading], log.fileno()))
        answers = lines(reader, lambda: log_tail(log))
        if command is not None:
            job = Job(
                workload="relay",
                brokers=cluster.brokers,
                application_id=application_id,
                source=source,
                sink=sink,
                measured=source,
                state_dir=state,
                commit_interval_ms=str(COMMIT_INTERVAL_MS),
                cache_bytes="0",
                linger_ms=str(linger_ms),
                guarantee=case.guarantee,
                size=str(case.subtopologies),
            )
            stack.enter_context(running([*command, *job.arguments()], log.fileno(), stdout=subprocess.DEVNULL))
        _send_one(cluster.brokers, source)
        _wait_for(answers, FIRST)
        schedule = [f"start_ns={time.time_ns() + _LEAD_NS}", f"rate={case.rate}", f"count={count}"]
        generate = [*python, "benchmarks.programs.generate", *place, f"topic={source}", *schedule]
        stack.enter_context(running(generate, log.fileno(), stdout=subprocess.DEVNULL))
        latencies = [int(late) for late in _wait_for(answers, LATENCIES).split()]
    cluster.topics.remove(application_id)
    return measured(latencies, length, case.rate)


def _send_one(brokers: str, topic: str) -> None:
    """Writes a record that is not measured, whose result says that the program works."""
    producer = Producer({"bootstrap.servers": brokers})
    producer.produce(topic, value_at(0), b"first")
    producer.flush(30)


def _wait_for(answers: Iterator[str], word: str) -> str:
    for line in answers:
        said, _, rest = line.partition(" ")
        if said == word:
            return rest
    raise RuntimeError(f"the reader ended before it said {word!r}")


def _table(length: Length, linger_ms: int) -> Table:
    table = Table(
        title=f"latency in ms over {length.seconds} s; commit interval {COMMIT_INTERVAL_MS} ms, linger {linger_ms} ms",
        title_justify="left",
    )
    for heading in ("records/s", "guarantee", "sub-topologies", "program"):
        table.add_column(heading, no_wrap=True)
    for percent in SHOWN:
        table.add_column(f"p{percent:g}", justify="right")
    table.add_column("most", justify="right")
    return table


def _add(table: Table, console: Console, case: Case, latencies: Sequence[float]) -> None:
    shown = [f"{percentile(latencies, percent):.1f}" for percent in (*SHOWN, 100)]
    where = (f"{case.rate:,}", case.guarantee, str(case.subtopologies or ""), case.program)
    table.add_row(*where, *shown)
    console.print(" ".join(filter(None, where)), "/".join(shown), "ms", highlight=False)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description=__doc__.splitlines()[0])
    parser.add_argument("--rates", type=whole_numbers, default=[1000, 20_000], help="records/s (default: 1000,20000)")
    parser.add_argument("--seconds", type=int, default=15, help="measured of each run (default: %(default)s)")
    parser.add_argument("--warm-up", type=int, default=10, help="seconds before (default: %(default)s)")
    parser.add_argument("--linger-ms", type=int, default=5, help="the programs' linger.ms (default: %(default)s)")
    parser.add_argument(
        "--guarantees",
        type=partial(some, _GUARANTEES),
        default=list(_GUARANTEES),
        help=f"some of {','.join(_GUARANTEES)} (default: both)",
    )
    parser.add_argument("--subtopologies", type=whole_numbers, default=[1, 2], help="1, 2 or 1,2 (default: 1,2)")
    parser.add_argument(
        "--only", type=partial(some, (OURS, JAVA)), default=[OURS, JAVA], help="one program (default: both)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
