"""Measures what metrics cost a record on its path through a task, without the clients: INFO and DEBUG in turn.

python -m benchmarks.record_path [--records 4000] [--batch 200] [--rounds 150] [--record-ns 5400]

One process runs the pipeline of w1-json in a task for each level: messages as the consumer makes them go in, in batches
as large as a worker takes them, and what comes out is dropped. Rounds of all levels take turns, and the lowest CPU time
of each level counts: a machine whose speed goes up and down by a tenth, which whole runs show (``benchmarks.metrics``),
is equally fast for both in some of them. With ``--record-ns``, the CPU of a whole record of that workload with the
clients (CPU seconds per million times 1,000), the difference is a share of that, too.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

from confluent_kafka import TIMESTAMP_CREATE_TIME, Message
from rich.table import Table

from benchmarks.programs.topologies import filter_map_json
from benchmarks.report import wide_console
from benchmarks.workloads import WORKLOADS
from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import RecordingLevel, StreamsMetrics
from pykstreams.runtime.clients.consumers.messages import RecordMessage
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.runtime.worker.turns import LOOK_EVERY
from pykstreams.state.interfaces.record_cache import RecordCache

LEVELS: Final = (RecordingLevel.INFO, RecordingLevel.DEBUG)
SOURCE: Final = TopicPartition("in", 0)


class _Nowhere:
    """A producer that drops what it is given."""

    produce: Any = staticmethod(chain)  # in C and without a frame, as the client's

    def poll(self, timeout_s: float, /) -> int:
        return 0

    def flush(self, timeout_s: float, /) -> int:
        return 0


def main() -> int:
    """Returns the exit code."""
    given = _arguments()
    console = wide_console()
    batches_of = _source_of_batches(given.records, given.batch)
    tasks = {level: _task(level) for level in LEVELS}
    spent: dict[RecordingLevel, list[float]] = {level: [] for level in LEVELS}
    for number in range(given.rounds):
        batches = batches_of(number)
        for level, task in tasks.items():
            spent[level].append(_cpu_ns(task, batches) / given.records)
    console.print(table(spent, given.record_ns))
    return 0


def table(spent: dict[RecordingLevel, list[float]], record_ns: float | None) -> Table:
    """A row for each level: the lowest CPU time, that of half of the rounds, and what it has on the first level."""
    drawn = Table(title="the path of a record of w1-json, by metrics.recording.level", title_justify="left")
    drawn.add_column("level")
    for heading in ("CPU ns, lowest", "median", "more", "of a whole record"):
        drawn.add_column(heading, justify="right")
    least = min(spent[LEVELS[0]])
    for level, found in spent.items():
        lowest = min(found)
        share = "" if record_ns is None else f"{(lowest - least) / record_ns:.1%}"
        median = sorted(found)[len(found) // 2]
        drawn.add_row(level.name, f"{lowest:.0f}", f"{median:.0f}", f"{lowest - least:.0f}", share)
    return drawn


def _task(level: RecordingLevel) -> Task:
    config = StreamsConfig({"application.id": "path", "bootstrap.servers": "localhost:9092"})
    part = filter_map_json(SOURCE.topic, "out").plan(config).subtopologies[0]
    task = Task(
        TaskId(part.id, 0),
        part,
        [SOURCE],
        TaskParts(
            config=config,
            clock=SystemClock(),
            collector=RecordCollector(_Nowhere(), config=config, partition_count=lambda _: 1),
            cache=RecordCache(0),
            metrics=StreamsMetrics(level=level),
        ),
        InitialState(Path("unused")),
    )
    task.open_stores()
    task.start({})
    return task


def _source_of_batches(records: int, size: int) -> Callable[[int], Sequence[Sequence[RecordMessage]]]:
    """Returns what makes the messages of a round, whose offsets and times go on where those of the last one ended."""
    [payloads] = WORKLOADS["w1-json"].inputs(records).values()
    rows = [(key, value) for key, value, *_ in payloads]
    now_ms = time.time_ns() // 1_000_000

    def message(offset: int) -> RecordMessage:
        key, value = rows[offset % records]
        at = TIMESTAMP_CREATE_TIME, now_ms + offset // 100
        return cast("RecordMessage", Message(SOURCE.topic, 0, offset, key, value, None, None, at, 0))

    def batches(number: int) -> Sequence[Sequence[RecordMessage]]:
        messages = [message(offset) for offset in range(number * records, (number + 1) * records)]
        return [messages[first : first + size] for first in range(0, len(messages), size)]

    return batches


def _cpu_ns(task: Task, batches: Sequence[Sequence[RecordMessage]]) -> int:
    began = time.process_time_ns()
    for batch in batches:
        task.add(SOURCE, batch)
        while task.process(len(batch)):
            pass
    return time.process_time_ns() - began


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record_path", description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=4_000, help="records of a round (default: %(default)s)")
    parser.add_argument("--batch", type=int, default=LOOK_EVERY, help="records of a batch (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=150, help="rounds of each level (default: %(default)s)")
    parser.add_argument("--record-ns", type=float, help="the CPU of a whole record, with the clients")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
