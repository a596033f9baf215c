"""The state of a worker's process, as its member reports it to the leader and is assigned it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.offset_sums import OffsetSums
from pykstreams.runtime.membership.protocol.subscription_info import RUNNING


class Standbys(Protocol):
    """The method of the process's standby tasks that a member calls."""

    def assigned(
        self, member: str, tasks: Mapping[TaskId, frozenset[TopicPartition]], active: Collection[TaskId]
    ) -> None: ...


class State(Protocol):
    """The state that a member answers for (``MemberState``)."""

    def begin(self) -> None: ...

    def offset_sums(self) -> Mapping[TaskId, int]: ...

    def assigned(self, standby: Mapping[TaskId, frozenset[TopicPartition]], active: Collection[TaskId]) -> None: ...

    def lost(self) -> None: ...

    def end(self) -> None: ...


class MemberState:
    """The state that one member answers for; for the worker's thread.

    :param standbys: ``None``: the process keeps none.
    :param running: the active tasks that the worker works on.
    :param opened: the sums of the tasks whose stores it has open.
    """

    def __init__(
        self,
        member: str,
        sums: OffsetSums,
        standbys: Standbys | None,
        *,
        running: Callable[[], Collection[TaskId]],
        opened: Callable[[], Mapping[TaskId, int]],
    ) -> None:
        self._member = member
        self._sums = sums
        self._standbys = standbys
        self._running = running
        self._opened = opened
        self._active: frozenset[TaskId] = frozenset()
        self._reported: Mapping[TaskId, int] = {}

    def begin(self) -> None:
        """Adds the member, before it joins for the first time."""
        self._sums.add(self._member)

    def offset_sums(self) -> Mapping[TaskId, int]:
        """How far the state of each task is that the member reports.

        An active task whose state nobody has open is on its way from a standby task to the worker, and is as far as it
        was. Without it the leader would take the state for lost, and move the task, and so on for ever.
        """
        sums = self._sums.of(self._member, running=self._running(), opened=self._opened())
        on_their_way = {task: found for task in self._active if (found := self._reported.get(task, RUNNING)) != RUNNING}
        self._reported = {**on_their_way, **sums}
        return self._reported

    def assigned(self, standby: Mapping[TaskId, frozenset[TopicPartition]], active: Collection[TaskId]) -> None:
        """Notes an assignment: standby tasks, with the partitions that they read, and active ones."""
        self._active = frozenset(active)
        if self._standbys is not None:
            self._standbys.assigned(self._member, standby, active)

    def lost(self) -> None:
        """Notes that the group has gone on without the member; its standby tasks stay until it is assigned others.

        No active task is on its way to it any more. Another worker of the process may run one of them, and what this
        one said of it would count in its place.
        """
        self._active, self._reported = frozenset(), {}

    def end(self) -> None:
        """Removes the member, which does not come back."""
        self.assigned({}, ())
        self._sums.remove(self._member)


class NoState:
    """The state of a member that takes no tasks."""

    def begin(self) -> None:
        """There is none to begin with."""

    def offset_sums(self) -> Mapping[TaskId, int]:
        """Nothing is reported."""
        return {}

    def assigned(self, standby: Mapping[TaskId, frozenset[TopicPartition]], active: Collection[TaskId]) -> None:
        """Nothing is kept."""

    def lost(self) -> None:
        """Nothing was kept."""

    def end(self) -> None:
        """Nothing was there."""
