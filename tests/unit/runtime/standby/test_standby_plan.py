"""Which standby tasks an instance wants, by what the group answers."""

from __future__ import annotations

import pytest

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.standby.standby_plan import StandbyPlan
from tests.unit.runtime.standby.fake_group import FakeGroupView

FIRST, SECOND = TaskId(0, 0), TaskId(0, 1)
ORDERS, OTHER_ORDERS = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def group() -> FakeGroupView:
    return FakeGroupView()


@pytest.fixture
def plan(group: FakeGroupView) -> StandbyPlan:
    stateful = {FIRST: frozenset({ORDERS}), SECOND: frozenset({OTHER_ORDERS})}
    return StandbyPlan(group, instance="me", replicas=1, stateful=stateful)


def test_tasks_that_work_elsewhere_are_wanted_here(group: FakeGroupView, plan: StandbyPlan) -> None:
    group.tasks = {"me": frozenset({SECOND}), "you": frozenset({FIRST})}

    assert plan.wanted(()) == {FIRST}


def test_tasks_without_state_are_not_wanted(group: FakeGroupView, plan: StandbyPlan) -> None:
    group.tasks = {"me": frozenset(), "you": frozenset({TaskId(1, 0)})}

    assert plan.wanted(()) == set()


def test_standbys_whose_task_nobody_works_on_stay(group: FakeGroupView, plan: StandbyPlan) -> None:
    group.tasks = {"me": frozenset({SECOND}), "you": frozenset()}

    assert plan.wanted({FIRST, SECOND}) == {FIRST}


def test_nothing_is_known_while_tasks_are_shared_out(group: FakeGroupView, plan: StandbyPlan) -> None:
    group.tasks = None

    assert plan.wanted({FIRST}) is None


def test_inputs_are_limited_by_what_was_committed_when_it_was_asked_for_last(
    group: FakeGroupView, plan: StandbyPlan
) -> None:
    before = plan.limits(FIRST)
    group.offsets = {ORDERS: (7, "")}
    asked = plan.ask_committed({FIRST, SECOND})
    group.offsets_are_known = False
    again = plan.ask_committed({FIRST})

    assert (asked, again) == (True, False)
    assert (before, plan.limits(FIRST), plan.limits(SECOND)) == ({ORDERS: 0}, {ORDERS: 7}, {OTHER_ORDERS: 0})
    assert (plan.committed(FIRST), plan.committed(SECOND)) == ({ORDERS: (7, "")}, {})
