"""When a member joins the group again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pykstreams.runtime.membership.classic.joins import Joins
from pykstreams.runtime.membership.protocol.assignment_info import NEVER
from pykstreams.testing import MockClock
from tests.unit.runtime.membership.adjusted_clock import AdjustedClock


def test_a_member_joins_again_when_its_time_has_come() -> None:
    clock = MockClock()
    joins = Joins(clock)
    before = joins.is_due
    joins.again_in(1_000)
    clock.advance(999)
    early = joins.is_due
    clock.advance(1)

    assert (before, early, joins.is_due) == (False, False, True)
    joins.again_at(NEVER)
    assert not joins.is_due


@pytest.mark.parametrize("wait", [lambda joins: joins.again_in(1_000), lambda joins: joins.again_at(61_000)])
def test_a_clock_that_is_set_back_meanwhile_delays_no_join(wait: Callable[[Joins], None]) -> None:
    clock = AdjustedClock(60_000)
    joins = Joins(clock)
    wait(joins)
    clock.set_back(50_000)
    clock.advance(999)
    early = joins.is_due
    clock.advance(1)

    assert (early, joins.is_due) == (False, True)


def test_a_join_that_begins_is_the_one_that_was_due() -> None:
    clock = MockClock()
    joins = Joins(clock)
    joins.soon = "the topics have changed"
    joins.again_in(0)
    joins.begin()
    clock.advance(3_000)

    assert joins.soon is None
    assert (joins.under_way, joins.is_due, joins.waited_s) == (True, False, 3.0)
    joins.end()
    assert not joins.under_way
