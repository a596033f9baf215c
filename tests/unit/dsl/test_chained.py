"""A method that a step has not, and another one has: the error says how to get there."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from pykstreams import KGroupedStream, KGroupedTable, KStream, KTable, StreamsBuilder
from pykstreams.dsl.branching import BranchedKStream
from pykstreams.dsl.chained import Chained

STEPS = (KStream, KTable, KGroupedStream, KGroupedTable, BranchedKStream)


def orders() -> KStream[str, int]:
    return StreamsBuilder().stream("orders", str, int)


@pytest.mark.parametrize(
    ("make", "method", "told"),
    [
        (lambda: orders().to_table(), "to", "'KTable' object has no attribute 'to'; make it a stream first: to_stream"),
        (orders, "count", "'KStream' object has no attribute 'count'; group it first: group_by_key().count(...)"),
        (lambda: orders().group_by_key(), "to", "; aggregate it first"),
        (lambda: orders().to_table().group_by(lambda key, value: (key, value)), "to_stream", "; aggregate it first"),
        (lambda: orders().to_table(), "aggregate", "; group it first: group_by(...).aggregate(...)"),
    ],
)
def test_error_for_a_method_of_another_step_says_how_to_get_there(
    make: Callable[[], Chained], method: str, told: str
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
