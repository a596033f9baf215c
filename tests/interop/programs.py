"""The twenty applications, as far as both languages must agree on more than their topologies; and their input."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Headers: TypeAlias = list[tuple[str, bytes | None]]

T0 = int(time.time()) // 3600 * 3_600_000
"""Times of records begin here: old ones would be beyond the retention of topics."""

EXACTLY_ONCE = {"processing.guarantee": "exactly_once_v2"}
OPTIMIZED = {"topology.optimization": "all"}
PHASES = 4
_WORDS = ("ash", "birch", "cedar", "dogwood", "elm")


@dataclass(frozen=True, slots=True)
class Program:
    """One application.

    :param steps: whether each record waits until the one before has gone all the way: where two ways through the
        topology would run a race.
    :param loose: whether neither order nor times of results are given, since tasks run side by side.
    :param tables: the inputs that are read as tables.
    :param times_of_results: whether the brokers time results (``LogAppendTime``), and not who writes them.
    :param one_instance: whether a fleet has one instance, and a second one only while it is replaced. Which of two has
        a task is drawn by the ids of their processes, and an outer join of streams counts its stream time, which no
        store keeps, anew where the task moves.
    :param without: modes that have nothing to compare.
    """

    inputs: tuple[str, ...] = ("in",)
    outputs: tuple[str, ...] = ("out",)
    partitions: int = 1
    loose: bool = False
    steps: bool = False
    rows: int = 40
    late: bool = True
    nulls: bool = False
    foreign_keys: bool = False
    tables: tuple[str, ...] = ()
    times_of_results: bool = False
    one_instance: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A record to write; without a partition its key decides."""

    topic: str
    partition: int | None
    key: str
    value: str | None
    time: int
    headers: Headers


_TWO = ("left", "right")
_FOREIGN_KEY = Program(_TWO, foreign_keys=True, nulls=True, steps=True, rows=14, late=False, tables=_TWO)

PROGRAMS: Mapping[str, Program] = {
    "count": Program(),
    "counts_of_three_partitions": Program(partitions=3, loose=True),
    "suppressed_windows": Program(),
    # a key that has left the buffer and come back between two commits has its old time after a restart of Java, since
    # the changelog does not say that it was away: so each record gets a commit of its own
    "suppress_until_time_limit": Program(steps=True, rows=12),
    "emit_on_window_close": Program(),
    "left_stream_join": Program(_TWO),
    "outer_stream_join": Program(_TWO, one_instance=True),
    "left_foreign_key_join": _FOREIGN_KEY,
    "inner_foreign_key_join": _FOREIGN_KEY,
    "versioned_table_with_grace": Program(_TWO, nulls=True),
    "versioned_table": Program(_TWO, ("out", "out2"), nulls=True),
    "sessions": Program(),
    "aggregate": Program(settings=EXACTLY_ONCE),
    # it tells each change, and how many there are depends on when a cache is flushed
    "table_aggregate": Program(nulls=True, tables=("in",), without=("cache",)),
    # Java ends in a streams group: "Not all copartition groups were converted to broker topology"
    "cogroup": Program(_TWO, steps=True, rows=12, without=("streams", "streams, exactly once")),
    "stores_in_memory": Program(outputs=("out", "out2")),
    "sliding_windows": Program(),
    "table_joins": Program(("in", *_TWO), ("out", "out2"), nulls=True, tables=_TWO),
    "shared_repartition": Program(
        ("in", *_TWO), ("out", "out2", "out3", "out4"), tables=("right",), settings=OPTIMIZED
    ),
    "own_stores": Program(nulls=True),
}


def rows_of(name: str) -> list[list[Row]]:
    """The input of each phase: random, and the same in each run."""
    program, chance = PROGRAMS[name], random.Random(f"interop-{name}")
    phases = []
    now = 1000
    taken: set[int] = set()
    for phase in range(PHASES):
        rows = []
        for number in range(program.rows):
            now += chance.choice((1, 3, 7, 11, 19, 31))
            late = chance.choice((0, 0, 0, 0, 20, 60, 140, 330)) if program.late else 0
            # No two records have one time: inputs can be put in order, and so can rows of a join's window, where
            # Java goes by a number that it counts anew after a restart (docs/reference/differences.md).
            at = now - late
            while at in taken:
                at += 1
            taken.add(at)
            rows.append(_row(program, chance, phase, number, at))
        if phase == PHASES - 1:  # everything closes
            rows += [Row(topic, None, "z", f"{_WORDS[0]} end", now + 5000, []) for topic in program.inputs]
        phases.append(rows)
    return phases


def _row(program: Program, chance: random.Random, phase: int, number: int, at: int) -> Row:
    topic = chance.choice(program.inputs)
    key, value = chance.choice("abcd"), f"{chance.choice(_WORDS)} {phase}{number}"
    if program.foreign_keys and topic == "right":
        key = chance.choice(_WORDS[:4])
    if program.foreign_keys and topic == "left" and chance.random() < 0.15:
        value = f"-none {value}"
    deleted = program.nulls and chance.random() < 0.15
    headers: Headers = [("h", str(number).encode())] if chance.random() < 0.4 else []
    if chance.random() < 0.05:
        headers = [("h", b"\x00\xff"), ("h", None), ("ü", b"")]
    partition = chance.randrange(program.partitions) if program.partitions > 1 else None
    return Row(topic, partition, key, None if deleted else value, at, headers)
