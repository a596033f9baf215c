"""What a template makes: a topology and the rules by which input for it is drawn.

Invariant: a case is a pure function of template, seed and number of records, so it can be made again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from tests.conformance.caselib import Step, clock, pipe
from tests.conformance.values import Json

ValueMaker: TypeAlias = Callable[[Random], Any]


@dataclass(frozen=True, slots=True)
class Input:
    """The records of one topic: keys to choose from, how a value is made, how often it is chosen."""

    keys: Sequence[Any]
    value: ValueMaker
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Scenario:
    """A topology with its input.

    ``time_step`` is the most that time goes on per record; with probability ``late`` a record lies up to
    ``back`` ms behind. ``nulls`` and ``null_keys`` are probabilities, ``clock`` is that of a clock move.
    """

    topology: list[Step]
    inputs: Mapping[str, Input]
    time_step: int = 4
    late: float = 0.3
    back: int = 25
    nulls: float = 0.15
    null_keys: float = 0.03
    clock: float = 0.0
    headers: float = 0.05
    queries: Sequence[Step] = ()
    config: dict[str, Json] = field(default_factory=dict)
    cache: int = 0


@dataclass(frozen=True, slots=True)
class Template:
    """A named way to make scenarios; ``part`` is the part of the project whose features it uses."""

    area: str
    part: int
    make: Callable[[Random], Scenario]


def fixed(area: str, part: int, topology: list[Step], inputs: Mapping[str, Input], **rules: Any) -> Template:
    """A template whose topology is always the same."""
    scenario = Scenario(topology, inputs, **rules)
    return Template(area, part, lambda rng: scenario)


def steps(scenario: Scenario, rng: Random, records: int) -> list[Step]:
    """Draws the steps of a case."""
    now, result = 0, []
    topics = sorted(scenario.inputs)
    weights = [scenario.inputs[topic].weight for topic in topics]
    for number in range(records):
        if scenario.clock and rng.random() < scenario.clock:
            result.append(clock(rng.randint(1, 25)))
        topic = rng.choices(topics, weights)[0]
        now += rng.randint(0, scenario.time_step)
        if rng.random() < 0.03:
            now += 40  # a jump of stream time
        ts = max(0, now - rng.randint(1, scenario.back)) if rng.random() < scenario.late else now
        key = None if rng.random() < scenario.null_keys else rng.choice(scenario.inputs[topic].keys)
        value = None if rng.random() < scenario.nulls else scenario.inputs[topic].value(rng)
        headers = [("h", rng.choice("123"))] if rng.random() < scenario.headers else []
        result.append(pipe(topic, key, value, ts, headers))
        if number % 12 == 11:
            result += scenario.queries
    return result


# ---------------------------------------------------------------- value makers


def word(rng: Random) -> str:
    """One letter."""
    return rng.choice("abcdefgh")


def small(rng: Random) -> str:
    """A small integer as text."""
    return str(rng.randint(-3, 12))


def grouped(rng: Random) -> str:
    """A group and a digit: ``x|3``."""
    return f"{rng.choice('xyz')}|{rng.randint(0, 9)}"


def foreign(rng: Random) -> str:
    """A foreign key and a digit: ``xx|3``."""
    return f"{rng.choice(['x', 'y', 'z', 'xx'])}|{rng.randint(0, 9)}"


def csv(rng: Random) -> str:
    """Up to three letters with commas between them; may be empty."""
    return ",".join(rng.choice("pqr") for _ in range(rng.randint(0, 3)))
