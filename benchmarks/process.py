"""Runs one program once, and watches it from outside: its lines of progress, and how much memory it took.

Invariant: when ``run_program`` returns or raises, its process has ended.
"""

from __future__ import annotations

import contextlib
import re
import select
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

from benchmarks.cpu import cpu_seconds_by_thread
from benchmarks.figures import Point
from benchmarks.programs.job import PROGRESS, READS, Job
from benchmarks.settings import EXACTLY_ONCE
from tests.brokers.reaper import Process

ROOT = Path(__file__).parents[1]

SILENCE_S = 90.0
"""A program that reports nothing for so long hangs."""

_STOP_S = 30.0


class Run(NamedTuple):
    """What was seen of a program."""

    points: list[Point]
    """From the first record on."""
    peak_mb: float | None
    """``None`` without ``/proc``."""
    resident_mb: float | None
    """When all was done."""
    reads: int | None
    """Reads of stores, where they were counted."""
    threads: Mapping[str, float]
    """The CPU seconds of its threads, by name; see ``cpu_seconds_by_thread``."""


def run_program(
    command: Sequence[str], job: Job, records: int, *, then: Callable[[], None] | None = None, more: int = 0
) -> Run:
    """Starts a program, waits until it is done with so many records, and ends it; ``then`` makes ``more`` before.

    Raises ``RuntimeError`` with the end of the program's log when it stops early or hangs.
    """
    points: list[Point] = []
    reads: int | None = None
    with (
        tempfile.TemporaryFile() as log,
        running([*command, *job.arguments()], log.fileno()) as process,
    ):
        for line in lines(process, lambda: log_tail(log)):
            if line.startswith(f"{READS} "):
                reads = int(line.split()[1])
            point = point_of(line)
            if point is None:
                continue
            if job.guarantee == EXACTLY_ONCE and point.records > records:
                point = replace(
                    point, records=records
                )  # a transaction's mark takes an offset in an internal topic, too
            points.append(point)
            if then is not None and point.records == records:
                then()
                then, records = None, records + more
                continue
            if point.records > records:
                raise RuntimeError(f"{command[-1]} reports {point.records} of {records} records; it worked twice")
            if point.records == records:
                return Run(points, *memory_mb(process.pid), reads, cpu_seconds_by_thread(process.pid))
        raise RuntimeError(f"{command[-1]} ended with {process.wait()} before its work was done:\n{log_tail(log)}")


@contextlib.contextmanager
def running(command: Sequence[str], log: int, *, stdout: int = subprocess.PIPE) -> Iterator[subprocess.Popen[bytes]]:
    """A process for the length of a block, or until this one is killed; its standard error goes to a file."""
    process = Process(command, cwd=ROOT, stdout=stdout, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def lines(process: subprocess.Popen[bytes], tail: Callable[[], str]) -> Iterator[str]:
    """The lines that a process writes; ``RuntimeError`` with the end of its log when it writes none for too long."""
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    rest = b""
    deadline = time.monotonic() + SILENCE_S
    while True:
        if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise RuntimeError(f"a program reported nothing for {SILENCE_S:g} s; the end of its log:\n{tail()}")
        data = process.stdout.read1(65536)  # type: ignore[attr-defined]  # a BufferedReader, typed as IO
        if not data:
            return
        deadline = time.monotonic() + SILENCE_S
        *complete, rest = (rest + data).split(b"\n")
        for line in complete:
            yield line.decode()


def point_of(line: str) -> Point | None:
    """The progress that a line tells; ``None`` for another line."""
    word, _, numbers = line.partition(" ")
    return Point(*map(int, numbers.split())) if word == PROGRESS else None


def memory_mb(pid: int) -> tuple[float | None, float | None]:
    """How much memory a process has had at most, and has now."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return None, None
    found = dict(re.findall(r"^(VmHWM|VmRSS):\s+(\d+) kB$", status, re.MULTILINE))
    return int(found["VmHWM"]) / 1024, int(found["VmRSS"]) / 1024


def log_tail(log: IO[bytes]) -> str:
    """The end of a log."""
    log.seek(0)
    return log.read()[-4000:].decode(errors="replace")
