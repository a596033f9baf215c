"""Which standby tasks belong to an instance, by who is in the group, and what the group has committed for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.standby.placement import place


class GroupView(Protocol):
    """The view of the group that standby tasks need, of which they are no member."""

    def members(self) -> Mapping[str, frozenset[TaskId]] | None:
        """The active tasks of each instance; ``None`` while they are being shared out."""
        ...

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets | None:
        """Committed offsets; ``None``: ask again later."""
        ...

    def close(self) -> None: ...


class StandbyPlan:
    """The standby tasks of one process.

    :param instance: the id of this process in the group; with others of the same state directory it shares standby
        tasks, whoever comes first to each of them.
    :param stateful: the tasks that are worth a standby, with the partitions that they read.
    """

    def __init__(
        self,
        group: GroupView,
        *,
        instance: str,
        replicas: int,
        stateful: Mapping[TaskId, frozenset[TopicPartition]],
    ) -> None:
        self._group = group
        self._instance = instance
        self._replicas = replicas
        self._stateful = stateful
        self._committed: Offsets = {}
        self.close = group.close

    def wanted(self, kept: Collection[TaskId]) -> set[TaskId] | None:
        """The tasks of which a standby belongs here; ``None`` while tasks are being shared out.

        :param kept: those there are; the ones of them that nobody works on at the moment stay.
        """
        members = self._group.members()
        if members is None:
            return None
        active = {task: one for one, tasks in members.items() for task in tasks if task in self._stateful}
        placed = place(active, members, self._replicas)
        wanted = {task for task, instances in placed.items() if self._instance in instances}
        return wanted | {task for task in kept if task not in active}

    def ask_committed(self, tasks: Collection[TaskId]) -> bool:
        """Asks what was committed for tasks; false where that is to be asked again later."""
        committed = self._group.committed({place for task_id in tasks for place in self._stateful[task_id]})
        if committed is None:
            return False
        self._committed = committed
        return True

    def inputs(self, task_id: TaskId) -> frozenset[TopicPartition]:
        """The partitions that a task reads."""
        return self._stateful[task_id]

    def committed(self, task_id: TaskId) -> Offsets:
        """The offsets that were committed for a task when it was asked for last."""
        return {place: self._committed[place] for place in self._stateful[task_id] if place in self._committed}

    def limits(self, task_id: TaskId) -> dict[TopicPartition, int]:
        """The committed offset of each input: a source topic that serves as changelog is not followed beyond it."""
        return {place: self._committed.get(place, (0, ""))[0] for place in self._stateful[task_id]}
