"""Standby tasks: copies of the state of tasks that run in other instances, kept warm for when they come here.

One thread a process. Every few seconds it asks who is in the group and what they work on, sees by ``placement``
which copies are its own, opens them in the folders of their tasks, and lets them follow their changelogs in rounds: a
round goes from where a store was committed to the end that its changelog has by then, with the same ``Restorer`` as
active tasks. A worker that is given a task asks for its folder by ``give_up``; the copy is closed then, with its
offsets, and the task restores what is left.

Nothing that goes wrong here ends the application: it is told, and tried again.

Invariant: the folder of a copy is locked while it is open, by a ``StateDirectory`` of this thread's own; what a worker
has asked for is not opened here until it has let go of it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.errors import LockError, StreamsError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.restore.restore import Damaged, OffsetReader, Remade, Restorer, Setback, Truncated
from pykstreams.runtime.standby.placement import place
from pykstreams.runtime.swap.bootstrap import Pin, generation_of, pinned
from pykstreams.runtime.tasks.task import Task
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.interfaces.store import ChangelogRow, TaskStore

log = logging.getLogger(__name__)

LOOK_S: Final = 5.0
"""How often the group is asked for its members."""

ROUND_S: Final = 1.0
"""How often the changelogs of copies are looked at."""

_RETRY_S: Final = 30.0
_FETCH_S: Final = 0.1


class GroupView(Protocol):
    """The view of the group that this module needs, of which it is no member."""

    def members(self) -> Mapping[str, frozenset[TaskId]] | None:
        """The active tasks of each instance; ``None`` while they are being shared out."""
        ...

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets | None:
        """Committed offsets; ``None``: ask again later."""
        ...

    def close(self) -> None: ...


class FollowedStore:
    """A store of a copy as the restorer gets it: it knows where it is, also when it keeps its rows in memory."""

    __slots__ = ("_offset", "_store", "name")

    def __init__(self, store: TaskStore) -> None:
        self._store = store
        self._offset: int | None = None
        self.name = store.name

    def committed_offset(self) -> int | None:
        return self._store.committed_offset() if self._offset is None else self._offset

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        self._store.restore(rows)

    def commit(self, changelog_offset: int) -> None:
        self._store.commit(changelog_offset)
        self._offset = changelog_offset

    def end_restore(self) -> None:
        self._store.end_restore()


class KnownOffsets:
    """Where changelogs begin and end, asked for all copies at once."""

    def __init__(self, offsets: OffsetReader) -> None:
        self._offsets = offsets
        self._begins: Mapping[TopicPartition, int] = {}
        self._ends: Mapping[TopicPartition, int] = {}

    def refresh(self, partitions: Collection[TopicPartition]) -> None:
        """Asks anew."""
        self._begins = self._offsets.beginning_offsets(partitions)
        self._ends = self._offsets.end_offsets(partitions)

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {one: self._begins[one] for one in partitions}

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {one: self._ends[one] for one in partitions}


@dataclass(slots=True)
class _Copy:
    task: Task
    base: tuple[int | None, Pin | None]
    """The generation that its state began with, by the committed offsets."""
    stores: dict[TopicPartition, FollowedStore] = field(default_factory=dict)
    opened: bool = False
    warm: bool = False
    """Whether it has come to the end of its changelogs once."""


class StandbyTasks:
    """The copies of one process; ``look``, ``give_up``, ``allow`` and ``tasks`` may be called from any thread.

    :param instance: what this process goes by in the group; with others of the same state directory it shares copies,
        whoever comes first to each of them.
    :param stateful: the tasks that are worth a copy, with the partitions that they read.
    :param make_task: makes a task that sends nothing, and is never started.
    :param restorer: makes what reads changelogs, and what closes it.
    :param directory: one of this thread's own, so that its locks keep out the workers of this process, too.
    """

    def __init__(
        self,
        name: str,
        *,
        instance: str,
        replicas: int,
        stateful: Mapping[TaskId, frozenset[TopicPartition]],
        group: GroupView,
        make_task: Callable[[TaskId, frozenset[TopicPartition], Offsets], Task],
        restorer: Callable[[OffsetReader], tuple[Restorer, Callable[[], None]]],
        offsets: OffsetReader,
        directory: StateDirectory,
        clock: Clock,
    ) -> None:
        self._name = name
        self._instance = instance
        self._replicas = replicas
        self._stateful = stateful
        self._group = group
        self._make_task = make_task
        self._make_restorer = restorer
        self._known = KnownOffsets(offsets)
        self._directory = directory
        self._clock = clock
        self._lock = threading.Lock()
        self._asked_for: set[TaskId] = set()
        self._copies: dict[TaskId, _Copy] = {}
        self._retry_at: dict[TaskId, float] = {}
        self._complaints: dict[TaskId | None, str] = {}
        self._committed: Offsets = {}
        self._restorer: Restorer | None = None
        self._close_restorer: Callable[[], None] = lambda: None
        self._look_at = self._round_at = clock.monotonic()
        self._woken = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Closes all copies, with their offsets, and ends the thread."""
        self._stopping = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """Has the group looked at soon: tasks have moved."""
        self._look_at = self._clock.monotonic()
        self._woken.set()

    def give_up(self, task_id: TaskId) -> bool:
        """Asks for the folder of a task; true while there is a copy in it, which is about to be closed."""
        with self._lock:
            self._asked_for.add(task_id)
            found = task_id in self._copies
        if found:
            self._woken.set()
        return found

    def allow(self, task_id: TaskId) -> None:
        """Lets go of the folder of a task: a copy may be kept in it again."""
        with self._lock:
            self._asked_for.discard(task_id)

    def tasks(self) -> list[Task]:
        """The copies whose stores are open."""
        with self._lock:
            return [one.task for one in self._copies.values() if one.opened]

    def turn(self) -> None:
        """Does what is due; what goes wrong is told, and tried again."""
        try:
            self._close_asked_for()
            now = self._clock.monotonic()
            if now >= self._look_at:
                self._look_at = now + LOOK_S
                self._look()
            self._follow(now)
        except Exception as error:  # what a worker would end with must not end it from here
            log.warning(
                "the copies of other tasks are closed, and opened again in %g s: %s",
                _RETRY_S,
                error,
                exc_info=None if isinstance(error, StreamsError) else error,
            )
            self._give_up_all()

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._woken.clear()
                self.turn()
                if not self._busy and not self._stopping:
                    self._woken.wait(self._patience())
        finally:
            self.close()

    def close(self) -> None:
        """Closes all copies and everything else; on the thread, or without one."""
        self._close(list(self._copies.values()))
        for close in (self._close_restorer, self._group.close, self._directory.close):
            try:
                close()
            except Exception:
                log.exception("%s: something went wrong while it closed", self._name)
        self._close_restorer = lambda: None

    @property
    def _busy(self) -> bool:
        restorer = self._restorer
        return restorer is not None and any(restorer.is_restoring(task_id) for task_id in self._copies)

    def _patience(self) -> float:
        due = min(self._look_at, self._round_at) if self._copies else self._look_at
        return max(0.0, due - self._clock.monotonic())

    def _close_asked_for(self) -> None:
        with self._lock:
            going = [one for task_id, one in self._copies.items() if task_id in self._asked_for]
        self._close(going)

    def _look(self) -> None:
        try:
            members = self._group.members()
            if members is None:  # tasks are being shared out; the copies stay as they are
                self._look_at = self._clock.monotonic() + ROUND_S
                return
            wanted = self._wanted(members)
            self._close([one for task_id, one in self._copies.items() if task_id not in wanted])
            committed = self._group.committed({place for task_id in wanted for place in self._stateful[task_id]})
        except StreamsError as error:
            self._complain(None, f"where copies of tasks belong was not found out, and is asked again: {error}")
            return
        self._complaints.pop(None, None)
        if committed is None:
            self._look_at = self._clock.monotonic() + ROUND_S
            return
        self._committed = committed
        moved = [one for task_id, one in self._copies.items() if one.base != _base(self._committed_of(task_id))]
        self._close(moved)
        for task_id in sorted(wanted.difference(self._copies)):
            if self._clock.monotonic() >= self._retry_at.get(task_id, 0):
                self._open(task_id)

    def _wanted(self, members: Mapping[str, frozenset[TaskId]]) -> set[TaskId]:
        """The tasks of which a copy belongs here; those that nobody works on at the moment stay."""
        active = {task: one for one, tasks in members.items() for task in tasks if task in self._stateful}
        placed = place(active, members, self._replicas)
        wanted = {task for task, instances in placed.items() if self._instance in instances}
        with self._lock:
            return (wanted | {task for task in self._copies if task not in active}) - self._asked_for

    def _committed_of(self, task_id: TaskId) -> Offsets:
        return {place: self._committed[place] for place in self._stateful[task_id] if place in self._committed}

    def _open(self, task_id: TaskId) -> None:
        mine = self._committed_of(task_id)
        task = self._make_task(task_id, self._stateful[task_id], mine)
        copy = _Copy(task, _base(mine))
        with self._lock:
            if task_id in self._asked_for:
                return
            self._copies[task_id] = copy
        try:
            self._directory.lock(task_id)
            stores = task.open_stores()
        except LockError as error:
            log.debug("standby task %s waits for its folder: %s", task_id, error)
            self._close([copy])
        except StreamsError as error:
            self._try_later(copy, str(error))
        else:
            copy.stores = {place: FollowedStore(store) for place, store in stores.items()}
            copy.opened = True
            self._complaints.pop(task_id, None)
            self._round_at = self._clock.monotonic()
            log.info("standby task %s follows %s", task_id, ", ".join(map(str, sorted(copy.stores))))

    def _complain(self, about: TaskId | None, text: str) -> None:
        """Warns of what goes on being wrong once."""
        if self._complaints.get(about) != text:
            self._complaints[about] = text
            log.warning("%s", text)

    def _follow(self, now: float) -> None:
        """Goes on with what is being read, and begins a round with what is not."""
        if not self._copies:
            return
        if self._restorer is None:
            self._restorer, self._close_restorer = self._make_restorer(self._known)
        restorer = self._restorer
        if now >= self._round_at:
            self._round_at = now + ROUND_S
            self._begin_round(restorer)
        if self._busy:
            for setback in restorer.step(_FETCH_S):
                self._set_back(setback)
            self._note_warm(restorer)

    def _begin_round(self, restorer: Restorer) -> None:
        idle = [one for one in self._copies.values() if one.opened and not restorer.is_restoring(one.task.id)]
        self._known.refresh({place for one in idle for place in one.stores})
        for one in idle:
            # a source topic that serves as changelog must not be followed beyond what the task has worked on
            limits = {place: self._committed.get(place, (0, ""))[0] for place in self._stateful[one.task.id]}
            if setback := restorer.add(one.task.id, one.stores, limits):
                self._set_back(setback)
        self._note_warm(restorer)

    def _note_warm(self, restorer: Restorer) -> None:
        for task_id, one in self._copies.items():
            if one.opened and not one.warm and not restorer.is_restoring(task_id):
                one.warm = True
                log.info("standby task %s is up to date", task_id)

    def _set_back(self, setback: Setback) -> None:
        """Closes a copy that cannot follow; it is deleted only where its changelog has all of it."""
        copy = self._copies.get(setback.task_id)
        if copy is None:  # another store of the same task was first
            return
        match setback:
            case Truncated(reason=reason):
                log.warning("%s; the copy is deleted and read from the beginning", reason)
                self._close([copy], wipe=True)
                self._look_at = self._clock.monotonic()
            case Remade(place=place, reason=reason):
                why = f"topic {place.topic!r} was deleted and made anew, or has lost records, so the copy is kept"
                self._try_later(copy, f"{reason}: {why}")
            case Damaged(error=error):
                self._try_later(copy, str(error))

    def _try_later(self, copy: _Copy, why: str) -> None:
        task_id = copy.task.id
        self._complain(task_id, f"standby task {task_id} is closed, and tried again every {_RETRY_S:g} s: {why}")
        self._retry_at[task_id] = self._clock.monotonic() + _RETRY_S
        self._close([copy])

    def _give_up_all(self) -> None:
        later = self._clock.monotonic() + _RETRY_S
        self._retry_at.update(dict.fromkeys(self._copies, later))
        self._close(list(self._copies.values()))
        try:
            self._close_restorer()
        except Exception:
            log.exception("%s: the consumer of copies was not closed in good order", self._name)
        self._restorer, self._close_restorer = None, lambda: None

    def _close(self, copies: Iterable[_Copy], *, wipe: bool = False) -> None:
        for one in list(copies):
            task_id = one.task.id
            try:
                if self._restorer is not None and one.stores:
                    self._restorer.remove(task_id)
            except Exception:
                log.exception("standby task %s: its offsets were not kept; more is read again", task_id)
            try:
                one.task.close()
                if wipe:
                    self._directory.wipe(task_id)
            except Exception:
                log.exception("standby task %s: closing went wrong", task_id)
            finally:
                self._directory.unlock(task_id)
                with self._lock:
                    del self._copies[task_id]
            if one.opened:
                log.info("standby task %s is closed", task_id)


def _base(committed: Offsets) -> tuple[int | None, Pin | None]:
    return generation_of(committed), pinned(committed.values())
