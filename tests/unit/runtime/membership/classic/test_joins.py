"""When a member joins the group again."""

from __future__ import annotations

from pykstreams.runtime.membership.classic.joins import Joins
from pykstreams.runtime.membership.protocol.assignment_info import NEVER
from pykstreams.testing import MockClock


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
