"""What the assignors and helpers of our users make of a recorded group, in the form of Java's answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from pykstreams.assignment import (
    ApplicationState,
    AssignedTask,
    KafkaStreamsAssignment,
    ProcessId,
    RackAwareOptimizationParams,
    StickyTaskAssignor,
    TaskAssignment,
    TaskType,
    default_standby_task_assignment,
    identity_assignment,
    optimize_rack_aware_active_tasks,
    optimize_rack_aware_standby_tasks,
    validate_task_assignment,
)
from pykstreams.runtime.membership.assignment.joined_group import JoinedGroup
from pykstreams.runtime.membership.assignors.groups import application_state_of
from pykstreams.runtime.membership.protocol.versions import group_versions
from tests.unit.runtime.membership.java_vectors import group_of

Said = dict[str, Any]
Assignments = dict[ProcessId, KafkaStreamsAssignment]


def application_state(question: Said) -> ApplicationState:
    """The application of a question; tasks with changelogs have a store."""
    group = group_of(question)
    tasks = tuple(replace(task, stores=frozenset({"store"} if task.changelogs else ())) for task in group.tasks)
    joined = JoinedGroup(replace(group, tasks=tasks), {}, group_versions([]), {}, {}, lags_known=True)
    return application_state_of(joined)


def our_answer(question: Said) -> Said:
    """The answer to a question."""
    state = application_state(question)
    identity = TaskAssignment(tuple(identity_assignment(state).values()))
    return {
        "sticky": _written(StickyTaskAssignor().assign(state).assignment),
        "keep": _written(StickyTaskAssignor(must_preserve_active_task_assignment=True).assign(state).assignment),
        "identity": _written(identity.assignment),
        "identityError": validate_task_assignment(state, identity).name,
        "lags": _lags(state),
        "dealt": _dealt(state),
    }


def _lags(state: ApplicationState) -> Said:
    found: Said = {}
    for process, one in state.kafka_streams_states(compute_task_lags=True).items():
        known: Said = {str(task): lag for task, lag in one.stateful_tasks_to_lag_sums.items()}
        for consumer in one.consumer_client_ids:
            known[consumer] = [str(task) for task in one.prev_tasks_by_lag(consumer)]
        found[str(process)] = known
    return found


def _dealt(state: ApplicationState) -> Said:
    """Tasks dealt out in turn, and what becomes of them step by step."""
    dealt: Assignments = {}
    instances = sorted(state.kafka_streams_states(compute_task_lags=False))
    for at, task in enumerate(state.all_tasks):
        process = instances[at % len(instances)]
        dealt.setdefault(process, KafkaStreamsAssignment(process)).assign_task(AssignedTask(task, TaskType.ACTIVE))
    params = RackAwareOptimizationParams(state)
    stateless = replace(params, tasks="stateless", traffic_cost=7, non_overlap_cost=2)
    steps: dict[str, Callable[[], None]] = {
        "stateful": lambda: optimize_rack_aware_active_tasks(replace(params, tasks="stateful"), dealt),
        "stateless": lambda: optimize_rack_aware_active_tasks(stateless, dealt),
        "all": lambda: optimize_rack_aware_active_tasks(params, dealt),
    }
    if state.assignment_configs.num_standby_replicas:
        steps["standby"] = lambda: default_standby_task_assignment(state, dealt)
        steps["standbyRacks"] = lambda: optimize_rack_aware_standby_tasks(replace(params, traffic_cost=3), dealt)
    answer: Said = {}
    for name, step in steps.items():
        step()
        answer[name] = _written(dealt.values())
    return answer


def _written(assignments: Iterable[KafkaStreamsAssignment]) -> Said:
    written: Said = {}
    for one in assignments:
        parts: list[object] = [[str(task) for task in one.of_type(kind)] for kind in TaskType]
        if one.followup_rebalance_deadline is not None:
            parts.append(one.followup_rebalance_deadline)
        written[str(one.process_id)] = parts
    return written
