"""When a worker commits, and while its transaction takes nothing more."""

from __future__ import annotations

import pytest

from pykstreams.runtime.worker.commits.commit_schedule import CommitSchedule
from pykstreams.testing import MockClock


def test_a_commit_that_waits_is_due_again_sooner_than_the_next_one() -> None:
    schedule = CommitSchedule(MockClock(), 30.0, 0.1, exactly_once=False)
    begun = schedule.left_s
    schedule.waits()
    waiting = schedule.left_s
    schedule.done()

    assert (begun, waiting, schedule.left_s) == pytest.approx((30.0, 0.1, 30.0))


@pytest.mark.parametrize("exactly_once", [True, False])
def test_only_a_transaction_takes_nothing_more_while_its_commit_waits(exactly_once: bool) -> None:
    schedule = CommitSchedule(MockClock(), 30.0, 0.1, exactly_once=exactly_once)
    schedule.waits()
    waits = schedule.transaction_waits
    schedule.done()

    assert (waits, schedule.transaction_waits) == (exactly_once, False)


def test_a_transaction_that_was_given_up_waits_no_more() -> None:
    schedule = CommitSchedule(MockClock(), 30.0, 0.1, exactly_once=True)
    schedule.waits()
    schedule.begin_anew()

    assert not schedule.transaction_waits
