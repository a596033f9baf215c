"""What the helpers of assignors refuse, and when they do nothing; the rest is held against Java's."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pykstreams.assignment import (
    AssignmentConfigs,
    KafkaStreamsAssignment,
    RackAwareOptimizationParams,
    default_standby_task_assignment,
    optimize_rack_aware_active_tasks,
    optimize_rack_aware_standby_tasks,
)
from pykstreams.core.ids import TaskId
from tests.unit.runtime.membership.assignors.applications import (
    A,
    B,
    C,
    a_task,
    an_application,
    an_instance,
    given,
)

EAST, WEST = TaskId(0, 0), TaskId(0, 1)
BY_RACKS = AssignmentConfigs(
    rack_aware_assignment_strategy="min_traffic", rack_aware_traffic_cost=10, rack_aware_non_overlap_cost=1
)
FAR = tuple(a_task(task, stateful=True, racks=frozenset({rack})) for task, rack in ((EAST, "e"), (WEST, "w")))


def application(configs: AssignmentConfigs = BY_RACKS, rack: str | None = "w") -> Any:
    return an_application(an_instance(A, rack="e"), an_instance(B, rack=rack), tasks=FAR, configs=configs)


def crossed() -> dict[Any, KafkaStreamsAssignment]:
    return {A: given(A, (WEST,)), B: given(B, (EAST,))}


def test_tasks_are_swapped_to_the_racks_of_their_partitions() -> None:
    assignments = crossed()
    optimize_rack_aware_active_tasks(RackAwareOptimizationParams(application()), assignments)
    assert {process: list(one.tasks) for process, one in assignments.items()} == {A: [EAST], B: [WEST]}


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        (RackAwareOptimizationParams(application(AssignmentConfigs())), "strategy is 'none'"),
        (
            RackAwareOptimizationParams(
                application(AssignmentConfigs(rack_aware_assignment_strategy="min_traffic")), traffic_cost=1
            ),
            "set rack.aware.assignment.traffic_cost",
        ),
        (RackAwareOptimizationParams(application(rack=None)), f"instance {B} has no client.rack"),
        (
            RackAwareOptimizationParams(
                an_application(
                    an_instance(A, rack="e"),
                    an_instance(B, rack="w"),
                    tasks=(a_task(EAST, stateful=True), a_task(WEST, stateful=False)),
                    configs=BY_RACKS,
                )
            ),
            "those of in-0-0, in-0-1, log-0-0 are not known",
        ),
    ],
)
def test_nothing_is_swapped_where_racks_or_costs_are_not_known(
    params: RackAwareOptimizationParams, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    assignments = crossed()
    optimize_rack_aware_active_tasks(params, assignments)
    assert {process: list(one.tasks) for process, one in assignments.items()} == {A: [WEST], B: [EAST]}
    assert reason in caplog.text


def test_a_task_that_is_active_nowhere_or_twice_cannot_be_swapped() -> None:
    params = RackAwareOptimizationParams(application(), tasks="stateful")
    with pytest.raises(ValueError, match="task 0_1 is active on no instance"):
        optimize_rack_aware_active_tasks(params, {A: given(A, (EAST,))})
    with pytest.raises(ValueError, match=f"task 0_0 is active on {A} and {B}"):
        optimize_rack_aware_active_tasks(params, {A: given(A, (EAST, WEST)), B: given(B, (EAST,))})


def test_tasks_that_the_application_does_not_have_cannot_be_swapped() -> None:
    with pytest.raises(ValueError, match="tasks names 5_5, which the application does not have"):
        optimize_rack_aware_active_tasks(RackAwareOptimizationParams(application(), tasks=[TaskId(5, 5)]), crossed())
    with pytest.raises(ValueError, match="tasks is 'some'; it is 'stateful', 'stateless', task ids or None"):
        optimize_rack_aware_active_tasks(RackAwareOptimizationParams(application(), tasks=cast(Any, "some")), crossed())


def test_an_active_task_that_comes_where_its_standby_task_is_takes_its_place() -> None:
    assignments = {A: given(A, (WEST,), (EAST,)), B: given(B, (EAST,), (WEST,))}
    optimize_rack_aware_active_tasks(RackAwareOptimizationParams(application()), assignments)
    assert repr(assignments[A]) == f"KafkaStreamsAssignment({A}, active=[0_0], standby=[])"


def test_only_the_named_standby_tasks_are_swapped() -> None:
    assignments = {A: given(A, (), (WEST,)), B: given(B, (), (EAST,))}
    optimize_rack_aware_standby_tasks(RackAwareOptimizationParams(application(), tasks=[WEST]), assignments)
    assert list(assignments[A].tasks) == [WEST]
    optimize_rack_aware_standby_tasks(RackAwareOptimizationParams(application()), assignments)
    assert list(assignments[A].tasks) == [EAST]


def test_standby_tasks_are_added_to_instances_that_have_no_assignment_yet() -> None:
    state = an_application(configs=AssignmentConfigs(num_standby_replicas=1))
    assignments = {A: given(A, tuple(state.all_tasks))}
    default_standby_task_assignment(state, assignments)
    assert repr(assignments[B]) == f"KafkaStreamsAssignment({B}, active=[], standby=[0_0])"


@pytest.mark.parametrize("tags", [(), ("zone",)])
def test_no_standby_tasks_are_added_where_none_are_asked_for(tags: tuple[str, ...]) -> None:
    """With tags, Kafka Streams 4.3.1 places one of each task."""
    state = an_application(configs=AssignmentConfigs(rack_aware_assignment_tags=tags))
    assignments = {A: given(A, tuple(state.all_tasks))}
    default_standby_task_assignment(state, assignments)
    assert not assignments[B].tasks


def test_an_assignment_of_an_instance_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match=f"instance {C} has an assignment, and is not in the application state"):
        default_standby_task_assignment(an_application(), {C: given(C)})
