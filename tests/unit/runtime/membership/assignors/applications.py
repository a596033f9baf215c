"""Small applications for tests of assignors."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from pykstreams.assignment import (
    ApplicationState,
    AssignedTask,
    AssignmentConfigs,
    KafkaStreamsAssignment,
    KafkaStreamsState,
    ProcessId,
    TaskInfo,
    TaskTopicPartition,
    TaskType,
)
from pykstreams.core.ids import TaskId, TopicPartition

A, B, C = (ProcessId(uuid.UUID(int=number)) for number in (1, 2, 3))
COUNTS, FORWARDS = TaskId(0, 0), TaskId(1, 0)


def a_task(task: TaskId, *, stateful: bool, racks: frozenset[str] | None = None) -> TaskInfo:
    places = {TaskTopicPartition(TopicPartition(f"in-{task.subtopology}", task.partition), True, False, racks)}
    if stateful:
        places.add(TaskTopicPartition(TopicPartition(f"log-{task.subtopology}", task.partition), False, True, racks))
    return TaskInfo(task, frozenset(places), frozenset({"store"} if stateful else ()))


TASKS = (a_task(COUNTS, stateful=True), a_task(FORWARDS, stateful=False))


def an_instance(
    process: ProcessId, *, rack: str | None = None, lags: Mapping[TaskId, int] | None = None
) -> KafkaStreamsState:
    return KafkaStreamsState(process, {f"consumer-of-{process}": ()}, rack_id=rack, task_lags=lags)


def an_application(
    *states: KafkaStreamsState, tasks: tuple[TaskInfo, ...] = TASKS, configs: AssignmentConfigs | None = None
) -> ApplicationState:
    return ApplicationState(states or (an_instance(A), an_instance(B)), tasks, configs)


def given(
    process: ProcessId, active: tuple[TaskId, ...] = (), standby: tuple[TaskId, ...] = ()
) -> KafkaStreamsAssignment:
    return KafkaStreamsAssignment(
        process,
        [
            *(AssignedTask(task, TaskType.ACTIVE) for task in active),
            *(AssignedTask(task, TaskType.STANDBY) for task in standby),
        ],
    )
