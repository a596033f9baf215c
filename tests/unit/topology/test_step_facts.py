"""Facts of steps for drawings: the user's functions, windows, and the tables that are looked into."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import timedelta

import pytest

from pykstreams import (
    CountWindows,
    JoinWindows,
    KStream,
    Processor,
    Record,
    Retry,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    UnlimitedWindows,
)
from pykstreams.topology.step_facts import StepFacts, described_windows, facts_of

MINUTE = timedelta(minutes=1)

Build = Callable[[StreamsBuilder, KStream[str, int]], object]


class Adder:
    def of(self, value: int) -> int:
        return value

    def __call__(self, value: int) -> int:
        return value


class Doubling(Processor[str, int, str, int]):
    def process(self, record: Record[str, int]) -> None:
        """Forwards nothing."""


def is_large(key: str, value: int) -> bool:
    return value > 5


def add(key: str, value: int, total: int) -> int:
    return total + value


def merge(key: str, one: int, other: int) -> int:
    return one + other


def both(value: int, other: int) -> int:
    return value + other


def zero() -> int:
    return 0


def key_of(key: str, value: int) -> str:
    return key


@pytest.mark.parametrize(
    ("build", "functions"),
    [
        (lambda b, s: s.filter(is_large), ("is_large",)),
        (lambda b, s: s.filter(is_large, retry=Retry()), ("is_large",)),
        (lambda b, s: s.map_values(str), ("str",)),
        (lambda b, s: s.map_values(Adder().of), ("Adder.of",)),
        (lambda b, s: s.map_values(Adder()), ("Adder",)),
        (lambda b, s: s.map_values(functools.partial(both, 1)), ("both",)),
        (lambda b, s: s.process(Doubling), ("Doubling",)),
        (lambda b, s: s.group_by_key().count(), ()),
        (lambda b, s: s.group_by_key().reduce(both), ("both",)),
        (lambda b, s: s.group_by_key().aggregate(zero, add), ("zero", "add")),
        (lambda b, s: s.group_by_key().windowed_by(TimeWindows(5)).reduce(both), ("both",)),
        (
            lambda b, s: s.group_by_key().windowed_by(SessionWindows(5)).aggregate(zero, add, merge),
            ("zero", "add", "merge"),
        ),
        (lambda b, s: s.join(b.table("t", str, int), both), ("both",)),
        (lambda b, s: s.join(b.global_table("t", str, int), both, key_selector=key_of), ("both", "key_of")),
    ],
)
def test_functions_of_the_user_are_those_of_a_step(build: Build, functions: tuple[str, ...]) -> None:
    assert last_facts(build).functions == functions


def test_a_lambda_is_told_by_its_line() -> None:
    (name,) = last_facts(lambda b, s: s.filter(lambda key, value: True)).functions

    line = test_a_lambda_is_told_by_its_line.__code__.co_firstlineno + 1
    assert name == f"lambda (line {line})"


@pytest.mark.parametrize(
    ("windows", "text"),
    [
        (TimeWindows(5 * MINUTE), "5 min"),
        (TimeWindows(5 * MINUTE, advance_by=MINUTE, grace=1), "5 min every 1 min, grace 1 ms"),
        (SlidingWindows(timedelta(days=2)), "sliding 2 d"),
        (SessionWindows(90 * MINUTE, grace=timedelta(hours=3)), "sessions with gaps of 90 min, grace 3 h"),
        (UnlimitedWindows(), "unlimited"),
        (CountWindows(100), "100 records"),
        (JoinWindows(MINUTE), "within 1 min"),
        (JoinWindows(MINUTE, before=0), "0 ms before to 1 min after"),
    ],
)
def test_windows_are_told_in_the_largest_unit_that_fits(windows: object, text: str) -> None:
    assert described_windows(windows) == text


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda b, s: s.group_by_key().windowed_by(TimeWindows(5 * MINUTE)).count(), "5 min"),
        (lambda b, s: s.group_by_key().windowed_by(SlidingWindows(MINUTE)).count(), "sliding 1 min"),
        (lambda b, s: s.group_by_key().windowed_by(CountWindows(3)).count(), "3 records"),
        (lambda b, s: s.join(s, both, windows=JoinWindows(MINUTE, grace=1000)), "within 1 min, grace 1 s"),
        (lambda b, s: s.filter(is_large), None),
    ],
)
def test_windows_of_a_step_are_told(build: Build, text: str | None) -> None:
    assert text in {facts.windows for facts in all_facts(build)}


def test_a_join_tells_the_global_store_that_it_reads() -> None:
    facts = last_facts(
        lambda b, s: s.join(b.global_table("all", str, int, materialized="kept"), both, key_selector=key_of)
    )

    assert facts.tables == ("kept",)


def all_facts(build: Build) -> list[StepFacts]:
    builder = StreamsBuilder()
    build(builder, builder.stream("in", str, int))
    nodes = builder.build()._definition.nodes.values()
    return [facts_of(node.supplier) for node in nodes if hasattr(node, "supplier")]


def last_facts(build: Build) -> StepFacts:
    return all_facts(build)[-1]
