"""Compares the two ways to come by the state of a task: the files of a bootstrap, and replay of its changelog.

python -m benchmarks.bootstrap [--rows 5000000] [--tasks 4] [--rounds 3] [--folder DIRECTORY] [--other DIRECTORY]

A store of aggregates with keys of 20 bytes and values of about 100 is written to files and to its changelog. Each run
is a process with a fresh state directory; the ways take turns. Taken is the time from the moment that the worker is
given its tasks until it runs them, hashes of all files included; beside it stands the time from the start of the
process, which also has imports, the search for the brokers and the joining of the group in it.

Files are linked where state lies on the file system of the bootstrap, and copied where it lies on another one
(``--other``, by default /dev/shm). The exit code is 1 when a way with a bootstrap is not 15 times as fast as replay.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import mkdtemp
from typing import Final

from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table

from benchmarks.broker import benchmark_broker
from pykstreams import Consumed, Grouped, KafkaStreams, Materialized, Serdes, StreamsBuilder, StreamsConfig, Topology
from pykstreams.core.clock import SystemClock
from pykstreams.core.hashing import murmur3_128
from pykstreams.core.ids import TaskId
from pykstreams.runtime.clients.admin import ClusterAdmin, TopicSpec
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.streams import GroupMembershipOperation
from pykstreams.state.bulk.description import described
from pykstreams.state.bulk.manifest import (
    Manifest,
    StoreManifest,
    TaskFiles,
    content_hash,
    new_id,
    publish,
    store_folder,
)
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.sst import SstFiles
from pykstreams.state.interfaces.store import ChangelogRow

APPLICATION: Final = "bootstrap-bench"
ORDERS: Final = "bootstrap-bench-orders"
STORE: Final = "totals"
FASTER: Final = 15
TIMESTAMP: Final = 1_700_000_000_000
_CHUNK: Final = 20_000
_PATIENCE_S: Final = 600.0
_GIVEN: Final = "tasks %s were given to this worker"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to come by state: from which folder, if from any, and where it is kept."""

    title: str
    bootstrap: Path | None
    state: Path


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bootstrap", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows of all tasks (default: %(default)s)")
    parser.add_argument("--tasks", type=int, default=4, help="tasks of the one worker (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each way (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="where files and state are made (default: for temporary files)")
    parser.add_argument(
        "--other", type=Path, default=Path("/dev/shm"), help="another file system (default: %(default)s)"
    )
    parser.add_argument("--worker", nargs=3, metavar=("BROKERS", "STATE", "BOOTSTRAP"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(*arguments.worker)
    return compare(arguments)


def compare(given: argparse.Namespace) -> int:
    """Makes files and changelog, and runs all ways in turn."""
    console = Console()
    folder = Path(mkdtemp(prefix="pykstreams-bootstrap-", dir=given.folder))
    other = Path(mkdtemp(prefix="pykstreams-bootstrap-", dir=given.other)) if given.other.is_dir() else None
    try:
        with benchmark_broker() as brokers:
            made = folder / "bootstrap"
            began = time.perf_counter()
            make(brokers, made, given.rows, given.tasks)
            console.print(f"{given.rows} rows written to files and changelog in {time.perf_counter() - began:.1f} s")
            ways = [
                Way("replay of the changelog", None, folder),
                Way("bootstrap, linked and verified", made, folder),
            ]
            if other is not None:
                ways.append(Way("bootstrap, copied and verified", made, other))
            times: dict[str, list[tuple[float, float]]] = {way.title: [] for way in ways}
            for number in range(given.rounds):
                for way in ways:
                    times[way.title].append(run(brokers, way, number))
    finally:
        for path in (folder, other):
            if path is not None:
                shutil.rmtree(path)
    table, slowest = drawn(ways[0].title, times)
    console.print(table)
    console.print(f"at least {FASTER} times as fast as replay: {'yes' if slowest >= FASTER else 'no'}", highlight=False)
    return 0 if slowest >= FASTER else 1


def topology() -> Topology:
    """Sums values by key."""
    text = Serdes.string()
    builder = StreamsBuilder()
    stream = builder.stream(ORDERS, Consumed(key_serde=text, value_serde=text))
    stream.group_by_key(Grouped(key_serde=text, value_serde=text)).reduce(
        lambda one, other: other, materialized=Materialized(STORE)
    )
    return builder.build()


def config(brokers: str, state: str) -> StreamsConfig:
    """The settings of the worker."""
    return StreamsConfig(
        {
            "application.id": APPLICATION,
            "bootstrap.servers": brokers,
            "state.dir": state,
            "consumer.auto.offset.reset": "earliest",
        }
    )


def make(brokers: str, folder: Path, rows: int, tasks: int) -> None:
    """Writes the rows of each task to files, and to the changelog."""
    settings = config(brokers, str(folder))
    plan = topology().plan(settings)
    (part,) = plan.subtopologies
    builder, changelog = part.stores[STORE], part.changelogs[STORE]
    admin = ClusterAdmin.open(DefaultKafkaClientSupplier(), settings, "benchmark", SystemClock())
    admin.create_topics([TopicSpec(ORDERS, tasks, 1, {})])
    admin.create_topics([TopicSpec(changelog, tasks, 1, {"cleanup.policy": "compact"})])
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 50, "queue.buffering.max.messages": 500_000})
    written = {}
    for partition in range(tasks):
        task = TaskId(part.id, partition)
        count, content = 0, 0
        files = SstFiles(folder, store_folder(STORE, task), "0-0", builder, settings)
        with OfflineStore.in_memory(builder, task, settings) as store:
            for chunk in _rows(partition, rows // tasks):
                store.restore(chunk)
                found = sorted(store.drain())
                files.add(found)
                content = content_hash(found, content)
                count += len(found)
                for key, value, timestamp, _ in chunk:
                    producer.produce(changelog, value, key, partition, timestamp=timestamp)
                producer.poll(0)
                producer.flush()
        written[partition] = TaskFiles(tuple(files.finish()), count, content, count)
    stores = {STORE: StoreManifest(described(plan, settings)[STORE], written)}
    offsets = {ORDERS: dict.fromkeys(range(tasks), 0)}
    publish(folder, Manifest(new_id(), APPLICATION, TIMESTAMP, "write", offsets, stores))


def _rows(partition: int, count: int) -> Iterator[list[ChangelogRow]]:
    """Rows in the order of their keys, as a job gives them, with values that do not compress to nothing."""
    for first in range(0, count, _CHUNK):
        chunk: list[ChangelogRow] = []
        for number in range(first, min(first + _CHUNK, count)):
            key = b"%04d-%015d" % (partition, number)
            chunk.append((key, b'{"id":"' + murmur3_128(key).hex().encode() * 3 + b'"}', TIMESTAMP, ()))
        yield chunk


def run(brokers: str, way: Way, number: int) -> tuple[float, float]:
    """Runs one worker in a process of its own; gives the seconds since it had tasks, and since it began."""
    state = way.state / f"state-{number}"
    command = [sys.executable, "-m", "benchmarks.bootstrap", "--worker", brokers, str(state), str(way.bootstrap or "")]
    began = time.time()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    shutil.rmtree(state)
    found = json.loads(done.stdout)
    return found["running"] - found["given"], found["running"] - began


def work(brokers: str, state: str, bootstrap: str) -> int:
    """The worker: runs until all tasks do, and says when it was given them and when they ran."""
    heard = _Assigned()
    logger = logging.getLogger("pykstreams.runtime.worker.task_manager")
    logger.addHandler(heard)
    logger.setLevel(logging.INFO)
    folder = bootstrap or None
    # the offsets that a replay has committed are in its way
    streams = KafkaStreams(topology(), config(brokers, state), bootstrap=folder, reset_offsets=folder is not None)
    streams.start()
    if not streams.wait_for_state(State.RUNNING, int(_PATIENCE_S * 1000)):
        raise RuntimeError(f"the worker does not run: {streams.error!r}")
    running = time.time()
    streams.close(60_000, group_membership=GroupMembershipOperation.LEAVE_GROUP)
    print(json.dumps({"given": heard.at, "running": running}))
    return 0


class _Assigned(logging.Handler):
    """Notes when the worker was given its tasks."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == _GIVEN and not self.at:
            self.at = record.created


def drawn(replay: str, times: dict[str, list[tuple[float, float]]]) -> tuple[Table, float]:
    """The table of all ways, and how many times as fast as replay the slowest bootstrap is.

    :param times: of each way and round: seconds since the worker had its tasks, and since it began.
    """
    table, faster = Table(), []
    for title in ("way", "s from tasks to running", "of the rounds", "of replay", "s from process start"):
        table.add_column(title, justify="left" if title == "way" else "right")
    for way, found in times.items():
        ratio = median(other[0] / mine[0] for mine, other in zip(found, times[replay], strict=True))
        if way != replay:
            faster.append(ratio)
        table.add_row(
            way,
            f"{median(one[0] for one in found):.2f}",
            " ".join(f"{one[0]:.2f}" for one in found),
            "" if way == replay else f"1/{ratio:.1f}",
            f"{median(one[1] for one in found):.2f}",
        )
    return table, min(faster)


if __name__ == "__main__":
    sys.exit(main())
