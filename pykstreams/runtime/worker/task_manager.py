"""The tasks of a worker: opened, started, suspended, rebuilt and closed as assignments come and go.

A task is *wanted* when the membership says so, *opening* while the state updater has it, and *running* once it is
restored and started; only running tasks have their partitions fetched. A task may be *held* after a commit of its own,
while its state is swapped: it gets no records, and can be read. A task whose store cannot be read or written is *set
aside*: closed, and opened again after a while, and so on until that goes well (``tasks_aside``); the others work
meanwhile.

Invariant: a partition is fetched exactly while the task that reads it is running, and what leaves ``running`` gets no
further record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pykstreams.core.errors import StoreEngineError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.membership.membership import Membership
from pykstreams.runtime.restore.restore import Damaged
from pykstreams.runtime.swap.shadow import Shadow
from pykstreams.runtime.tasks.task import Task
from pykstreams.runtime.worker.commits.commit import Committable
from pykstreams.runtime.worker.commits.work_notes import at_work, was_left_at_work
from pykstreams.runtime.worker.start_offsets import StartOffsets
from pykstreams.runtime.worker.state_updater import Corrupted, Failed, Leaves, Report, Restored, UpdaterEndedError
from pykstreams.runtime.worker.tasks_aside import TasksAside
from pykstreams.runtime.worker.unsettled_offsets import UnsettledOffsets

log = logging.getLogger(__name__)

MakeTask: TypeAlias = Callable[[TaskId, frozenset[TopicPartition], Offsets, bool], Task]
"""(task, inputs, what was committed for them, whether its last worker has left uncommitted work): makes the task."""


class PartitionReader(Protocol):
    """The methods of the data consumer that this module calls."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None: ...

    def unassign(self, partitions: Collection[TopicPartition]) -> None: ...


class TaskKeeper(Protocol):
    """The methods of the state updater that this module calls."""

    def open(self, task: Task, limits: Mapping[TopicPartition, int]) -> None: ...

    def close(self, task: Task, leaves: Leaves = None) -> None: ...

    def reports(self) -> list[Report]: ...


@dataclass(slots=True)
class Running(Committable):
    """A task that is being fed, or is about to be."""

    task: Task
    fed: bool = False
    """Whether its partitions are read; not so while it starts, which may fail."""
    idle_since_ms: int | None = None
    """Since when it had nothing to process, or waited for another input; ``None``: it did at its last turn."""


@dataclass(slots=True)
class _Opening:
    task: Task
    inputs: frozenset[TopicPartition]
    committed: Offsets
    note: TopicPartition | None
    changelogs: frozenset[TopicPartition] | None = None
    """Those of its stores, once these are restored."""


