"""A method that a step has not, and another one has: the error says how to get there."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from pykstreams import (
    CogroupedKStream,
    CountWindows,
    GlobalKTable,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    SessionWindowedKStream,
    SessionWindows,
    StreamsBuilder,
    TimeWindowedKStream,
    TimeWindows,
)
from pykstreams.core.user_code.tells_where import TellsWhere
from pykstreams.dsl.branching import BranchedKStream
from pykstreams.dsl.cogrouped import SessionWindowedCogroupedKStream, TimeWindowedCogroupedKStream
from pykstreams.dsl.count_windowed import CountWindowedKStream

STEPS = (
    KStream,
    KTable,
    KGroupedStream,
    KGroupedTable,
    BranchedKStream,
    TimeWindowedKStream,
    SessionWindowedKStream,
    CountWindowedKStream,
    CogroupedKStream,
    TimeWindowedCogroupedKStream,
    SessionWindowedCogroupedKStream,
    GlobalKTable,
)


def orders() -> KStream[str, int]:
    return StreamsBuilder().stream("orders", str, int)


def add(key: str, value: int, total: int) -> int:
    return total + value


def cogrouped() -> CogroupedKStream[str, int]:
    return orders().group_by_key().cogroup(add)


@pytest.mark.parametrize(
    ("make", "method", "told"),
    [
        (lambda: orders().to_table(), "to", "'KTable' object has no attribute 'to'; make it a stream first: to_stream"),
        (orders, "count", "'KStream' object has no attribute 'count'; group it first: group_by_key().count(...)"),
        (lambda: orders().group_by_key(), "to", "; aggregate it first"),
        (lambda: orders().to_table().group_by(lambda key, value: (key, value)), "to_stream", "; aggregate it first"),
        (lambda: orders().to_table(), "aggregate", "; group it first: group_by(...).aggregate(...)"),
        (lambda: orders().group_by_key(), "emit_strategy", "; give it windows first: windowed_by(...)"),
        (lambda: orders().group_by_key().windowed_by(TimeWindows(5)), "to_stream", "; aggregate it first, by count()"),
        (lambda: orders().group_by_key().windowed_by(SessionWindows(5)), "to", "; aggregate it first, by count()"),
        (lambda: orders().group_by_key().windowed_by(CountWindows(5)), "to", "; aggregate it first, by count()"),
        (cogrouped, "count", "; aggregate it first, by aggregate(initializer)"),
        (lambda: cogrouped().windowed_by(TimeWindows(5)), "to_stream", "; aggregate it first, by aggregate("),
        (lambda: cogrouped().windowed_by(SessionWindows(5)), "to_stream", "; aggregate it first, by aggregate("),
        (lambda: StreamsBuilder().global_table("rates", str, int), "to_stream", "; a global table can be joined only"),
    ],
)
def test_error_for_a_method_of_another_step_says_how_to_get_there(
    make: Callable[[], TellsWhere], method: str, told: str
) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(make(), method)

    assert told in str(raised.value)


def test_error_for_a_method_that_no_step_has_is_as_that_of_python() -> None:
    stream = orders()
    with pytest.raises(AttributeError, match=r"^'KStream' object has no attribute 'mapValues'$") as raised:
        getattr(stream, "mapValues")  # noqa: B009  # a type checker would refuse the name

    assert (raised.value.name, raised.value.obj) == ("mapValues", stream), "Python guesses the right name by them"


def test_step_can_be_copied() -> None:
    assert repr(copy.copy(orders())) == repr(orders())


@pytest.mark.parametrize("step", STEPS)
def test_methods_of_other_steps_are_there(step: type) -> None:
    for name in getattr(step, "_elsewhere", {}):
        assert name not in dir(step)
        assert any(name in dir(other) for other in STEPS)
