"""The input: lines and notes at a steady rate, and what each key must come to in the end."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable

from confluent_kafka import KafkaError, Message, Producer, murmur2

from tests.faults.topics import LINES, NOTES, PARTITIONS, Output, window_of

KEYS = tuple(f"k{number}" for number in range(40))
GROUPS = tuple(f"g{number}" for number in range(25))
_EVERY_S = 0.1
_NOTES_PER_LINE = 0.2


class Feed:
    """A thread that writes until it is stopped; brokers that are away hold it up, and lose nothing."""

    def __init__(
        self, bootstrap_servers: str, *, seed: int, rate: float, on_input: Callable[[Output, int], object]
    ) -> None:
        """Prepares the feed; ``on_input`` hears which partitions of which outputs have something to expect."""
        self.highest: dict[Output, Counter[str]] = {output: Counter() for output in Output}
        """What the last result of each key must be, by output; of ``mapped`` the number in the value."""
        self.failures: list[str] = []
        self._rate = rate
        self._chance = random.Random(f"feed {seed}")
        self._on_input = on_input
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                "linger.ms": 10,
                "partitioner": "murmur2_random",
                "reconnect.backoff.max.ms": 500,
                "socket.timeout.ms": 6000,
                "topic.metadata.refresh.interval.ms": 1000,
                "log_level": 0,
            }
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float = 60.0) -> None:
        """Ends the feed once all of it has arrived."""
        self._stopping.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive() or self._producer.flush(timeout_s):
            raise TimeoutError(f"the brokers did not take all of the input within {timeout_s:g} s")

    def abandon(self) -> None:
        """Ends the feed at once."""
        self._stopping.set()
        self._producer.purge()

    def _run(self) -> None:
        began, sent = time.time(), 0
        start_ms = int(began * 1000)
        while not self._stopping.wait(_EVERY_S):
            due = int((time.time() - began) * self._rate)
            for number in range(sent, due):
                self._line(start_ms + int(number * 1000 / self._rate))
                if self._chance.random() < _NOTES_PER_LINE:
                    self._note(start_ms + int(number * 1000 / self._rate))
            sent = due
            self._producer.poll(0)

    def _line(self, timestamp: int) -> None:
        key, group = self._chance.choice(KEYS), self._chance.choice(GROUPS)
        self.highest[Output.MAPPED][key] += 1
        self.highest[Output.COUNTS][group] += 1
        self.highest[Output.MERGED][group] += 1
        self.highest[Output.WINDOWS][window_of(key, timestamp)] += 1

        def delivered(error: KafkaError | None, message: Message) -> None:
            if self._arrived(error):
                for output in (Output.MAPPED, Output.WINDOWS):
                    self._on_input(output, _partition(key))
                for output in (Output.COUNTS, Output.MERGED):
                    self._on_input(output, _partition(group))

        value = f"{self.highest[Output.MAPPED][key]}|{group}"
        self._producer.produce(LINES, value, key, timestamp=timestamp, on_delivery=delivered)

    def _note(self, timestamp: int) -> None:
        group = self._chance.choice(GROUPS)
        self.highest[Output.MERGED][group] += 1

        def delivered(error: KafkaError | None, message: Message) -> None:
            if self._arrived(error):
                self._on_input(Output.MERGED, _partition(group))

        self._producer.produce(NOTES, "note", group, timestamp=timestamp, on_delivery=delivered)

    def _arrived(self, error: KafkaError | None) -> bool:
        if error is not None:
            self.failures.append(f"a record of the input was lost: {error.str()}")
        return error is None


def _partition(key: str) -> int:
    partition: int = murmur2(key.encode(), PARTITIONS)
    return partition
