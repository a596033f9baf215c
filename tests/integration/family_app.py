"""The application of ``families.py`` as tests hold it: its topics, its worker, what was sent and what came out.

Nothing here sleeps for a result: what is waited for is the state of the broker, with a deadline.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from confluent_kafka import Consumer, IsolationLevel, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from tests.brokers.brokers import create_topic
from tests.brokers.offsets import committed
from tests.brokers.producers import producer_in_order
from tests.brokers.reaper import Process
from tests.brokers.records import key_of, topic_of
from tests.integration import families

ROOT = Path(__file__).parents[2]
PATIENCE_S = 180.0
TWO_PARTITIONS = ("words", "by-word-repartition", "counts")
SINKS = (
    "counts",
    "late-words",
    "sessions",
    "closed",
    "ended",
    "finals",
    "left-joined",
    "outer-joined",
    "named",
    "profiles",
    "customers",
    "customers-by-window",
    "priced",
    "priced-later",
)
REPARTITION_TOPICS = ("by-word-repartition", "by-customer-repartition")

Sent: TypeAlias = tuple[str, str | None, int]
"""(key, value, time)"""

Steps: TypeAlias = dict[int, list[Sent]]

Results: TypeAlias = dict[str, list[tuple[str | None, int]]]
"""(value, time) of every record, by key."""


@dataclass
class App:
    """The application, its topics and its worker."""

    brokers: str
    name: str
    folder: Path
    inputs: Mapping[str, Steps]
    """What is sent to each topic."""
    hour: int
    """The full hour from which times are told, in ms."""
    processes: list[Process] = field(default_factory=list)
    _reader: Consumer | None = None

    @functools.cached_property
    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.brokers})

    @functools.cached_property
    def _producer(self) -> Producer:
        return producer_in_order(self.brokers)

    def topic(self, name: str) -> str:
        return f"{self.name}-{name}"

    def create_topics(self) -> None:
        for name in (*self.inputs, *SINKS):
            create_topic(self.brokers, self.topic(name), partitions=partitions_of(name))

    def start(self, settings: dict[str, str] | None = None, *, state: str = "state") -> None:
        command = [sys.executable, "-m", "pykstreams", "run", families.__file__, "--application-id", self.name]
        command += ["--bootstrap-servers", self.brokers, "--state-dir", str(self.folder / state)]
        own = {"app.prefix": self.name, "app.folder": str(self.folder), "commit.interval.ms": "100"}
        for key, value in {**own, **(settings or {})}.items():
            command += ["--set", f"{key}={value}"]
        with self._log_file(len(self.processes)).open("wb") as log:
            process = Process(command, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)})
        self.processes.append(process)
        self._wait("internal topics are there", lambda: set(REPARTITION_TOPICS) <= self.partitions().keys())

    def stop(self) -> None:
        self.processes[-1].send_signal(signal.SIGTERM)
        assert self.processes[-1].wait(PATIENCE_S) == 0, self.log()

    def kill(self) -> None:
        """Makes the worker kill itself, in the middle of a transaction."""
        self.send("crash", [("k", "now", 1)])
        assert self.processes[-1].wait(PATIENCE_S) == -signal.SIGKILL, self.log()
        assert self.unread() > 0

    def stop_all(self) -> None:
        if self._reader is not None:
            self._reader.close()
        for process in self.processes:
            process.kill()
            process.wait()

    def delete_state(self) -> None:
        shutil.rmtree(self.folder / "state")

    def log(self) -> str:
        """What the last worker has said."""
        return self._log_file(len(self.processes) - 1).read_text()

    def restored(self) -> set[str]:
        """The changelogs that the last worker has read, whole or in part."""
        found: list[str] = re.findall(rf"restored {self.name}-(\S+)-changelog-\d+,", self.log())
        return set(found)

    def send(self, name: str, rows: list[Sent]) -> None:
        for key, value, at in rows:
            partition = int(key) if name in TWO_PARTITIONS else 0
            self._producer.produce(self.topic(name), value, key, partition=partition, timestamp=self.hour + at)
        assert self._producer.flush(PATIENCE_S) == 0

    def send_step(self, number: int) -> None:
        for name, steps in self.inputs.items():
            self.send(name, steps.get(number, []))

    def first_steps(self) -> None:
        """Steps 1 and 2; what was read of repartition topics by then is gone."""
        self.send_step(1)
        self.wait_until_read()
        self._wait("repartition topics are purged", self._is_purged)
        self.send_step(2)
        self.wait_until_read()

    def wait_until_read(self) -> None:
        self._wait("everything is read", lambda: self.unread() == 0)

    def _wait(self, what: str, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not done():
            assert self.processes[-1].poll() is None, self.log()[-6000:]
            assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S:g} s\n{self.log()[-6000:]}"
            time.sleep(0.02)

    def unread(self) -> int:
        """How many records there are beyond the committed offsets, in whatever transactions."""
        if self._reader is None:
            self._reader = self._consumer(self.name, "read_uncommitted")
        found = committed(self._reader, self._inputs())
        # where nothing is committed, -2: the first record there is, which a purge may have moved
        starts = [TopicPartition(at.topic, at.partition, at.offset if at.offset >= 0 else -2) for at in found]
        return len(read_to_the_end(self._reader, starts))

    def results(self) -> dict[str, Results]:
        """All records of each sink, as texts, in the order of their partitions."""
        places = [
            TopicPartition(self.topic(name), number, 0) for name in SINKS for number in range(partitions_of(name))
        ]
        self._wait_for_transactions(places)
        consumer = self._consumer("results", "read_committed")
        try:
            found: dict[str, Results] = {name: {} for name in SINKS}
            for topic, key, value, at in read_to_the_end(consumer, places):
                rows = found[topic.removeprefix(f"{self.name}-")].setdefault(self._key_text(topic, key), [])
                rows.append((None if value is None else value.decode(), at - self.hour))
            return found
        finally:
            consumer.close()

    def settings(self) -> dict[str, dict[str, str]]:
        """What the broker says about every internal topic, by name without the name of the application."""
        own = [
            ConfigResource(ResourceType.TOPIC, name)
            for name in self._admin.list_topics(timeout=60).topics
            if name.startswith(f"{self.name}-") and name.endswith(("-changelog", "-repartition"))
        ]
        return {
            resource.name.removeprefix(f"{self.name}-"): {key: entry.value for key, entry in done.result(60).items()}
            for resource, done in self._admin.describe_configs(own).items()
        }

    def partitions(self) -> dict[str, int]:
        topics = self._admin.list_topics(timeout=60).topics
        return {
            name.removeprefix(f"{self.name}-"): len(topic.partitions)
            for name, topic in topics.items()
            if name.startswith(f"{self.name}-")
        }

    def _key_text(self, topic: str, key: bytes) -> str:
        """The key; windowed ones are a key and the eight bytes of the start."""
        if topic != self.topic("counts"):
            return key.decode()
        return f"{key[:-8].decode()}@{int.from_bytes(key[-8:], 'big') - self.hour}"

    def _wait_for_transactions(self, places: list[TopicPartition]) -> None:
        """Waits for the end of transactions that were committed just now, so that all of their records can be seen."""
        deadline = time.monotonic() + PATIENCE_S
        while self._offsets(places) != self._offsets(places, isolation=IsolationLevel.READ_COMMITTED):
            assert time.monotonic() < deadline, "a transaction does not end"
            time.sleep(0.02)

    def _is_purged(self) -> bool:
        """Whether the first records of the repartition topics are gone."""
        places = [at for at in self._inputs() if at.topic.endswith("-repartition")]
        return any(self._offsets(places, OffsetSpec.earliest()))

    def _offsets(
        self,
        places: list[TopicPartition],
        spec: OffsetSpec | None = None,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> list[int]:
        """The ends of partitions, or what else ``spec`` asks for."""
        asked = {TopicPartition(at.topic, at.partition): spec or OffsetSpec.latest() for at in places}
        return [done.result(60).offset for done in self._admin.list_offsets(asked, isolation_level=isolation).values()]

    def _inputs(self) -> list[TopicPartition]:
        """The partitions that are read, in the order of the steps that a record takes."""
        names = {name: partitions_of(name) for name in (*self.inputs, *REPARTITION_TOPICS)}
        return [TopicPartition(self.topic(name), number) for name, count in names.items() for number in range(count)]

    def _log_file(self, number: int) -> Path:
        return self.folder / f"{number}.log"

    def _consumer(self, group: str, isolation: str) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": group,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
                "isolation.level": isolation,
            }
        )


def partitions_of(name: str) -> int:
    return 2 if name in TWO_PARTITIONS else 1


def read_to_the_end(consumer: Consumer, places: list[TopicPartition]) -> list[tuple[str, bytes, bytes | None, int]]:
    """(topic, key, value, time) of all records of some partitions."""
    consumer.assign(places)
    deadline = time.monotonic() + PATIENCE_S
    found: list[tuple[str, bytes, bytes | None, int]] = []
    ended = 0
    while ended < len(places):
        assert time.monotonic() < deadline, f"only {ended} of {len(places)} partitions were read to their end"
        for message in consumer.consume(1000, 0.05):
            error = message.error()
            if error is None:
                found.append((topic_of(message), key_of(message), message.value(), message.timestamp()[1]))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended += 1
    return found
