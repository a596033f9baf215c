"""The tasks of a worker: opened, started, suspended, rebuilt and closed as assignments come and go.

A task is *wanted* when the membership says so, *opening* while the state updater has it, and *running* once it is
restored and started; only running tasks have their partitions fetched.

Invariant: a partition is fetched exactly while the task that reads it is running, and what leaves ``running`` gets no
further record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.commit import Commitable
from pykstreams.runtime.membership import Membership, Offsets
from pykstreams.runtime.start_offsets import StartOffsets
from pykstreams.runtime.state_updater import Corrupted, Failed, Report, Restored
from pykstreams.runtime.task import Task

log = logging.getLogger(__name__)


class PartitionReader(Protocol):
    """What this module needs of the data consumer."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None: ...

    def unassign(self, partitions: Collection[TopicPartition]) -> None: ...


class TaskKeeper(Protocol):
    """What this module needs of the state updater."""

    def open(self, task: Task, limits: Mapping[TopicPartition, int]) -> None: ...

    def close(self, task: Task, *, wipe: bool = False) -> None: ...

    def reports(self) -> list[Report]: ...


@dataclass(slots=True)
class Running(Commitable):
    """A task that is being fed, or is about to be."""

    task: Task
    fed: bool = False
    """Whether its partitions are read; not so while it starts, which may fail."""


@dataclass(slots=True)
class _Opening:
    task: Task
    inputs: frozenset[TopicPartition]
    committed: Offsets


class TaskManager:
    """All tasks of one worker; for its thread only.

    :param make_task: makes a task over its input partitions.
    :param before_start: runs before a task is started, which is when its operators may send records.
    """

    def __init__(
        self,
        *,
        inputs: Mapping[TaskId, frozenset[TopicPartition]],
        membership: Membership,
        reader: PartitionReader,
        updater: TaskKeeper,
        start_offsets: StartOffsets,
        make_task: Callable[[TaskId, frozenset[TopicPartition]], Task],
        before_start: Callable[[], None],
    ) -> None:
        self._inputs = inputs
        self._membership = membership
        self._reader = reader
        self._updater = updater
        self._start_offsets = start_offsets
        self._make_task = make_task
        self._before_start = before_start
        self._wanted: frozenset[TaskId] = frozenset()
        self._opening: dict[TaskId, _Opening] = {}
        self.running: dict[TaskId, Running] = {}
        self.by_partition: dict[tuple[str, int], Running] = {}

    @property
    def all_running(self) -> bool:
        """Whether every wanted task is being fed."""
        return len(self.running) == len(self._wanted) and not self._opening

    def want(self, tasks: frozenset[TaskId]) -> None:
        """Takes a new assignment; what is not in it any more is closed without a commit."""
        known = frozenset(task_id for task_id in tasks if task_id in self._inputs)
        if added := known - self._wanted:
            log.info("tasks %s were given to this worker", _names(added))
        self._wanted = known
        self.drop([task_id for task_id in (*self.running, *self._opening) if task_id not in known])

    def update_inputs(self, inputs: Mapping[TaskId, frozenset[TopicPartition]]) -> list[TaskId]:
        """Takes what tasks read from now on; gives those tasks that must be rebuilt for it."""
        changed = [
            task_id for task_id in (*self.running, *self._opening) if inputs.get(task_id) != self._inputs[task_id]
        ]
        self._inputs = inputs
        return changed

    def poll(self) -> None:
        """Opens what is wanted and starts what is restored."""
        for report in self._updater.reports():
            match report:
                case Failed(error):
                    raise error
                case Corrupted(task_id):
                    self._opening.pop(task_id, None)
                case Restored(task_id, changelogs):
                    if opened := self._opening.pop(task_id, None):
                        self._start(opened, changelogs)
        self._open(
            [task_id for task_id in self._wanted if task_id not in self.running and task_id not in self._opening]
        )

    def drop(self, tasks: Iterable[TaskId], *, wipe: bool = False) -> None:
        """Lets go of tasks without a commit; those that are wanted are opened anew."""
        gone = [task_id for task_id in tasks if task_id in self.running or task_id in self._opening]
        stopped = [self.running.pop(task_id) for task_id in gone if task_id in self.running]
        self._reader.unassign([place for one in stopped if one.fed for place in one.inputs])
        for one in stopped:
            for place in one.inputs:
                del self.by_partition[place]
        opening = [self._opening.pop(task_id) for task_id in gone if task_id in self._opening]
        for task in [*(one.task for one in stopped), *(one.task for one in opening)]:
            self._updater.close(task, wipe=wipe)

    def drop_all(self) -> None:
        """Lets go of all tasks without a commit."""
        self.drop([*self.running, *self._opening])

    def _open(self, tasks: Collection[TaskId]) -> None:
        if not tasks:
            return
        partitions = {place for task_id in tasks for place in self._inputs[task_id]}
        # the offsets come first: under exactly-once they wait for transactions of a dead owner to be settled
        committed = self._membership.committed(partitions)
        if committed is None:
            return
        for task_id in sorted(tasks):
            inputs = self._inputs[task_id]
            mine = {place: committed[place] for place in inputs if place in committed}
            task = self._make_task(task_id, inputs)
            self._opening[task_id] = _Opening(task, inputs, mine)
            self._updater.open(task, {place: mine[place][0] if place in mine else 0 for place in inputs})

    def _start(self, opened: _Opening, changelogs: frozenset[TopicPartition]) -> None:
        self._before_start()
        task = opened.task
        running = Running(task, opened.inputs, changelogs, dict(opened.committed))
        self.running[task.id] = running
        self.by_partition.update(dict.fromkeys(opened.inputs, running))
        task.start(opened.committed)
        positions = {
            place: opened.committed[place][0]
            if place in opened.committed
            else self._start_offsets.start(place, because="has no committed offset")
            for place in opened.inputs
        }
        self._reader.assign(positions)
        running.fed = True
        log.info("task %s runs; it reads %s", task.id, ", ".join(map(str, sorted(opened.inputs))))


def _names(tasks: Iterable[Any]) -> str:
    return ", ".join(map(str, sorted(tasks)))
