"""A steady flow of records through an application, and how long each partition had no result.

Results are timed by the broker (``LogAppendTime``), so it does not matter when they are read.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle

from confluent_kafka import Consumer, Producer, TopicPartition, murmur2

from tests.brokers.records import partition_of, value_of
from tests.brokers.repeated import repeated

_EVERY_S = 0.02
_KEYS = 400


@dataclass(frozen=True, slots=True)
class Result:
    """A record that came out."""

    partition: int
    at_ms: int
    worker: str
    """Who wrote it; it is the value."""


class Flow:
    """Writes a record to each partition of a topic every 20 ms, and reads what comes out."""

    def __init__(self, bootstrap_servers: str, source: str, sink: str, partitions: int) -> None:
        self._source, self._partitions = source, partitions
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "linger.ms": 0, "partitioner": "murmur2_random", "log_level": 0}
        )
        self._consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "flow", "log_level": 0})
        self._consumer.assign([TopicPartition(sink, number, 0) for number in range(partitions)])
        self._turns = _keys_in_turn(partitions)
        self.results: list[Result] = []

    def preload(self, rows: int, value: str) -> None:
        """Writes as many rows of as many keys, and waits until the broker has them."""
        for number in range(rows):
            while True:
                try:
                    self._producer.produce(self._source, value, f"row-{number}")
                    break
                except BufferError:
                    self._producer.poll(0.1)
        assert self._producer.flush(120) == 0

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Lets records flow for the length of a block."""
        with repeated(self._send, _EVERY_S, "flow"):
            yield
        self._producer.flush(10)

    def close(self) -> None:
        self._consumer.close()

    def look(self) -> None:
        """Reads some of the results that have come since the last look."""
        for message in self._consumer.consume(10_000, 0.5):
            if message.error() is None:
                worker = value_of(message).decode()
                self.results.append(Result(partition_of(message), message.timestamp()[1], worker))

    def partitions_of(self, worker: str) -> set[int]:
        """The partitions whose last result a worker has written."""
        last = {result.partition: result.worker for result in self.results}
        return {partition for partition, name in last.items() if name == worker}

    def longest_gaps_s(self, from_ms: int, to_ms: int) -> dict[int, float]:
        """How long each partition had no result, at most, between two times, of which the first is before a result."""
        gaps = dict.fromkeys(range(self._partitions), 0)
        last = dict.fromkeys(range(self._partitions), from_ms)
        for result in self.results:
            if from_ms <= result.at_ms <= to_ms:
                gaps[result.partition] = max(gaps[result.partition], result.at_ms - last[result.partition])
                last[result.partition] = result.at_ms
        return {partition: max(gap, to_ms - last[partition]) / 1000 for partition, gap in gaps.items()}

    def _send(self) -> None:
        for keys in self._turns.values():
            self._producer.produce(self._source, "now", next(keys))
        self._producer.poll(0)


def _keys_in_turn(partitions: int) -> dict[int, Iterator[str]]:
    """Keys of each partition, without end: results lie where their records do."""
    keys: dict[int, list[str]] = {number: [] for number in range(partitions)}
    for key in (f"row-{number}" for number in range(_KEYS)):
        keys[murmur2(key.encode(), partitions)].append(key)
    return {partition: cycle(found) for partition, found in keys.items()}


def now_ms() -> int:
    """The time by which a broker on this machine writes."""
    return time.time_ns() // 1_000_000
