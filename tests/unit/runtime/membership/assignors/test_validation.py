"""Mistakes of assignments, in the order in which Java looks for them."""

from __future__ import annotations

import pytest

from pykstreams.assignment import (
    AssignmentError,
    KafkaStreamsAssignment,
    TaskAssignment,
    TaskInfo,
    validate_task_assignment,
)
from pykstreams.core.ids import TaskId
from tests.unit.runtime.membership.assignors.applications import (
    COUNTS,
    FORWARDS,
    TASKS,
    A,
    B,
    C,
    an_application,
    given,
)

NOWHERE = TaskId(7, 7)


@pytest.mark.parametrize(
    ("assignments", "mistake", "logged"),
    [
        ([given(A, (COUNTS,), ()), given(B, (FORWARDS,), (COUNTS,))], AssignmentError.NONE, ""),
        ([given(A), given(B)], AssignmentError.NONE, ""),
        ([given(A, (NOWHERE,)), given(C)], AssignmentError.UNKNOWN_TASK_ID, "task 7_7"),
        ([given(A, (COUNTS,)), given(B, (COUNTS,))], AssignmentError.ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES, "task 0_0"),
        ([given(A, (FORWARDS,)), given(B, (), (FORWARDS,))], AssignmentError.INVALID_STANDBY_TASK, "task 1_0"),
        ([given(A, (COUNTS, FORWARDS)), given(C)], AssignmentError.MISSING_PROCESS_ID, f"instance {B}"),
        ([given(A, (COUNTS, FORWARDS)), given(B), given(C)], AssignmentError.UNKNOWN_PROCESS_ID, f"instance {C}"),
    ],
)
def test_the_first_mistake_is_returned_and_logged(
    assignments: list[KafkaStreamsAssignment],
    mistake: AssignmentError,
    logged: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert validate_task_assignment(an_application(), TaskAssignment(assignments)) is mistake
    assert logged in caplog.text


def test_a_task_whose_only_store_has_no_changelog_may_have_standby_tasks() -> None:
    unlogged = TaskInfo(FORWARDS, TASKS[1].topic_partitions, frozenset({"local"}))
    state = an_application(tasks=(unlogged,))
    assignment = TaskAssignment([given(A, (FORWARDS,)), given(B, (), (FORWARDS,))])
    assert validate_task_assignment(state, assignment) is AssignmentError.NONE
