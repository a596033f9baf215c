"""Measures the time from the start of a process to its first record: without state, restoring it, and finding it.

python -m benchmarks.start [--rows 500000] [--runs 3] [--only pykstreams]

A record waits in the input topic; the time ends when its result can be read. The state is one store of so many rows
over four tasks: first it is restored from its changelog, then, after an orderly stop, it is there on disk.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition
from rich.table import Table

from benchmarks import settings
from benchmarks.cluster import Cluster, benchmark_cluster
from benchmarks.commands import JAVA, OURS, commands, some
from benchmarks.process import log_tail, running
from benchmarks.programs.job import Job
from benchmarks.report import wide_console
from benchmarks.topics.payloads import totals

STATELESS, RESTORED, FOUND = "without state", "restored", "on disk"
_PATIENCE_S: Final = 120.0


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.start", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500_000, help="of the state (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each program (default: %(default)s)")
    parser.add_argument(
        "--only", type=partial(some, (OURS, JAVA)), default=[OURS, JAVA], help="one program (default: both)"
    )
    given = parser.parse_args()
    console = wide_console()
    programs = commands(given.only, console)
    times: dict[tuple[str, str], list[float]] = {}
    with benchmark_cluster() as cluster:
        for number in range(given.runs):
            for program, command in programs.items():
                for way, seconds in _starts(cluster, command, f"bench-{program}-start-{number}", given.rows).items():
                    times.setdefault((way, program), []).append(seconds)
                    console.print(f"{number + 1}/{given.runs} {program}, {way}: {seconds:.2f} s", highlight=False)
    console.print(drawn(times, given.rows))
    return 0


def drawn(times: dict[tuple[str, str], list[float]], rows: int) -> Table:
    """One row for each way to start, with the medians of all programs."""
    table = Table(title=f"s from the start of the process to the first record; state of {rows:,} rows")
    programs = list(dict.fromkeys(program for _, program in times))
    table.add_column("state")
    for program in programs:
        table.add_column(program, justify="right")
        table.add_column("of the runs", justify="right")
    for way in (STATELESS, RESTORED, FOUND):
        cells = []
        for program in programs:
            runs = times[way, program]
            cells += [f"{median(runs):.2f}", " ".join(f"{run:.2f}" for run in runs)]
        table.add_row(way, *cells)
    return table


def _starts(cluster: Cluster, command: Sequence[str], name: str, rows: int) -> dict[str, float]:
    """Starts a program without state, and twice with the same."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="bench-state-") as state:
        job = partial(Job, brokers=cluster.brokers, measured=f"{name}-input", state_dir=state)
        plain = job(workload="chain", application_id=f"{name}-plain", source=f"{name}-input", sink=f"{name}-output")
        stateful = job(workload="relay", application_id=name, source=f"{name}-input", sink=f"{name}-relayed")
        for topic in (plain.source, plain.sink, stateful.sink):
            cluster.topics.create(topic)
        changelog = f"{name}-newest-changelog"
        cluster.topics.create(changelog, compacted=True)
        cluster.topics.fill(changelog, totals(rows))
        for way, each in ((STATELESS, plain), (RESTORED, stateful), (FOUND, stateful)):
            found[way] = _first_record(command, each)
    cluster.topics.remove(name)
    return found


def _first_record(command: Sequence[str], job: Job) -> float:
    """Starts a process, and waits for the result of a record that was written before."""
    producer = Producer({"bootstrap.servers": job.brokers})
    producer.produce(job.source, b"a record", b"key")
    producer.flush(30)
    consumer = Consumer({"bootstrap.servers": job.brokers, "group.id": "start"})
    try:
        ends = (TopicPartition(job.sink, number) for number in range(settings.PARTITIONS))
        consumer.assign([_at_end(consumer, end) for end in ends])
        with (
            tempfile.TemporaryFile() as log,
            running([*command, *job.arguments()], log.fileno(), stdout=subprocess.DEVNULL) as process,
        ):
            began = time.perf_counter()
            while True:
                message = consumer.poll(0.05)
                took = time.perf_counter() - began
                if message is not None and message.error() is None:
                    return took
                if process.poll() is not None or took > _PATIENCE_S:
                    raise RuntimeError(f"{command[-1]} gave no result in {took:.0f} s:\n{log_tail(log)}")
    finally:
        consumer.close()


def _at_end(consumer: Consumer, place: TopicPartition) -> TopicPartition:
    return TopicPartition(place.topic, place.partition, consumer.get_watermark_offsets(place, timeout=30)[1])


if __name__ == "__main__":
    sys.exit(main())
