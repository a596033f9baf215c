"""Mistakes in what assignors answer (``TaskAssignmentUtils.validateTaskAssignment``, 4.3.1)."""

from __future__ import annotations

import logging

from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.assignors.application_state import ApplicationState
from pykstreams.runtime.membership.assignors.assignments import TaskAssignment, TaskType
from pykstreams.runtime.membership.assignors.task_assignor import AssignmentError
from pykstreams.runtime.membership.process_id import ProcessId

log = logging.getLogger(__name__)


def validate_task_assignment(application_state: ApplicationState, assignment: TaskAssignment) -> AssignmentError:
    """Returns the first mistake of an assignment, and logs it; ``NONE``: it has none.

    That an active task is on no instance is no mistake for Kafka Streams: nobody works on it.
    """
    tasks = application_state.all_tasks
    active: dict[TaskId, ProcessId] = {}
    standby: dict[TaskId, ProcessId] = {}
    for one in assignment.assignment:
        for task in one.tasks.values():
            if task.id not in tasks:
                log.error("instance %s is assigned task %s, which there is not", one.process_id, task.id)
                return AssignmentError.UNKNOWN_TASK_ID
            if task.type is TaskType.ACTIVE and task.id in active:
                log.error(
                    "the active task %s is assigned to instances %s and %s", task.id, active[task.id], one.process_id
                )
                return AssignmentError.ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES
            (active if task.type is TaskType.ACTIVE else standby)[task.id] = one.process_id
    for found, process in standby.items():
        if not tasks[found].is_stateful:
            log.error("instance %s is assigned standby task %s, which has no stores", process, found)
            return AssignmentError.INVALID_STANDBY_TASK
    instances = application_state.kafka_streams_states(compute_task_lags=False)
    assigned = {one.process_id for one in assignment.assignment}
    for process in instances:
        if process not in assigned:
            log.error("instance %s has no assignment; give it one, though it be empty", process)
            return AssignmentError.MISSING_PROCESS_ID
    for process in sorted(assigned):
        if process not in instances:
            log.error("instance %s is assigned tasks, and is not in the group", process)
            return AssignmentError.UNKNOWN_PROCESS_ID
    return AssignmentError.NONE
