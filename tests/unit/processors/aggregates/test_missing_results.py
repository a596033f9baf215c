"""Aggregators that are annotated to return an aggregate, and return ``None``: the row goes, and it is said."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Optional, TypedDict, cast

import pytest

from pykstreams import Grouped, SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows
from pykstreams.processors import StreamAggregate
from pykstreams.testing import TopologyTestDriver
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore

forgotten = None
"""The result of a function that ends without ``return``."""


@dataclass
class Total:
    cents: int


class Counts(TypedDict):
    orders: int


def add(key: str, value: int, total: int) -> int:
    if value > 0:
        return total + value
    return cast("int", forgotten)


def add_to_total(key: str, value: int, total: Total) -> Total:
    return cast("Total", forgotten)


def add_to_counts(key: str, value: int, total: Counts) -> Counts:
    return cast("Counts", forgotten)


class Adder:
    def __call__(self, key: str, value: int, total: int) -> int:
        return cast("int", forgotten)


def add_or_delete(key: str, value: int, total: int) -> int | None:
    return None


def add_or_drop(key: str, value: int, total: int) -> Optional[int]:  # noqa: UP045 - the older spelling
    return None


def add_anything(key: str, value: int, total: int) -> Any:
    return None


def add_hashable(key: str, value: int, total: int) -> Hashable:
    return None


def add_of_no_type(key: str, value: int, total: int) -> None:
    return None


def add_of_unknown_type(key: str, value: int, total: int) -> None:
    return None


del add_of_no_type.__annotations__["return"]
add_of_unknown_type.__annotations__["return"] = "Missing"


def larger(one: int, other: int) -> int:
    return cast("int", forgotten)


def zero() -> int:
    return 0


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def run(aggregator: Callable[..., Any], context: FakeOperatorContext | None = None) -> FakeOperatorContext:
    context = context or FakeOperatorContext(s=FakeStore())
    process = context.start(StreamAggregate("s", lambda: 0, aggregator))
    for number in range(3):
        process("a", -number, 5, ())
    return context


@pytest.mark.parametrize(
    ("aggregator", "name", "type_"),
    [
        (add, "add", "int"),
        (add_to_total, "add_to_total", "Total"),
        (add_to_counts, "add_to_counts", "Counts"),
        (functools.partial(add), "add", "int"),
        (Adder(), "Adder.__call__", "int"),
    ],
)
def test_missing_aggregate_is_warned_of_once(
    aggregator: Callable[..., Any], name: str, type_: str, caplog: pytest.LogCaptureFixture
) -> None:
    context = run(aggregator)

    (text,) = warnings(caplog)
    assert text.startswith("NODE: ")
    assert f".{name} (" in text
    assert f"is annotated to return {type_}, and returned None: the row of the key is deleted" in text
    assert f"or annotate it to return {type_} | None" in text
    assert context.failed == []


def test_missing_aggregate_is_warned_of_again_after_an_interval(caplog: pytest.LogCaptureFixture) -> None:
    context = FakeOperatorContext(s=FakeStore())
    process = context.start(StreamAggregate("s", lambda: 0, add))
    process("a", 0, 5, ())
    process("a", 0, 5, ())
    context.processing.now_ms += 60_000
    process("a", 0, 5, ())

    first, second = warnings(caplog)
    assert second == f"{first} (1 more time since the last warning)"


@pytest.mark.parametrize(
    "aggregator",
    [
        add_or_delete,
        add_or_drop,
        add_anything,
        add_hashable,
        add_of_no_type,
        add_of_unknown_type,
        lambda key, value, total: None,
    ],
)
def test_aggregate_that_may_be_missing_is_not_warned_of(
    aggregator: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    run(aggregator)

    assert warnings(caplog) == []


def windowed(builder: StreamsBuilder, windows: Any) -> Any:
    return builder.stream("in", str, int).group_by_key().windowed_by(windows)


def take(key: str, value: int, total: int) -> int:
    return cast("int", forgotten)


def smaller(one: int, other: int) -> int:
    return cast("int", forgotten)


def grouped(builder: StreamsBuilder) -> Any:
    return builder.table("in", str, int).group_by(
        lambda key, value: (key, value), Grouped(key_serde=str, value_serde=int)
    )


@pytest.mark.parametrize(
    ("make", "function"),
    [
        (lambda b: grouped(b).aggregate(zero, add, take), "add"),
        (lambda b: grouped(b).aggregate(zero, lambda key, value, total: 5, take), "take"),
        (lambda b: grouped(b).reduce(lambda one, other: other, smaller), "smaller"),
        (lambda b: grouped(b).reduce(larger, lambda one, other: one), "larger"),
        (lambda b: b.stream("in", str, int).group_by_key().aggregate(zero, add), "add"),
        (lambda b: b.stream("in", str, int).group_by_key().reduce(larger), "larger"),
        (lambda b: b.stream("in", str, int).group_by_key().cogroup(add).aggregate(zero), "add"),
        (lambda b: windowed(b, TimeWindows(10)).aggregate(zero, add), "add"),
        (lambda b: windowed(b, SlidingWindows(10)).aggregate(zero, add), "add"),
        (lambda b: windowed(b, SessionWindows(10)).aggregate(zero, add, lambda key, one, other: one + other), "add"),
        (lambda b: windowed(b, TimeWindows(10)).reduce(larger), "larger"),
        (lambda b: windowed(b, TimeWindows(10)).reduce(functools.partial(larger)), "larger"),
        (lambda b: windowed(b, SlidingWindows(10)).reduce(larger), "larger"),
        (lambda b: windowed(b, SessionWindows(10)).reduce(larger), "larger"),
    ],
)
def test_each_aggregation_warns_of_it(
    make: Callable[[StreamsBuilder], object], function: str, caplog: pytest.LogCaptureFixture
) -> None:
    builder = StreamsBuilder()
    make(builder)
    with TopologyTestDriver(builder.build()) as driver:
        source = driver.create_input_topic("in", str, int)
        source.pipe_input("a", 0, 100)
        source.pipe_input("a", 0, 101)

    said = [text for text in warnings(caplog) if f"{function} (" in text and "returned None" in text]
    assert len(said) == 1