class TaskManager:
    """All tasks of one worker; for its thread only.

    :param before_start: runs before tasks are started, which is when its operators may send records.
    :param aside: those tasks that wait since a store of theirs failed.
    :param unsettled: those tasks that wait for their committed offsets.
    :param on_change: called with 1 for each task that is made, and with -1 for each that is let go of.
    :param note_of: where it is noted that a task is worked on; ``None`` where a worker that dies leaves nothing behind.
    """

    def __init__(
        self,
        *,
        inputs: Mapping[TaskId, frozenset[TopicPartition]],
        membership: Membership,
        reader: PartitionReader,
        updater: TaskKeeper,
        start_offsets: StartOffsets,
        make_task: MakeTask,
        before_start: Callable[[], None],
        aside: TasksAside,
        unsettled: UnsettledOffsets,
        note_of: Callable[[TaskId], TopicPartition | None] = lambda _: None,
        on_change: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._inputs = inputs
        self._membership = membership
        self._reader = reader
        self._updater = updater
        self._start_offsets = start_offsets
        self._make_task = make_task
        self._before_start = before_start
        self._note_of = note_of
        self._on_change = on_change
        self._wanted: frozenset[TaskId] = frozenset()
        self._opening: dict[TaskId, _Opening] = {}
        self._held: dict[TaskId, Running] = {}
        self._aside = aside
        self._unsettled = unsettled
        self.running: dict[TaskId, Running] = {}
        self.by_partition: dict[tuple[str, int], Running] = {}

    @property
    def all_running(self) -> bool:
        """Whether every wanted task is being fed, or held for a moment."""
        return len(self.running) + len(self._held) == len(self._wanted) and not self._opening

    def tasks(self) -> dict[Task, bool]:
        """Every task that is here, and whether it runs; may be called from any thread."""
        found = {one.task: False for one in self._opening.copy().values()}  # first: from there they go to the others
        found.update({one.task: True for one in self.running.copy().values()})  # and from there to be held
        found.update({one.task: True for one in self._held.copy().values()})
        return found

    def running_task(self, task_id: TaskId) -> Task | None:
        """A task that is here and runs, or is held for a moment; may be called from any thread."""
        found = self.running.get(task_id) or self._held.get(task_id)  # in this order: from the first they go to be held
        return None if found is None else found.task

    def want(self, tasks: frozenset[TaskId]) -> None:
        """Follows a new assignment; what is not in it any more is closed without a commit."""
        known = frozenset(task_id for task_id in tasks if task_id in self._inputs)
        if added := known - self._wanted:
            log.info("tasks %s were given to this worker", _names(added))
        self._wanted = known
        self.drop([task_id for task_id in (*self.running, *self._opening, *self._held) if task_id not in known])

    def changed_by(self, inputs: Mapping[TaskId, frozenset[TopicPartition]]) -> list[TaskId]:
        """The tasks here that read other partitions then, or none at all."""
        return [
            task_id
            for task_id in (*self.running, *self._opening, *self._held)
            if inputs.get(task_id) != self._inputs[task_id]
        ]

    def update_inputs(self, inputs: Mapping[TaskId, frozenset[TopicPartition]]) -> None:
        """Notes what tasks read from now on; those that are ``changed_by`` it must be dropped.

        A task without inputs is not wanted any more, until it is assigned again.
        """
        self._inputs = inputs
        self._wanted = self._wanted.intersection(inputs)

    def poll(self) -> None:
        """Opens what is wanted and starts what is restored."""
        for report in self._updater.reports():
            match report:
                case Failed(error):
                    raise UpdaterEndedError(error)
                case Corrupted(task_id):
                    self._closed_while_opening(task_id)
                case Damaged(task_id, error):
                    opened = self._closed_while_opening(task_id)
                    is_restored = opened is not None and opened.task.restorable(error) is not None
                    self._aside.add(task_id, error, is_restored=is_restored)
                case Restored(task_id, changelogs):
                    if (opened := self._opening.get(task_id)) is not None:
                        opened.changelogs = changelogs
        self._start_restored()
        closed = [
            task_id
            for task_id in self._wanted
            if task_id not in self.running
            and task_id not in self._opening
            and task_id not in self._held
            and self._aside.may_open(task_id)
        ]
        self._open(self._unsettled.due(closed))

    def has(self, one: Running) -> bool:
        """Whether a task is fed or held, and is still the same."""
        return self.running.get(one.task.id) is one or self._held.get(one.task.id) is one

    def hold(self, task_id: TaskId) -> None:
        """Feeds a task no more, of which everything is committed; it stays open to be read."""
        # readers find it all the time: it is in one of the two at least
        one = self._held[task_id] = self.running[task_id]
        self._stop_feeding([one])

    def close_held(self, task_id: TaskId, swapped: Shadow | None) -> None:
        """Closes a task that is held; it is opened anew, with the state of its shadow if there is one."""
        one = self._held.pop(task_id, None)
        if one is not None:
            self._on_change(-1)
            self._updater.close(one.task, swapped)

    def drop(self, tasks: Iterable[TaskId]) -> None:
        """Lets go of tasks without a commit; those that are wanted are opened anew."""
        for task in self._taken_off(tasks):
            self._updater.close(task)

    def set_aside(self, error: StoreEngineError) -> bool:
        """Lets go of the task whose store failed, without a commit, for a while; false when it is none of those here.

        A damaged store is set aside, too, if it has a changelog: then it is restored at once. What is to become of what
        the task has sent is up to the caller.
        """
        if error.task_id is None:
            return False
        found = self._taken_off([error.task_id])
        for task in found:
            damaged = task.restorable(error)
            self._updater.close(task, damaged)
            self._aside.add(task.id, error, is_restored=damaged is not None)
        return bool(found)

    def put_off(self, tasks: Collection[TaskId], wait_s: float) -> None:
        """Has tasks that were let go of wait before they are opened again."""
        self._aside.put_off(tasks, wait_s)

    def _taken_off(self, tasks: Iterable[TaskId]) -> list[Task]:
        """Removes tasks from all that is here, to be closed."""
        gone = frozenset(tasks)
        stopped = [one for task_id, one in self.running.items() if task_id in gone]
        self._stop_feeding(stopped)
        stopped += [self._held.pop(task_id) for task_id in [*self._held] if task_id in gone]
        opening = [self._opening.pop(task_id) for task_id in [*self._opening] if task_id in gone]
        found = [*(one.task for one in stopped), *(one.task for one in opening)]
        for task in found:
            task.abandon()
            self._on_change(-1)
        return found

    def _closed_while_opening(self, task_id: TaskId) -> _Opening | None:
        opened = self._opening.pop(task_id, None)
        if opened is not None:
            self._on_change(-1)
        return opened

    def drop_all(self) -> None:
        """Lets go of all tasks without a commit."""
        self.drop([*self.running, *self._opening, *self._held])

    def _stop_feeding(self, stopped: Collection[Running]) -> None:
        self._reader.unassign([place for one in stopped if one.fed for place in one.inputs])
        for one in stopped:
            del self.running[one.task.id]
            for place in one.inputs:
                del self.by_partition[place]

    def _open(self, tasks: Collection[TaskId]) -> None:
        if not tasks:
            return
        # the offsets come first: under exactly-once they wait for transactions of a dead owner to be settled
        notes = {task_id: note for task_id in tasks if (note := self._note_of(task_id)) is not None}
        places = {
            task_id: self._inputs[task_id] | ({notes[task_id]} if task_id in notes else frozenset())
            for task_id in sorted(tasks)
        }
        found = self._membership.committed(frozenset().union(*places.values()))
        if found is None:
            self._unsettled.not_answered()
            return
        committed = found.offsets
        for task_id in self._unsettled.settled(places, found.unsettled):
            inputs, note = self._inputs[task_id], notes.get(task_id)
            mine = {place: committed[place] for place in inputs if place in committed}
            interrupted = note is not None and was_left_at_work(note, committed)
            task = self._make_task(task_id, inputs, mine, interrupted)
            self._on_change(1)
            self._opening[task_id] = _Opening(task, inputs, mine, note)
            self._updater.open(task, {place: mine[place][0] if place in mine else 0 for place in inputs})

    def _start_restored(self) -> None:
        restored = [one for one in self._opening.values() if one.changelogs is not None]
        if not restored:
            return
        notes = [one.note for one in restored if one.changelogs and one.note is not None]
        if notes and not self._membership.commit(at_work(notes)):
            return  # the group is busy: at the next poll
        self._before_start()
        for one in restored:
            self._start(one, one.changelogs or frozenset())

    def _start(self, opened: _Opening, changelogs: frozenset[TopicPartition]) -> None:
        task = opened.task
        note = opened.note if changelogs else None
        running = Running(task, opened.inputs, changelogs, dict(opened.committed), note)
        self.running[task.id] = running
        self.by_partition.update(dict.fromkeys(opened.inputs, running))
        del self._opening[task.id]  # from here on it is among those that run, whatever happens
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


def _names(tasks: Iterable[TaskId]) -> str:
    return ", ".join(map(str, sorted(tasks)))
