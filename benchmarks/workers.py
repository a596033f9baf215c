"""Runs one or more workers of an application, and watches from outside what their group has committed.

Invariant: when ``run_workers`` returns or raises, its processes have ended.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from benchmarks.cpu import cpu_seconds_of
from benchmarks.figures import Point
from benchmarks.process import SILENCE_S, log_tail, running
from benchmarks.programs.job import Job

_PAUSE_S: Final = 0.02
_TIMEOUT_S: Final = 30


def run_workers(command: Sequence[str], job: Job, workers: int, partitions: int, records: int) -> list[Point]:
    """Starts workers with a state directory each, and waits until so many records of the source are committed.

    The CPU time of a point is that of all workers. Raises ``RuntimeError`` with the end of the log when one stops
    early, or when nothing is committed for too long.
    """
    points = [Point(0, time.time_ns(), 0)]
    places = [TopicPartition(job.source, number) for number in range(partitions)]
    with ExitStack() as stack:
        log = stack.enter_context(tempfile.TemporaryFile())
        processes = []
        for _ in range(workers):
            state = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-state-", dir=job.state_dir))
            # a file, because nobody reads what they report
            output = stack.enter_context(tempfile.TemporaryFile())
            arguments = replace(job, state_dir=state).arguments()
            processes.append(stack.enter_context(running([*command, *arguments], log.fileno(), stdout=output.fileno())))
        consumer = Consumer({"bootstrap.servers": job.brokers, "group.id": job.application_id})
        stack.callback(consumer.close)
        pids = [process.pid for process in processes]
        deadline = time.monotonic() + SILENCE_S
        while points[-1].records < records:
            if any(process.poll() is not None for process in processes) or time.monotonic() > deadline:
                done = f"{points[-1].records} of {records} records"
                raise RuntimeError(f"{command[-1]} ended or hung after {done}:\n{log_tail(log)}")
            found = consumer.committed(places, timeout=_TIMEOUT_S)
            done_now = sum(max(0, place.offset) for place in found)
            if done_now > points[-1].records:
                points.append(Point(done_now, time.time_ns(), int(cpu_seconds_of(pids) * 1e9)))
                deadline = time.monotonic() + SILENCE_S
            time.sleep(_PAUSE_S)
    return points
