"""Which standby tasks a process keeps, by what its members were assigned; and what the group has committed for them.

Each member of the group is assigned standby tasks, warm-up tasks among them; the process keeps those of all of its
members, unless they are active in one of them. What a member was assigned last counts until it is assigned something
else: so standby tasks stay during a rebalance, and when a member was put out of the group and comes back.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Protocol, TypeAlias

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import Offsets

TasksWithInputs: TypeAlias = Mapping[TaskId, frozenset[TopicPartition]]
"""Tasks with the partitions that they read."""


class CommittedReader(Protocol):
    """The part of a membership that standby tasks need."""

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets | None:
        """Reads committed offsets; ``None``: ask again later. For the thread of the standby tasks."""
        ...


class StandbyPlan:
    """The standby tasks of one process; ``assigned``, ``wanted`` and ``member_of`` are for any thread."""

    def __init__(self, group: CommittedReader) -> None:
        self._group = group
        self._lock = threading.Lock()
        self._assigned: Mapping[str, TasksWithInputs] = {}
        self._active: Mapping[str, frozenset[TaskId]] = {}
        self._inputs: dict[TaskId, frozenset[TopicPartition]] = {}
        self._committed: Offsets = {}

    def assigned(self, member: str, tasks: TasksWithInputs, active: Collection[TaskId] = ()) -> None:
        """Notes the standby tasks of a member, in place of those that it had, and its active tasks."""
        with self._lock:
            self._assigned = {**self._assigned, member: dict(tasks)}
            self._active = {**self._active, member: frozenset(active)}

    def wanted(self) -> dict[TaskId, frozenset[TopicPartition]]:
        """The standby tasks of all members, without those that are active here."""
        return {
            task_id: inputs
            for tasks in self._assigned.values()
            for task_id, inputs in tasks.items()
            if not self.is_active(task_id)
        }

    def is_active(self, task_id: TaskId) -> bool:
        """Whether a task is active in this process, or about to be."""
        return any(task_id in tasks for tasks in self._active.values())

    def member_of(self, task_id: TaskId) -> str | None:
        """The member that a standby task was assigned to: the first, while it moves from one to another."""
        return next((member for member, tasks in self._assigned.items() if task_id in tasks), None)

    def ask_committed(self, tasks: TasksWithInputs) -> bool:
        """Asks what was committed for tasks; false where that is to be asked again later."""
        self._inputs.update(tasks)
        places = {place for inputs in tasks.values() for place in inputs}
        committed = self._group.committed(places) if places else {}
        if committed is None:
            return False
        self._committed = committed
        return True

    def committed(self, task_id: TaskId) -> Offsets:
        """The offsets that were committed for a task when it was asked for last."""
        return {place: self._committed[place] for place in self._inputs[task_id] if place in self._committed}

    def limits(self, task_id: TaskId) -> dict[TopicPartition, int]:
        """The committed offset of each input: a source topic that serves as changelog is not followed beyond it."""
        return {place: self._committed.get(place, (0, ""))[0] for place in self._inputs[task_id]}
