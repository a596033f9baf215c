"""A million records, two worker processes: exact counts without failures, none lost with them.

One topology counts words and re-keyed lines at once, so that one pass serves both. Each worker is ``pykstreams run``
with a state directory of its own.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.kafka.brokers import create_topic

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MILLION = 1_000_000
PARTITIONS = 4
SUBTOPOLOGIES = 3
"""One reads lines, one counts words, one counts ends."""

SEED = 20_260_101
PATIENCE_S = 240.0

SCRIPT = '''
    """Counts the words of lines, and the lines by the word that ends them."""

    from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder

    text, number = Serdes.string(), Serdes.long()
    counted = Produced(key_serde=text, value_serde=number)

    def build(config):
        prefix = config["app.prefix"]
        builder = StreamsBuilder()
        lines = builder.stream(f"{prefix}-lines", Consumed(key_serde=text, value_serde=text))
        words = lines.flat_map_values(str.split).group_by(lambda _, word: word, grouped("words"))
        words.count(materialized=Materialized("words")).to_stream().to(f"{prefix}-words", counted)
        ends = lines.group_by(lambda _, line: line.rpartition(" ")[2], grouped("ends"))
        ends.count(materialized=Materialized("ends")).to_stream().to(f"{prefix}-ends", counted)
        return builder.build()

    def grouped(name):
        return Grouped(name=name, key_serde=text, value_serde=text)
'''


@dataclass
class Counting:
    """The application, its topics and its two workers."""

    brokers: str
    name: str
    folder: Path
    settings: tuple[str, ...]
    expected: dict[str, Counter[str]] = field(default_factory=dict)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    starts: int = 0

    def start(self, worker: str) -> None:
        script = self.folder / "counting.py"
        if not script.exists():
            script.write_text(textwrap.dedent(SCRIPT))
        self.starts += 1
        command = [sys.executable, "-m", "pykstreams", "run", str(script), "--application-id", self.name]
        command += ["--bootstrap-servers", self.brokers, "--state-dir", str(self.folder / worker)]
        for setting in (f"app.prefix={self.name}", "commit.interval.ms=1000", *self.settings):
            command += ["--set", setting]
        with (self.folder / f"{self.starts}-{worker}.log").open("wb") as log:
            self.processes[worker] = subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)}
            )

    def kill(self, worker: str) -> None:
        self.processes[worker].kill()
        self.processes[worker].wait()

    def stop(self, worker: str) -> None:
        self.processes[worker].send_signal(signal.SIGTERM)
        assert self.processes[worker].wait(60) == 0, self.log(worker)[-6000:]

    def delete_state(self, worker: str) -> None:
        shutil.rmtree(self.folder / worker)

    def log(self, worker: str) -> str:
        """What a worker has said since it was started last."""
        paths = sorted(self.folder.glob(f"*-{worker}.log"), key=lambda path: int(path.name.partition("-")[0]))
        return paths[-1].read_text()

    def send(self, count: int) -> None:
        """Writes lines of two words, and counts what has to come out."""
        chance = random.Random(SEED)
        vocabulary = [f"word{number}" for number in range(5_000)]
        words: Counter[str] = Counter()
        ends: Counter[str] = Counter()
        producer = Producer(
            {"bootstrap.servers": self.brokers, "linger.ms": 50, "queue.buffering.max.messages": 200_000}
        )
        for number in range(count):
            first, second = chance.choice(vocabulary), chance.choice(vocabulary)
            words[first] += 1
            words[second] += 1
            ends[second] += 1
            while True:
                try:
                    producer.produce(f"{self.name}-lines", f"{first} {second}", key=str(number))
                    break
                except BufferError:
                    producer.poll(1)
        assert producer.flush(60) == 0
        self.expected = {f"{self.name}-words": words, f"{self.name}-ends": ends}

    def wait(self, what: str, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not done():
            for worker, process in self.processes.items():
                assert process.poll() is None, f"{worker} ended: {self.log(worker)[-6000:]}"
            assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S:g} s; {self.unread()}" + "".join(
                self.log(worker)[-3000:] for worker in self.processes
            )
            time.sleep(0.2)

    def start_both(self) -> None:
        """Starts two workers, and waits until each has its share: nothing moves from then on."""
        self.start("one")
        self.start("two")
        self.wait("both workers have tasks", lambda: sorted(self.running()) == ["one", "two"] and self.all_run())

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

    def all_run(self) -> bool:
        return sum(map(len, self.running().values())) == SUBTOPOLOGIES * PARTITIONS

    def unread(self) -> dict[str, int]:
        """How many records each topic that is read has beyond the committed offsets; exact when there are few."""
        consumer = self._reader(self.name)
        left: dict[str, int] = {}
        try:
            for topic in (f"{self.name}-lines", f"{self.name}-words-repartition", f"{self.name}-ends-repartition"):
                places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
                left[topic] = sum(_records_from(consumer, place) for place in consumer.committed(places, timeout=10))
        finally:
            consumer.close()
        return left

    def wait_until_read(self, share: float) -> None:
        """Waits until a share of the lines has been read and committed."""
        total = sum(self.expected[f"{self.name}-ends"].values())
        self.wait(f"{share:.0%} are read", lambda: self.unread()[f"{self.name}-lines"] <= total * (1 - share))

    def wait_until_everything_is_read(self) -> None:
        self.wait("everything is read", lambda: not any(self.unread().values()))

    def results(self) -> dict[str, dict[str, int]]:
        """The last count of every word, by topic."""
        consumer = self._reader("results")
        places = [TopicPartition(topic, number, 0) for topic in self.expected for number in range(PARTITIONS)]
        consumer.assign(places)
        counts: dict[str, dict[str, int]] = {topic: {} for topic in self.expected}
        ended = 0
        deadline = time.monotonic() + PATIENCE_S
        while ended < len(places):
            assert time.monotonic() < deadline, f"only {ended} of {len(places)} partitions were read to their end"
            for message in consumer.consume(10_000, 1):
                if _is_record(message):
                    counts[message.topic()][message.key().decode()] = int.from_bytes(message.value(), "big")
                else:
                    ended += 1
        consumer.close()
        return counts

    def _reader(self, group: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            }
        )


def _records_from(consumer: Consumer, place: TopicPartition) -> int:
    """The records of a partition from an offset on; the last few offsets may be markers of transactions only."""
    start = max(place.offset, 0)
    ahead = consumer.get_watermark_offsets(place, timeout=10)[1] - start
    if not 0 < ahead <= 100:
        return ahead
    consumer.assign([TopicPartition(place.topic, place.partition, start)])
    records = 0
    while True:
        message = consumer.poll(10)
        assert message is not None, f"{place} has no end"
        if not _is_record(message):
            return records
        records += 1


def _is_record(message: Message) -> bool:
    """False for the news that a partition has ended; anything else is an error."""
    error = message.error()
    assert error is None or error.code() == KafkaError._PARTITION_EOF, error
    return error is None


@pytest.fixture
def make_counting(
    bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path
) -> Iterator[Callable[..., Counting]]:
    made: list[Counting] = []

    def make(*settings: str) -> Counting:
        name = make_name("exact")
        for suffix in ("lines", "words", "ends"):
            create_topic(bootstrap_servers, f"{name}-{suffix}", partitions=PARTITIONS)
        made.append(Counting(bootstrap_servers, name, tmp_path, settings))
        return made[-1]

    yield make
    for app in made:
        for process in app.processes.values():
            process.kill()
            process.wait()


def test_counts_of_a_million_records_are_exact_without_failures(make_counting: Callable[..., Counting]) -> None:
    app = make_counting()
    app.start_both()

    app.send(MILLION)
    app.wait_until_everything_is_read()
    app.stop("one")
    app.stop("two")

    assert app.results() == app.expected


def test_no_count_of_a_million_records_is_too_low_after_a_crash_and_a_loss_of_state(
    make_counting: Callable[..., Counting],
) -> None:
    app = make_counting()
    app.start_both()
    app.send(MILLION)

    fail_half_way(app)
    app.wait_until_everything_is_read()
    app.stop("one")
    app.stop("two")

    results = app.results()
    for topic, expected in app.expected.items():
        found = results[topic]
        assert found.keys() == expected.keys()
        assert {word: (found[word], n) for word, n in expected.items() if found[word] < n} == {}


def test_counts_are_exact_after_a_crash_and_a_loss_of_state_under_exactly_once(
    make_counting: Callable[..., Counting],
) -> None:
    app = make_counting("processing.guarantee=exactly_once_v2")
    app.start_both()
    app.send(200_000)

    fail_half_way(app)
    app.wait_until_everything_is_read()
    app.stop("one")
    app.stop("two")

    assert app.results() == app.expected


def fail_half_way(app: Counting) -> None:
    """Kills one worker and starts it again, then takes the state of the other away."""
    app.wait_until_read(0.3)
    app.kill("one")
    assert app.unread()[f"{app.name}-lines"] > 0
    app.start("one")
    app.wait_until_read(0.6)
    app.kill("two")
    assert app.unread()[f"{app.name}-lines"] > 0
    app.delete_state("two")
    app.start("two")
    app.wait("the lost state is restored", lambda: "restored" in app.log("two"))
