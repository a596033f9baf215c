"""What a program is told on its command line, and what it tells on its standard output.

The protocol is the same for Python and Java: arguments are ``name=value``; at the start and after every commit a line
``progress RECORDS WALL_NS CPU_NS`` says how many records are done with, and at which time and CPU time of the
process. State is flushed and output delivered at that moment, so the CPU time between two lines is that of the
records between them, and nothing has to be counted per record.

A program that is asked to count the reads of its stores writes a line ``reads COUNT`` before each of these.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from benchmarks import settings

PROGRESS, READS = "progress", "reads"

NO_METRICS = "none"
"""Neither counts nor clocks are summed up, as far as they can be left out."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a program."""

    workload: str
    brokers: str
    application_id: str
    source: str
    sink: str
    measured: str
    """The topics, joined by commas, whose committed offsets count; a record is done when it is done in all."""
    state_dir: str
    commit_interval_ms: str = str(settings.COMMIT_INTERVAL_MS)
    cache_bytes: str = str(settings.CACHE_BYTES)
    batch_bytes: str = str(settings.BATCH_BYTES)
    linger_ms: str = str(settings.LINGER_MS)
    guarantee: str = settings.AT_LEAST_ONCE
    registry: str = ""
    """The address of the schema registry."""
    size: str = "1"
    """Of a topology that comes in sizes: how many operators, stores or sub-topologies; of ``cycles`` the threshold."""
    count_reads: str = "no"
    """``yes`` in a run that is not timed."""
    metrics: str = "INFO"
    """``metrics.recording.level``, or ``NO_METRICS``."""
    http: str = ""
    """The port at which its stores are asked over HTTP; empty for no server."""

    @classmethod
    def from_arguments(cls, arguments: Iterable[str]) -> Job:
        """Reads a command line."""
        return cls(**dict(argument.split("=", 1) for argument in arguments))

    def arguments(self) -> list[str]:
        """Writes a command line."""
        return [f"{name}={value}" for name, value in asdict(self).items()]


class Progress:
    """Adds committed offsets up and reports them."""

    def __init__(self, measured: str) -> None:
        self._topics = measured.split(",")
        self._offsets: dict[tuple[str, int], int] = {}

    def committed(self, offsets: Iterable[tuple[str, int, int]]) -> None:
        """Reports after a commit of (topic, partition, next offset)."""
        for topic, partition, offset in offsets:
            if topic in self._topics:
                self._offsets[topic, partition] = offset
        report(sum(self._offsets.values()) // len(self._topics))


def report_reads(count: int) -> None:
    """Writes how many reads of stores there were, at once."""
    os.write(1, f"{READS} {count}\n".encode())


def report(records: int) -> None:
    """Writes a line of progress, at once."""
    line = f"{PROGRESS} {records} {time.time_ns()} {time.process_time_ns()}\n"
    os.write(1, line.encode())
