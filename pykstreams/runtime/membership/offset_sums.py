"""The state that each member of a process reports when it joins (``TaskManager.taskOffsetSums``, 4.3.1).

A leader gives tasks to who has most of their state. A task is reported by one member of the process: who works on it,
restores it, or keeps its standby. What lies in folders that nobody on this machine has open is reported by one of them.

Invariant: no sum is above what is there, and of state in memory only what is open counts.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Protocol

from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.protocol.subscription_info import RUNNING


class StandbySums(Protocol):
    """The standby tasks of this process; for any thread."""

    def offset_sums(self) -> Mapping[TaskId, int]: ...

    def member_of(self, task_id: TaskId) -> str | None: ...


class Folders(Protocol):
    """The state directory; for any thread."""

    def free_checkpoints(self) -> Mapping[TaskId, Mapping[str, int]]: ...


class OffsetSums:
    """The sums of one process; its methods are for any thread.

    :param changelogs: for each sub-topology with state, the names of the stores that have a changelog.
    :param standbys: ``None``: the process keeps none.
    """

    def __init__(
        self, changelogs: Mapping[int, Collection[str]], folders: Folders, standbys: StandbySums | None
    ) -> None:
        self._changelogs = changelogs
        self._folders = folders
        self._standbys = standbys
        self._lock = threading.Lock()
        self._members: dict[str, None] = {}

    def add(self, member: str) -> None:
        """Adds a member, before it joins for the first time."""
        with self._lock:
            self._members[member] = None

    def remove(self, member: str) -> None:
        """Lets go of a member that does not join any more."""
        with self._lock:
            self._members.pop(member, None)

    def of(self, member: str, *, running: Collection[TaskId], opened: Mapping[TaskId, int]) -> dict[TaskId, int]:
        """The sums of a member, by task.

        :param running: the active tasks that it works on.
        :param opened: the sums of all tasks whose stores it has open, whether it works on them or not.
        """
        reports_rest = next(iter(self._members.copy()), None) == member
        # what nobody has open comes first: what is opened meanwhile is found again, and counts as that
        sums = self._on_disk() if reports_rest else {}
        sums.update(self._standby_sums(member, with_strays=reports_rest))
        sums.update(opened)
        sums.update(dict.fromkeys(running, RUNNING))
        return {task_id: found for task_id, found in sums.items() if task_id.subtopology in self._changelogs}

    def _standby_sums(self, member: str, *, with_strays: bool) -> dict[TaskId, int]:
        """The standby tasks of a member; strays are about to be closed, because they are nobody's any more."""
        standbys = self._standbys
        if standbys is None:
            return {}
        owners = {member, None} if with_strays else {member}
        return {
            task_id: found for task_id, found in standbys.offset_sums().items() if standbys.member_of(task_id) in owners
        }

    def _on_disk(self) -> dict[TaskId, int]:
        sums = {}
        for task_id, offsets in self._folders.free_checkpoints().items():
            known = self._changelogs.get(task_id.subtopology, ())
            if found := [offset for store, offset in offsets.items() if store in known]:
                sums[task_id] = sum(found)
        return sums
