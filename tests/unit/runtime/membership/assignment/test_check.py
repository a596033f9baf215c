"""Assignments that do not fit the topology are refused, by the member and by the leader."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.check import (
    MemberAssignment,
    SubtopologyInputs,
    WrongAssignmentError,
    check_group,
    paired_tasks,
)
from pykstreams.runtime.membership.assignment.group import Task
from pykstreams.runtime.membership.protocol.assignment_info import AssignmentInfo

TOPOLOGY = {
    0: SubtopologyInputs(frozenset({"orders", "prices"}), stateful=True),
    1: SubtopologyInputs(frozenset({"visits"}), stateful=False),
}
COUNTS = {"orders": 2, "prices": 2, "visits": 3}
ORDERS = [TopicPartition("orders", number) for number in range(3)]
PRICES = [TopicPartition("prices", number) for number in range(3)]
VISITS = [TopicPartition("visits", number) for number in range(4)]
TASK_00, TASK_01, TASK_10 = TaskId(0, 0), TaskId(0, 1), TaskId(1, 0)
TASKS = (
    Task(TASK_00, frozenset({ORDERS[0], PRICES[0]}), frozenset({TopicPartition("log", 0)})),
    Task(TASK_01, frozenset({ORDERS[1], PRICES[1]}), frozenset({TopicPartition("log", 1)})),
    Task(TASK_10, frozenset({VISITS[0]})),
)


def assigned(
    partitions: list[TopicPartition],
    active: list[TaskId],
    standby: Mapping[TaskId, frozenset[TopicPartition]] | None = None,
) -> MemberAssignment:
    return MemberAssignment(tuple(partitions), AssignmentInfo(tuple(active), standby or {}))


def test_the_nth_task_belongs_to_the_nth_partition_in_their_order() -> None:
    given = assigned(
        [VISITS[0], PRICES[0], ORDERS[0]],
        [TASK_00, TASK_00, TASK_10],
        {TASK_01: frozenset({ORDERS[1], PRICES[1]})},
    )
    assert paired_tasks(given, TOPOLOGY, COUNTS) == {
        TASK_00: {ORDERS[0], PRICES[0]},
        TASK_10: {VISITS[0]},
    }


def test_a_topic_with_fewer_partitions_is_read_by_the_first_tasks_only() -> None:
    given = assigned([ORDERS[1]], [TASK_01])
    assert paired_tasks(given, TOPOLOGY, {**COUNTS, "prices": 1}) == {TASK_01: {ORDERS[1]}}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (assigned([ORDERS[0]], []), "1 partitions come with 0 tasks"),
        (assigned([VISITS[0], VISITS[0]], [TASK_10, TASK_10]), "a partition is there twice: visits-0, visits-0"),
        (assigned([VISITS[0]], [TaskId(7, 0)]), r"task 7_0 is of sub-topology 7; there are \[0, 1\]"),
        (assigned([VISITS[0]], [TASK_00]), "task 0_0 comes with visits-0, but sub-topology 0 reads orders, prices"),
        (
            assigned([ORDERS[0], ORDERS[1], PRICES[0], PRICES[1]], [TASK_01, TASK_00] * 2),
            "task 0_1 comes with orders-0, which is of task 0_0",
        ),
        (assigned([ORDERS[0]], [TASK_00]), "task 0_0 comes with orders-0; .* it reads orders-0, prices-0"),
        (assigned([VISITS[3]], [TaskId(1, 3)]), "task 1_3 comes with visits-3; .* it reads no partitions"),
        (assigned([], [], {TASK_10: frozenset({VISITS[0]})}), "task 1_0 is a standby task, but has no state"),
        (assigned([], [], {TASK_00: frozenset({ORDERS[0]})}), "task 0_0 comes with orders-0; .* orders-0, prices-0"),
        (
            assigned([ORDERS[0], PRICES[0]], [TASK_00] * 2, {TASK_00: frozenset({ORDERS[0], PRICES[0]})}),
            "task 0_0 is active and standby at once",
        ),
    ],
)
def test_a_member_runs_nothing_of_an_assignment_that_does_not_fit(given: MemberAssignment, problem: str) -> None:
    with pytest.raises(WrongAssignmentError, match=problem):
        paired_tasks(given, TOPOLOGY, COUNTS)


def test_the_error_says_what_to_compare() -> None:
    with pytest.raises(WrongAssignmentError, match="All members must run the same topology; compare theirs"):
        paired_tasks(assigned([ORDERS[0]], []), TOPOLOGY, COUNTS)


GOOD = {
    "a": assigned([ORDERS[0], PRICES[0]], [TASK_00] * 2, {TASK_01: frozenset({ORDERS[1], PRICES[1]})}),
    "b": assigned([ORDERS[1], PRICES[1], VISITS[0]], [TASK_01, TASK_01, TASK_10]),
}


def test_what_fits_may_be_sent() -> None:
    check_group(GOOD, TASKS, {VISITS[0]: "b"})


@pytest.mark.parametrize(
    ("member", "given", "problem"),
    [
        ("b", assigned([PRICES[1], ORDERS[1]], [TASK_01] * 2), "the partitions of b are not in their order"),
        ("b", assigned([VISITS[0]], []), "b is given 1 partitions with 0 tasks"),
        ("b", assigned([VISITS[0]], [TaskId(1, 4)]), "b is given task 1_4, which there is not"),
        ("b", assigned([ORDERS[1]], [TASK_01]), "b is given task 0_1 with orders-1; its inputs are orders-1, prices-1"),
        ("b", assigned([ORDERS[0], PRICES[0]], [TASK_00] * 2), "task 0_0 is given to a and to b"),
        (
            "b",
            assigned([], [], {TASK_10: frozenset({VISITS[0]})}),
            "b is given standby task 1_0, which is",
        ),
        ("c", assigned([VISITS[0]], [TASK_10]), "task 1_0 is given to c while b still works on it"),
    ],
)
def test_what_does_not_fit_is_not_sent(member: str, given: MemberAssignment, problem: str) -> None:
    with pytest.raises(WrongAssignmentError, match=problem):
        check_group({"a": GOOD["a"], member: given}, TASKS, {VISITS[0]: "b"})
