"""The answer of an assignor: the tasks of each instance (KIP-924)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

from pykstreams.core.ids import TaskId
from pykstreams.core.types import Timestamp, timestamp_ms
from pykstreams.runtime.membership.process_id import ProcessId


class TaskType(Enum):
    """The kinds of an assigned task (``KafkaStreamsAssignment.AssignedTask.Type``)."""

    ACTIVE = "active"
    STANDBY = "standby"


@dataclass(frozen=True, slots=True)
class AssignedTask:
    """A task of an instance, and whether it is the active or a standby task there."""

    id: TaskId
    type: TaskType


class KafkaStreamsAssignment:
    """The tasks of one instance (``KafkaStreamsAssignment``). It has each task once, be it active or standby.

    >>> import uuid
    >>> process = ProcessId(uuid.UUID(int=1))
    >>> KafkaStreamsAssignment(process, [AssignedTask(TaskId(0, 1), TaskType.ACTIVE)])
    KafkaStreamsAssignment(00000000-0000-0000-0000-000000000001, active=[0_1], standby=[])

    :param tasks: its tasks; ``ValueError`` if one is there twice.
    """

    __slots__ = ("_deadline", "_process_id", "_tasks")

    def __init__(self, process_id: ProcessId, tasks: Iterable[AssignedTask] = ()) -> None:
        self._process_id = process_id
        self._deadline: int | None = None
        self._tasks: dict[TaskId, AssignedTask] = {}
        for task in tasks:
            if self._tasks.setdefault(task.id, task) != task:
                raise ValueError(f"task {task.id} is to be active and standby on instance {process_id} at once")

    def __repr__(self) -> str:
        kinds = ", ".join(f"{kind.value}=[{', '.join(map(str, self.of_type(kind)))}]" for kind in TaskType)
        again = "" if self._deadline is None else f", followup_rebalance_deadline={self._deadline}"
        return f"KafkaStreamsAssignment({self._process_id}, {kinds}{again})"

    @property
    def process_id(self) -> ProcessId:
        """The instance."""
        return self._process_id

    @property
    def tasks(self) -> dict[TaskId, AssignedTask]:
        """Its tasks by id: a copy."""
        return dict(self._tasks)

    @property
    def followup_rebalance_deadline(self) -> int | None:
        """The time in ms after which the instance asks for a rebalance; ``None``: it asks for none."""
        return self._deadline

    def of_type(self, kind: TaskType) -> list[TaskId]:
        """Returns the ids of its active or of its standby tasks, in their order."""
        return sorted(task.id for task in self._tasks.values() if task.type is kind)

    def assign_task(self, task: AssignedTask) -> None:
        """Adds a task, in place of one with this id."""
        self._tasks[task.id] = task

    def remove_task(self, task: AssignedTask) -> None:
        """Removes the task with this id, of whichever type, if it is there."""
        self._tasks.pop(task.id, None)

    def with_followup_rebalance(self, deadline: Timestamp) -> KafkaStreamsAssignment:
        """Returns a copy whose instance asks for a rebalance after a time; one in the past is at once."""
        copy = KafkaStreamsAssignment(self._process_id, self._tasks.values())
        copy._deadline = timestamp_ms(deadline, "deadline")
        return copy


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """The tasks of all instances (``TaskAssignor.TaskAssignment``)."""

    assignment: Collection[KafkaStreamsAssignment]
