"""The input at a steady rate, what each key must come to in the end, and poison when it is asked for."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError, Message, Producer, murmur2

from tests.faults.topics import ANSWERS, GRACE_MS, LINES, NOTES, PARTITIONS, POISON, RATES, Output, link_rank, window_of

KEYS = tuple(f"k{number}" for number in range(40))
GROUPS = tuple(f"g{number}" for number in range(25))
END = "end"
"""What keys begin with that only move time on."""

_EVERY_S = 0.1
_NOTES_PER_LINE = 0.2
_RATES_PER_LINE = 0.2
_ANSWERS_PER_LINE = 0.6
_ANSWERED = 0.7
"""So many of them are of the time and the key of a line."""

_POISON_PER_LINE = 0.2


class Feed:
    """A thread that writes until it is stopped; brokers that are away hold it up, and lose nothing."""

    def __init__(
        self, bootstrap_servers: str, *, seed: int, rate: float, on_input: Callable[[Output, int], object]
    ) -> None:
        """Prepares the feed; ``on_input`` hears which partitions of which outputs have something to expect."""
        self.highest: dict[Output, Counter[str]] = {output: Counter() for output in Output}
        """What the last result of each key must be, by output; of ``mapped`` the number in the value."""
        self.failures: list[str] = []
        self._numbers: dict[str, Counter[str]] = {topic: Counter() for topic in (NOTES, ANSWERS, RATES)}
        self._last_lines: dict[str, tuple[int, str]] = {}
        self._poisoned_until = 0.0
        self._poison = 0
        self._moved_on = 0
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

    def poison(self, length_s: float) -> None:
        """Mixes records into the input, for so long, that nobody can read or process."""
        self._poisoned_until = time.monotonic() + length_s

    def move_time_on(self, timeout_s: float = 60.0) -> None:
        """Writes records that are so much later that nothing waits any longer for others of its time."""
        self._moved_on += 1
        later = int(time.time() * 1000) + 3 * self._moved_on * GRACE_MS
        keys: dict[int, str] = {}
        for number in range(100 * PARTITIONS):
            keys.setdefault(_partition(f"{END}{number}"), f"{END}{number}")
        for key in keys.values():
            self._producer.produce(LINES, f"1|{END}", key, timestamp=later)
        if self._producer.flush(timeout_s):
            raise TimeoutError(f"the brokers did not take the last records within {timeout_s:g} s")

    def stop(self, timeout_s: float = 60.0) -> None:
        """Ends the feed once all of it has arrived."""
        self._stopping.set()
        self._thread.join(timeout_s)
        if self._thread.is_alive() or self._producer.flush(timeout_s):
            raise TimeoutError(f"the brokers did not take all of the input within {timeout_s:g} s")
        for key, (number, group) in self._last_lines.items():
            self.highest[Output.LINKED][key] = link_rank(number, self._numbers[NOTES][group])

    def abandon(self) -> None:
        """Ends the feed at once."""
        self._stopping.set()
        self._producer.purge()

    def _run(self) -> None:
        began, sent = time.time(), 0
        start_ms = int(began * 1000)
        for group in GROUPS:  # each line has a note to be linked with
            self._note(group, start_ms)
        while not self._stopping.wait(_EVERY_S):
            due = int((time.time() - began) * self._rate)
            for number in range(sent, due):
                self._records(start_ms + int(number * 1000 / self._rate))
            sent = due
            self._producer.poll(0)

    def _records(self, timestamp: int) -> None:
        """A line, and what comes with it by chance."""
        chance = self._chance
        key = chance.choice(KEYS)
        self._line(key, chance.choice(GROUPS), timestamp)
        if chance.random() < _NOTES_PER_LINE:
            self._note(chance.choice(GROUPS), timestamp)
        if chance.random() < _RATES_PER_LINE:
            self._number(RATES, chance.choice(KEYS), timestamp, ())
        if chance.random() < _ANSWERS_PER_LINE:
            if chance.random() < _ANSWERED:
                self._number(ANSWERS, key, timestamp, (Output.PAIRS,))
            else:
                self._number(ANSWERS, chance.choice(KEYS), timestamp, ())
        if time.monotonic() < self._poisoned_until and chance.random() < _POISON_PER_LINE:
            self._poison += 1
            topic, place = chance.choice([(LINES, KEYS), (NOTES, GROUPS)])
            self._send(topic, chance.choice(place), f"{POISON}, number {self._poison}", timestamp, ())

    def _line(self, key: str, group: str, timestamp: int) -> None:
        self.highest[Output.MAPPED][key] += 1
        self.highest[Output.COUNTS][group] += 1
        self.highest[Output.MERGED][group] += 1
        self.highest[Output.WINDOWS][window_of(key, timestamp)] += 1
        number = self.highest[Output.MAPPED][key]
        self.highest[Output.RATED][key] = number
        self._last_lines[key] = number, group
        of_key, of_group = (Output.MAPPED, Output.WINDOWS, Output.LINKED), (Output.COUNTS, Output.MERGED)
        owed = [(output, key) for output in of_key] + [(output, group) for output in of_group]
        self._send(LINES, key, f"{number}|{group}", timestamp, owed)

    def _note(self, group: str, timestamp: int) -> None:
        self.highest[Output.MERGED][group] += 1
        self._numbers[NOTES][group] += 1
        value = self._numbers[NOTES][group].to_bytes(8, "big")
        self._send(NOTES, group, value, timestamp, [(Output.MERGED, group)])

    def _number(self, topic: str, key: str, timestamp: int, owed: Sequence[Output]) -> None:
        self._numbers[topic][key] += 1
        self._send(topic, key, str(self._numbers[topic][key]), timestamp, [(output, key) for output in owed])

    def _send(
        self, topic: str, key: str, value: str | bytes, timestamp: int, owed: Sequence[tuple[Output, str]]
    ) -> None:
        """Writes a record; when it has arrived, outputs owe something for a key."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            if self._arrived(error):
                for output, of in owed:
                    self._on_input(output, _partition(of))

        self._producer.produce(topic, value, key, timestamp=timestamp, on_delivery=delivered)

    def _arrived(self, error: KafkaError | None) -> bool:
        if error is not None:
            self.failures.append(f"a record of the input was lost: {error.str()}")
        return error is None


def _partition(key: str) -> int:
    partition: int = murmur2(key.encode(), PARTITIONS)
    return partition
