"""An application as the processes that run it: started, killed and stopped, and watched through logs and offsets.

Each worker is ``pykstreams run`` with a state directory of its own. Nothing here sleeps for a result: what is waited
for is what workers say, or the state of the broker, with a deadline.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from tests.brokers.offsets import committed
from tests.brokers.producers import producer_in_order
from tests.brokers.reaper import Process
from tests.brokers.records import key_of, topic_of

ROOT = Path(__file__).parents[2]
PATIENCE_S = 240.0


@dataclass
class Workers:
    """The application, its topics and its workers."""

    brokers: str
    name: str
    folder: Path
    script: str
    partitions: int
    """Of each topic."""
    settings: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Further options of the command."""
    patience_s: float = PATIENCE_S
    processes: dict[str, Process] = field(default_factory=dict)
    starts: int = 0

    def start(self, worker: str, *settings: str) -> None:
        """Starts a worker; the settings are its own."""
        script = self.folder / "application.py"
        if not script.exists():
            script.write_text(textwrap.dedent(self.script))
        self.starts += 1
        command = [sys.executable, "-m", "pykstreams", "run", str(script), "--application-id", self.name]
        command += ["--bootstrap-servers", self.brokers, "--state-dir", str(self.folder / worker)]
        for setting in (f"app.prefix={self.name}", "commit.interval.ms=1000", *self.settings, *settings):
            command += ["--set", setting]
        command += self.options
        with (self.folder / f"{self.starts}-{worker}.log").open("wb") as log:
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            self.processes[worker] = Process(command, stdout=log, stderr=log, env=environment)

    def start_all(self, workers: Iterable[str], tasks: int) -> None:
        """Starts workers, and waits until each has its share of the tasks: nothing moves from then on."""
        names = sorted(workers)
        for worker in names:
            self.start(worker)
        self.wait("all workers have tasks", lambda: sorted(self.running()) == names and self.running_tasks() == tasks)

    def kill(self, worker: str) -> None:
        self.processes[worker].kill()
        self.processes[worker].wait()

    def wait_for_crash(self) -> str:
        """Waits until a worker has been killed by a record that it read, and gives its name."""
        ended: list[str] = []
        deadline = time.monotonic() + self.patience_s
        while not ended:
            assert time.monotonic() < deadline, f"no worker has ended within {self.patience_s:g} s"
            time.sleep(0.05)
            ended = [worker for worker, process in self.processes.items() if process.poll() is not None]
        assert self.processes[ended[0]].wait() == -signal.SIGKILL, self.log(ended[0])[-6000:]
        return ended[0]

    def stop(self, worker: str) -> None:
        """Stops a worker in order, when it works: a process that has not begun to is ended by the signal itself."""
        process = self.processes[worker]
        self._wait(f"{worker} works", lambda: "-> rebalancing" in self.log(worker), {worker: process})
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, self.log(worker)[-6000:]

    def end(self) -> None:
        """Ends what is still there after the test, in whatever state."""
        for process in self.processes.values():
            process.kill()
            process.wait()

    def delete_state(self, worker: str) -> None:
        shutil.rmtree(self.folder / worker)

    def log(self, worker: str) -> str:
        """What a worker has said since it was started last."""
        paths = sorted(self.folder.glob(f"*-{worker}.log"), key=lambda path: int(path.name.partition("-")[0]))
        return paths[-1].read_text()

    def send(self, rows: Iterable[tuple[str, str, str | None]]) -> None:
        """Writes (topic, key, value) rows; topics are named without the name of the application."""
        producer = producer_in_order(
            self.brokers,
            {
                "linger.ms": 50,
                "queue.buffering.max.messages": 200_000,
                "partitioner": "murmur2_random",  # that of Java's producer, and of the workers
            },
        )
        for topic, key, value in rows:
            while True:
                try:
                    producer.produce(self.topic(topic), value, key=key)
                    break
                except BufferError:
                    producer.poll(1)
        assert producer.flush(60) == 0

    def topic(self, name: str) -> str:
        return f"{self.name}-{name}"

    def wait(self, what: str, done: Callable[[], bool]) -> None:
        self._wait(what, done, self.processes)

    def _wait(self, what: str, done: Callable[[], bool], living: Mapping[str, Process]) -> None:
        deadline = time.monotonic() + self.patience_s
        while not done():
            for worker, process in living.items():
                assert process.poll() is None, f"{worker} ended: {self.log(worker)[-6000:]}"
            assert time.monotonic() < deadline, f"{what}: not within {self.patience_s:g} s" + "".join(
                self.log(worker)[-3000:] for worker in self.processes
            )
            time.sleep(0.2)

    def running(self) -> dict[str, set[str]]:
        """The tasks of each worker that has some, by what the workers say."""
        running: dict[str, set[str]] = {}
        for worker in self.processes:
            for line in self.log(worker).splitlines():
                if found := re.search(r"task (\d+_\d+) runs", line):
                    running.setdefault(worker, set()).add(found[1])
                elif found := re.search(r"tasks (.*) leave this worker", line):
                    running.setdefault(worker, set()).difference_update(found[1].split(", "))
        return {worker: tasks for worker, tasks in running.items() if tasks}

    def running_tasks(self) -> int:
        return sum(map(len, self.running().values()))

    def unread(self, topics: Iterable[str]) -> dict[str, int]:
        """How many records each topic has beyond the committed offsets; exact when there are few."""
        left: dict[str, int] = {}
        with closing(self._reader(self.name)) as reader, closing(self._reader(self.name, committed_only=False)) as ends:
            for topic in topics:
                places = [TopicPartition(self.topic(topic), number) for number in range(self.partitions)]
                left[topic] = sum(_records_from(reader, place, ends) for place in committed(reader, places))
        return left

    def ends(self, topics: Iterable[str]) -> dict[str, int]:
        """How many offsets each topic has got so far."""
        consumer = self._reader(self.name)
        try:
            return {
                topic: sum(
                    consumer.get_watermark_offsets(TopicPartition(self.topic(topic), number), timeout=60)[1]
                    for number in range(self.partitions)
                )
                for topic in topics
            }
        finally:
            consumer.close()

    def last_values(self, topics: Iterable[str]) -> dict[str, dict[str, bytes | None]]:
        """The last value of every key, by topic."""
        consumer = self._reader("results")
        last: dict[str, dict[str, bytes | None]] = {self.topic(topic): {} for topic in topics}
        places = [TopicPartition(topic, number, 0) for topic in last for number in range(self.partitions)]
        consumer.assign(places)
        ended = 0
        deadline = time.monotonic() + self.patience_s
        while ended < len(places):
            assert time.monotonic() < deadline, f"only {ended} of {len(places)} partitions were read to their end"
            for message in consumer.consume(10_000, 1):
                if _is_record(message):
                    last[topic_of(message)][key_of(message).decode()] = message.value()
                else:
                    ended += 1
        consumer.close()
        return {topic.removeprefix(f"{self.name}-"): values for topic, values in last.items()}

    def _reader(self, group: str, *, committed_only: bool = True) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed" if committed_only else "read_uncommitted",
            }
        )


def _records_from(reader: Consumer, place: TopicPartition, ends: Consumer) -> int:
    """The records of a partition from an offset on; the last few offsets may be markers of transactions only.

    :param ends: a consumer that sees the end of a partition also while a transaction is open there, behind whose
        beginning ``reader`` sees nothing.
    """
    start = max(place.offset, 0)
    end = ends.get_watermark_offsets(place, timeout=60)[1]
    if not 0 < end - start <= 100:
        return end - start
    reader.assign([TopicPartition(place.topic, place.partition, start)])
    records = 0
    while True:
        message = reader.poll(60)
        assert message is not None, f"{place} has no end"
        if not _is_record(message):
            offset = message.offset()
            assert offset is not None, f"{place} ends nowhere"
            return records + max(0, end - offset)
        records += 1


def _is_record(message: Message) -> bool:
    """False for the news that a partition has ended; anything else is an error."""
    error = message.error()
    assert error is None or error.code() == KafkaError._PARTITION_EOF, error
    return error is None
