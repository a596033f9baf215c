"""Records that flow through a fleet without a pause, and how long each partition of its results stood still.

The broker times results (``LogAppendTime``), so it does not matter when they are read.
"""

from __future__ import annotations

import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count, pairwise

from confluent_kafka import TopicPartition

from tests.brokers.records import partition_of
from tests.brokers.repeated import repeated
from tests.interop.programs import PROGRAMS, Program, Row
from tests.interop.turns import Turns

PARTITIONS = 3
_EVERY_S = 0.02
_STEP_MS = 7
_KEYS = 12
_SETTLED_ROWS = 150


def live(program: str) -> Program:
    """The program for records that flow: with more partitions, and the same order of its inputs in each run.

    Only where a task waits for its other input does the time of records decide which one is next. Foreign-key joins run
    a race nevertheless: of them the last results are compared.
    """
    spec = PROGRAMS[program]
    waits = {} if spec.foreign_keys else {"max.task.idle.ms": "2000"}
    return replace(
        spec,
        partitions=PARTITIONS,
        settings={**spec.settings, **waits},
        times_of_results=True,
        one_instance=False,
    )


class LiveRows:
    """Sends a record every 20 ms."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._rows = _rows(turns.program)
        self.sent: list[Row] = []

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Lets records flow for the length of a block."""
        with repeated(self._send, _EVERY_S, "live rows"):
            yield

    def flow_on(self) -> None:
        """Waits until records have flown for some seconds."""
        enough = len(self.sent) + _SETTLED_ROWS
        self._turns.wait("records flow", lambda: len(self.sent) >= enough)

    def _send(self) -> None:
        row = next(self._rows)
        self._turns.send([row])
        self.sent.append(row)


class Gaps:
    """How long each partition of the results had none."""

    def __init__(self, turns: Turns) -> None:
        self._times: defaultdict[str, list[int]] = defaultdict(list)
        topics = [turns.prefix + name for name in turns.spec.outputs]
        places = [TopicPartition(topic, number, 0) for topic in topics for number in range(turns.spec.partitions)]
        for message in turns.records(places):
            self._times[f"{(message.topic() or '').removeprefix(turns.prefix)}-{partition_of(message)}"].append(
                message.timestamp()[1]
            )

    def longest_s(self, from_ms: int, to_ms: int) -> Mapping[str, float]:
        """The longest gap of each partition between two times, of which both are amid results."""
        found = {}
        for place, times in sorted(self._times.items()):
            inside = [from_ms, *(at for at in times if from_ms < at < to_ms), to_ms]
            found[place] = max(after - before for before, after in pairwise(inside)) / 1000
        return found


def now_ms() -> int:
    """The time by which a broker on this machine writes."""
    return time.time_ns() // 1_000_000


def _rows(program: str) -> Iterator[Row]:
    """Rows without end, none of which is late."""
    spec, chance = PROGRAMS[program], random.Random(f"live-{program}")
    for number in count():
        topic = spec.inputs[number % len(spec.inputs)]
        key, word = f"k{chance.randrange(_KEYS)}", f"word{chance.randrange(_KEYS)}"
        if spec.foreign_keys and topic == "right":
            key = word
        yield Row(topic, None, key, f"{word} {number}", 1000 + _STEP_MS * number, [])
