"""Which standby tasks a process wants, by what its members were assigned."""

from __future__ import annotations

import pytest

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.standby.standby_plan import StandbyPlan
from tests.unit.runtime.standby.fake_group_offsets import FakeGroupOffsets

FIRST, SECOND = TaskId(0, 0), TaskId(0, 1)
ORDERS, OTHER_ORDERS = frozenset({TopicPartition("orders", 0)}), frozenset({TopicPartition("orders", 1)})
(ORDER,) = ORDERS


@pytest.fixture
def group() -> FakeGroupOffsets:
    return FakeGroupOffsets()


@pytest.fixture
def plan(group: FakeGroupOffsets) -> StandbyPlan:
    return StandbyPlan(group)


def test_the_standby_tasks_of_all_members_are_wanted(plan: StandbyPlan) -> None:
    plan.assigned("one", {FIRST: ORDERS})
    plan.assigned("two", {SECOND: OTHER_ORDERS})

    assert plan.wanted() == {FIRST: ORDERS, SECOND: OTHER_ORDERS}
    assert (plan.member_of(FIRST), plan.member_of(SECOND)) == ("one", "two")


def test_an_assignment_takes_the_place_of_the_one_before(plan: StandbyPlan) -> None:
    plan.assigned("one", {FIRST: ORDERS})
    plan.assigned("two", {})
    plan.assigned("one", {SECOND: OTHER_ORDERS})

    assert plan.wanted() == {SECOND: OTHER_ORDERS}
    assert plan.member_of(FIRST) is None


def test_a_task_that_moves_between_members_is_kept_once_and_counts_for_one(plan: StandbyPlan) -> None:
    plan.assigned("one", {FIRST: ORDERS})
    plan.assigned("two", {FIRST: ORDERS})
    before = plan.member_of(FIRST)
    plan.assigned("one", {})

    assert (before, plan.member_of(FIRST), plan.wanted()) == ("one", "two", {FIRST: ORDERS})


def test_a_task_that_is_active_in_a_member_of_the_process_is_not_wanted_before_that_has_given_it_up(
    plan: StandbyPlan,
) -> None:
    plan.assigned("one", {}, [FIRST])
    plan.assigned("two", {FIRST: ORDERS, SECOND: OTHER_ORDERS})
    before, was_active = plan.wanted(), plan.is_active(FIRST)
    plan.assigned("one", {})

    assert (before, was_active) == ({SECOND: OTHER_ORDERS}, True)
    assert plan.wanted() == {FIRST: ORDERS, SECOND: OTHER_ORDERS}
    assert not plan.is_active(FIRST)


def test_inputs_are_limited_by_what_was_committed_when_it_was_asked_for_last(
    group: FakeGroupOffsets, plan: StandbyPlan
) -> None:
    tasks = {FIRST: ORDERS, SECOND: OTHER_ORDERS}
    group.are_known = False
    unknown = plan.ask_committed(tasks)
    before = plan.limits(FIRST)
    group.are_known, group.offsets = True, {ORDER: (7, "")}
    known = plan.ask_committed(tasks)
    group.are_known = False
    again = plan.ask_committed(tasks)

    assert (unknown, known, again) == (False, True, False)
    assert (before, plan.limits(FIRST)) == ({ORDER: 0}, {ORDER: 7})
    assert plan.limits(SECOND) == {TopicPartition("orders", 1): 0}
    assert (plan.committed(FIRST), plan.committed(SECOND)) == ({ORDER: (7, "")}, {})


def test_nobody_is_asked_about_no_tasks(group: FakeGroupOffsets, plan: StandbyPlan) -> None:
    assert plan.ask_committed({})
    assert group.asked == 0
