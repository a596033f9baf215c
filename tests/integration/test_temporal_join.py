"""A stream joined with a versioned table whose updates come late, on a real broker, with the worker killed twice, by
records of the stream that it is about to join.

The result must be exactly the temporal join: each record of the stream once, with the value that its key had at the
time of the record in the *whole* table, however late that value came. That holds where records wait for longer (grace)
than updates are late, and where the worker reads both topics by time (``max.task.idle.ms``).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import textwrap
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.brokers.brokers import create_topic
from tests.brokers.producers import producer_in_order
from tests.brokers.reaper import Process
from tests.brokers.records import key_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SEED = 914
PARTITIONS = 3
KEYS = 24
RECORDS = 6000
"""On each side."""

DEADLY = (f"s{RECORDS // 4}", f"s{RECORDS // 2}")
"""The sales whose join kills the worker."""

STEP_MS, LATE_MS, GRACE_MS, HISTORY_MS = 4, 200, 300, 3000
PATIENCE_S = 240.0
HOUR_MS = 3_600_000

SCRIPT = f"""
    from pathlib import Path

    from pykstreams import Consumed, Joined, Materialized, Produced, Serdes, Stores, StreamsBuilder
    from tests.integration.crashes import crash_once

    text = Serdes.string()

    def pair(sale, rate):
        if sale in {DEADLY!r}:
            crash_once(Path(__file__).parent / sale)
        return f"{{sale}}+{{rate}}"

    def build(config):
        prefix = config["app.prefix"]
        builder = StreamsBuilder()
        history = Materialized(Stores.persistent_versioned_key_value_store("rates", {HISTORY_MS}))
        read = Consumed(key_serde=text, value_serde=text)
        rates = builder.table(f"{{prefix}}-rates", read, materialized=history)
        sales = builder.stream(f"{{prefix}}-sales", read)
        joined = Joined(name="later", key_serde=text, value_serde=text, grace_period={GRACE_MS})
        together = sales.left_join(rates, pair, joined=joined)
        together.to(f"{{prefix}}-results", Produced(key_serde=text, value_serde=text))
        return builder.build(config)
"""

Sent = tuple[str, str | None, int]
"""(key, value, time)"""


def late_records(rng: random.Random, prefix: str, deletions: float) -> list[Sent]:
    """Records in the order in which they come: by their times and how late they are."""
    made: list[tuple[int, Sent]] = []
    for number in range(RECORDS):
        at = number * STEP_MS
        value = None if rng.random() < deletions else f"{prefix}{number}"
        late = rng.randint(0, LATE_MS) if rng.random() < 0.4 else 0
        made.append((at + late, (f"k{rng.randrange(KEYS)}", value, at)))
    return [record for _, record in sorted(made, key=lambda row: row[0])]


def temporal_join(sales: list[Sent], rates: list[Sent]) -> list[Sent]:
    """What relational algebra says: each sale with the newest rate of its key that is not newer than the sale."""
    histories: dict[str, dict[int, str | None]] = {}
    for key, value, at in rates:
        histories.setdefault(key, {})[at] = value
    times = {key: sorted(history) for key, history in histories.items()}
    found: list[Sent] = []
    for key, value, at in sales:
        index = bisect_right(times.get(key, []), at)
        rate = histories[key][times[key][index - 1]] if index else None
        found.append((key, f"{value}+{rate}", at))
    return found


class Worker:
    """The application, one process after the other."""

    def __init__(self, brokers: str, name: str, folder: Path) -> None:
        self._folder = folder
        self._script = folder / "temporal.py"
        self._script.write_text(textwrap.dedent(SCRIPT))
        self._command = [sys.executable, "-m", "pykstreams", "run", str(self._script), "--application-id", name]
        self._command += ["--bootstrap-servers", brokers, "--state-dir", str(folder / "state")]
        for setting in (
            f"app.prefix={name}",
            "processing.guarantee=exactly_once_v2",
            "commit.interval.ms=100",
            "max.task.idle.ms=2000",
        ):
            self._command += ["--set", setting]
        self._process: Process | None = None

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            self._process = Process(self._command, stdout=log, stderr=log, env=environment)

    def wait_for_crash(self) -> None:
        assert self._process is not None
        assert self._process.wait(PATIENCE_S) == -signal.SIGKILL, self.log()[-6000:]

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def lose_state(self) -> None:
        shutil.rmtree(self._folder / "state")

    def check_alive(self) -> None:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()[-6000:]

    def log(self) -> str:
        return (self._folder / "log").read_text()


@pytest.fixture
def worker(bootstrap_servers: str, make_name: Callable[[str], str], tmp_path: Path) -> Iterator[tuple[Worker, str]]:
    name = make_name("temporal")
    made = Worker(bootstrap_servers, name, tmp_path)
    yield made, name
    made.end()


def send(brokers: str, topic: str, base: int, records: list[Sent]) -> None:
    producer = producer_in_order(brokers, {"linger.ms": 5})
    for key, value, at in records:
        producer.produce(topic, value, key, partition=int(key[1:]) % PARTITIONS, timestamp=base + at)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def read(consumer: Consumer, found: list[Sent], base: int, count: int, worker: Worker) -> None:
    """Reads committed results until there are so many."""
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count:
        worker.check_alive()
        assert time.monotonic() < deadline, f"only {len(found)} of {count} results\n{worker.log()[-6000:]}"
        for message in consumer.consume(1000, 0.1):
            assert message.error() is None, message.error()
            value = message.value()
            found.append(
                (key_of(message).decode(), None if value is None else value.decode(), message.timestamp()[1] - base)
            )


def test_results_are_those_of_the_temporal_join_although_rows_come_late_and_workers_die(
    worker: tuple[Worker, str], bootstrap_servers: str
) -> None:
    app, name = worker
    rng = random.Random(SEED)
    rates, sales = late_records(rng, "r", 0.1), late_records(rng, "s", 0.0)
    # what waits at the end leaves its buffer when later sales come, one to each partition
    last = [(f"k{partition}", "last", RECORDS * STEP_MS + 2 * GRACE_MS) for partition in range(PARTITIONS)]
    base = (int(time.time()) // 3600 - 1) * HOUR_MS
    for topic in ("rates", "sales", "results"):
        create_topic(bootstrap_servers, f"{name}-{topic}", partitions=PARTITIONS)
    send(bootstrap_servers, f"{name}-rates", base, rates)
    send(bootstrap_servers, f"{name}-sales", base, [*sales, *last])
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": f"{name}-results",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(f"{name}-results", partition, 0) for partition in range(PARTITIONS)])
    found: list[Sent] = []
    try:
        for _ in DEADLY:
            app.start()
            app.wait_for_crash()
        app.lose_state()
        app.start()
        read(consumer, found, base, RECORDS, app)
    finally:
        consumer.close()

    assert sorted(temporal_join(sales, rates), key=str) == sorted(found, key=str)
