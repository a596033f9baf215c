"""What assignors see and answer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pykstreams.assignment import AssignedTask, KafkaStreamsAssignment, KafkaStreamsState, ProcessId, TaskType
from pykstreams.core.errors import TaskAssignmentError
from pykstreams.core.ids import TaskId
from tests.unit.runtime.membership.assignors.applications import COUNTS, A, B, an_application, an_instance, given

OTHER = TaskId(0, 1)


def test_lags_are_there_when_they_are_asked_for() -> None:
    state = KafkaStreamsState(A, {"b": [OTHER, COUNTS, TaskId(9, 9)], "a": []}, task_lags={COUNTS: -2, OTHER: 40})
    application = an_application(state)
    known = application.kafka_streams_states(compute_task_lags=True)[A]
    assert known.num_processing_threads == 2
    assert known.consumer_client_ids == ("a", "b")
    assert known.lag_for(OTHER) == 40
    assert known.stateful_tasks_to_lag_sums == {COUNTS: -2, OTHER: 40}
    assert known.prev_tasks_by_lag("b") == [COUNTS, OTHER]
    assert known.prev_tasks_by_lag("nobody") == []
    with pytest.raises(ValueError, match="no lag of task 9_9; tasks with state are 0_0, 0_1"):
        known.lag_for(TaskId(9, 9))
    with pytest.raises(RuntimeError, match=r"kafka_streams_states\(compute_task_lags=True\)"):
        application.kafka_streams_states(compute_task_lags=False)[A].lag_for(OTHER)


def test_lags_that_could_not_be_found_out_are_an_error_that_may_pass() -> None:
    application = an_application(an_instance(A, lags={COUNTS: 0}), an_instance(B))
    assert list(application.kafka_streams_states(compute_task_lags=False)) == [A, B]
    with pytest.raises(TaskAssignmentError, match=f"how far instance {B} is behind is unknown"):
        application.kafka_streams_states(compute_task_lags=True)


def test_an_instance_without_consumers_is_none() -> None:
    with pytest.raises(ValueError, match=f"instance {A} has no consumers"):
        KafkaStreamsState(A, {})


def test_a_task_is_on_an_instance_once() -> None:
    one = given(A, (COUNTS,))
    one.assign_task(AssignedTask(COUNTS, TaskType.STANDBY))
    assert one.tasks == {COUNTS: AssignedTask(COUNTS, TaskType.STANDBY)}
    one.remove_task(AssignedTask(COUNTS, TaskType.ACTIVE))
    one.remove_task(AssignedTask(OTHER, TaskType.ACTIVE))
    assert one.tasks == {}
    with pytest.raises(ValueError, match="task 0_0 is to be active and standby on instance"):
        KafkaStreamsAssignment(A, [AssignedTask(COUNTS, kind) for kind in TaskType])


def test_a_follow_up_is_asked_for_by_a_copy() -> None:
    one = given(A, (COUNTS,), (OTHER,))
    later = one.with_followup_rebalance(datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC))
    one.remove_task(AssignedTask(COUNTS, TaskType.ACTIVE))
    assert later.followup_rebalance_deadline == 5_000
    assert one.followup_rebalance_deadline is None
    assert repr(later) == f"KafkaStreamsAssignment({A}, active=[0_0], standby=[0_1], followup_rebalance_deadline=5000)"


def test_random_process_ids_differ() -> None:
    assert ProcessId.random() != ProcessId.random()
