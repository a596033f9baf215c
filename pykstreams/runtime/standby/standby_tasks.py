"""Standby tasks: the state of tasks that run in other instances, kept warm for when they come here.

One thread a process. Its members say by ``assigned`` which standby tasks it keeps (``StandbyPlan``); it opens them in
the folders of their tasks, and lets them follow their changelogs (``ChangelogRounds``). A worker that is given a task
asks for its folder by ``give_up``; the standby ends then, and leaves its stores open for the task (``OpenStores``),
which restores only what is left, also in memory. A task that ends in a worker, and is to be a standby from then on,
leaves its stores open here.

Nothing that goes wrong here ends the application: it is logged, and tried again (``Retries``).

Invariant: the folder of a standby is locked while it is open, by a ``StateDirectory`` of this thread's own, and stays
locked while its stores wait for somebody to take them up; what a worker has asked for is not opened here until it has
let go of it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, TypeAlias

from pykstreams.core.clock import Clock
from pykstreams.core.errors import DamagedStoreError, LockError, StoreEngineError, StreamsError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.pause import Pause
from pykstreams.runtime.restore.damaged_stores import set_store_aside
from pykstreams.runtime.restore.open_tasks import OpenTasks
from pykstreams.runtime.restore.restore import Damaged, Remade, Setback, Truncated
from pykstreams.runtime.standby.changelog_rounds import ROUND_S, ChangelogRounds
from pykstreams.runtime.standby.retries import RETRY_S, Retries
from pykstreams.runtime.standby.standby_folders import Standby, StandbyFolders
from pykstreams.runtime.standby.standby_plan import StandbyPlan, TasksWithInputs
from pykstreams.runtime.standby.update_listener import ListenerFailedError, SuspendReason, UpdateNotices
from pykstreams.runtime.swap.bootstrap import Pin, generation_of, pinned
from pykstreams.runtime.tasks.stores.open_stores import OpenStores
from pykstreams.runtime.tasks.task import Task
from pykstreams.state.directory.disk_room import is_full
from pykstreams.state.directory.file_lock import FileLock
from pykstreams.state.directory.state_directory import StateDirectory

log = logging.getLogger(__name__)

LOOK_S: Final = 5.0
"""How often committed offsets are asked for, and folders are tried again that others had."""

MakeStandby: TypeAlias = Callable[[TaskId, frozenset[TopicPartition], Offsets], Task]
"""(task, the partitions that it reads, what was committed for it): makes a task that sends nothing, never started."""


class StandbyTasks:
    """The standby tasks of one process; any thread may call what stands before ``turn``.

    :param directory: one of this thread's own, so that its locks keep out the workers of this process, too.
    :param on_close: called when everything is closed.
    :param notices: is told of tasks that come and go; the restorers of the rounds tell it of batches.
    :param on_listener_failure: called with the member that a task was assigned to whose listener has failed.
    :param pause: while it is set changelogs are not followed; standby tasks come and go.
    """

    def __init__(
        self,
        name: str,
        *,
        plan: StandbyPlan,
        rounds: ChangelogRounds,
        make_task: MakeStandby,
        directory: StateDirectory,
        clock: Clock,
        on_close: Callable[[], None] = lambda: None,
        pause: Pause | None = None,
        notices: UpdateNotices | None = None,
        on_listener_failure: Callable[[str | None, ListenerFailedError], None] = lambda member, error: None,
    ) -> None:
        self._notices = UpdateNotices(None) if notices is None else notices
        self._on_listener_failure = on_listener_failure
        self._pause = Pause() if pause is None else pause
        self._name = name
        self._plan = plan
        self._rounds = rounds
        self._make_task = make_task
        self._directory = directory
        self._clock = clock
        self._on_close = on_close
        self._open_tasks = OpenTasks(directory.task_dir, clock)
        self._retries = Retries(clock)
        self._folders = StandbyFolders()
        self._look_at = clock.monotonic()
        self._woken = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Closes all standby tasks, with their offsets, and ends the thread."""
        self._stopping = True
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    def assigned(self, member: str, tasks: TasksWithInputs, active: Collection[TaskId] = ()) -> None:
        """Notes the standby tasks that a member was assigned, and the partitions that each of them reads.

        They take the place of those that it had, and stay until it is assigned others: a member that leaves for good is
        to be assigned none. Call it before tasks are revoked, so that one which is to be a standby stays open.

        :param active: the active tasks of the member: standbys of these leave their stores open for them.
        """
        self._plan.assigned(member, tasks, active)
        self._look_soon()

    def give_up(self, task_id: TaskId) -> bool:
        """Asks for the folder of a task; true while there is a standby in it, which is about to leave."""
        found = self._folders.ask_for(task_id)
        if found:
            self._woken.set()
        return found

    def taken(self, task_id: TaskId) -> tuple[OpenStores, FileLock] | None:
        """Returns the stores that were left open in a folder, with its lock; once, to who is to have it now."""
        return self._folders.taken(task_id)

    def wants(self, task_id: TaskId) -> bool:
        """Whether a standby of this task belongs here."""
        return not self._stopping and task_id in self._plan.wanted()

    def take(self, task_id: TaskId, stores: OpenStores, lock: FileLock) -> None:
        """Takes over the stores of a task that has ended in a worker, open as they are, with the lock of its folder."""
        self._folders.leave_open(task_id, stores, lock)

    def allow(self, task_id: TaskId) -> None:
        """Lets go of the folder of a task: a standby may be kept in it again."""
        if self._folders.allow(task_id) or self._plan.member_of(task_id) is not None:
            self._look_soon()

    def tasks(self) -> list[Task]:
        """The standby tasks whose stores are open."""
        return self._folders.open_tasks()

    def positions(self) -> dict[TopicPartition, int]:
        """How far the changelogs are that are being read."""
        return self._rounds.positions()

    def member_of(self, task_id: TaskId) -> str | None:
        """The member that a standby task was assigned to."""
        return self._plan.member_of(task_id)

    def offset_sums(self) -> dict[TaskId, int]:
        """The sum of the changelog offsets of each standby task, also while its stores wait to be taken up."""
        waiting = self._folders.waiting()
        sums = {task_id: sum(stores.offsets.committed().values()) for task_id, stores in waiting.items()}
        return {**sums, **self._open_tasks.sums(self._rounds.positions())}

    def turn(self) -> None:
        """Does what is due; what goes wrong is logged, and tried again."""
        try:
            self._leave_asked_for()
            now = self._clock.monotonic()
            if now >= self._look_at:
                self._look_at = now + LOOK_S
                self._look()
            if not self._pause.is_set:
                for setback in self._rounds.turn(now):
                    self._set_back(setback)
            self._open_tasks.keep()
        except ListenerFailedError as error:  # of a batch that is in the store, and does not count as read
            self._listener_failed(error)
            self._give_up_all()
        except BaseException as error:  # foreign extensions raise what is no Exception, and so does sys.exit
            log.warning(
                "all standby tasks are closed, and opened again in %g s: %s",
                RETRY_S,
                error,
                exc_info=None if isinstance(error, StreamsError) else error,
            )
            self._give_up_all()

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._woken.clear()
                self.turn()
                if self._pause.is_set and not self._stopping:
                    self._woken.wait(ROUND_S)
                elif not self._rounds.is_busy and not self._stopping:
                    self._woken.wait(self._patience())
        finally:
            self.close()

    def close(self) -> None:
        """Closes all standby tasks and everything else; on the thread, or without one."""
        self._close(list(self._folders.standbys.values()))
        self._folders.close_left_open(self._folders.waiting())
        closed_in_order: Mapping[str, Callable[[], None]] = {
            "the consumer of changelogs": self._rounds.close,
            "metrics and committed offsets": self._on_close,
            "the state directory": self._directory.close,
        }
        for what, close in closed_in_order.items():
            try:
                close()
            except Exception:
                log.exception("%s: closing %s went wrong; the rest is closed", self._name, what)

    def _patience(self) -> float | None:
        """How long there is nothing to do; ``None``: until somebody wants something."""
        due = [] if (round_at := self._rounds.due_at) is None else [round_at]
        if self._plan.wanted():
            due.append(self._look_at)
        return max(0.0, min(due) - self._clock.monotonic()) if due else None

    def _look_soon(self) -> None:
        self._look_at = self._clock.monotonic()
        self._woken.set()

    def _leave_asked_for(self) -> None:
        self._close((one for one in self._folders.asked_for() if not self._leave(one)), reason=SuspendReason.PROMOTED)

    def _leave(self, standby: Standby) -> bool:
        """Leaves the stores of a standby open for the task that comes here; false where it has to be closed."""
        task = standby.task
        try:
            self._rounds.remove(task.id)
            stores = task.hand_over() if standby.is_open else None
            if stores is not None:
                self._tell_end(task.id, SuspendReason.PROMOTED)
        except Exception:
            log.exception("standby task %s: its stores are closed, and opened again", task.id)
            return False
        if stores is None:
            return False
        self._open_tasks.forget(task)
        self._folders.replace(task.id, stores, self._directory.give(task.id))
        log.info("standby task %s leaves its stores open for the task", task.id)
        return True

    def _look(self) -> None:
        """Closes the standby tasks that do not belong here, and opens those that do."""
        folders = self._folders
        wanted, nobodys = folders.sort_out(self._plan.wanted())
        folders.close_left_open(task_id for task_id in nobodys if not self._plan.is_active(task_id))
        gone = [one for task_id, one in folders.standbys.items() if one.inputs != wanted.get(task_id)]
        self._close(one for one in gone if not (self._plan.is_active(one.task.id) and self._leave(one)))
        try:
            is_known = self._plan.ask_committed(wanted)
        except StreamsError as error:
            why = f"the committed offsets of standby tasks are not known, and are asked for again: {error}"
            self._retries.warn(None, why)
            return
        self._retries.is_over(None)
        if not is_known:
            self._look_at = self._clock.monotonic() + ROUND_S
            return
        moved = [one for task_id, one in folders.standbys.items() if one.base != _base(self._plan.committed(task_id))]
        self._close(moved)
        for task_id in sorted(wanted.keys() - folders.standbys.keys()):
            if self._retries.is_due(task_id):
                self._open(task_id, wanted[task_id])

    def _open(self, task_id: TaskId, inputs: frozenset[TopicPartition]) -> None:
        committed = self._plan.committed(task_id)
        task = self._make_task(task_id, inputs, committed)
        standby = Standby(task, inputs, _base(committed))
        if not self._folders.enter(standby):
            return
        left = self.taken(task_id)
        try:
            if left is None:
                self._directory.lock(task_id)
            else:
                self._directory.take(task_id, left[1])
            stores = task.open_stores(None if left is None else left[0])
        except LockError as error:
            log.debug("standby task %s waits for its folder: %s", task_id, error)
            self._close([standby])
        except StoreEngineError as error:
            self._set_back(Damaged(task_id, error))
        except StreamsError as error:
            self._try_later(standby, str(error))
        except OSError as error:
            if not is_full(error):
                raise
            where = f"its stores in {str(self._directory.task_path(task_id))!r}"
            self._try_later(standby, f"{where} cannot be opened: {error}. Their disk is full: make room")
        else:
            self._open_tasks.add(task)
            self._notices.add(task_id, stores)
            self._rounds.add(task_id, stores, task.reached)
            standby.is_open = True
            self._retries.is_over(task_id)
            log.info("standby task %s follows %s", task_id, ", ".join(map(str, sorted(stores))))

    def _set_back(self, setback: Setback) -> None:
        """Closes a standby that cannot follow; it is deleted only where its changelog has all of it."""
        standby = self._folders.standbys.get(setback.task_id)
        if standby is None:  # another store of the same task was first
            return
        match setback:
            case Truncated(reason=reason):
                log.warning("%s; the standby task is deleted, and its changelogs are read from the beginning", reason)
                self._close([standby], setback)
                self._look_at = self._clock.monotonic()
            case Remade(place=place, reason=reason):
                why = f"topic {place.topic!r} was deleted and made anew, or has lost records, so the state here is kept"
                self._try_later(standby, f"{reason}: {why}")
            case Damaged(error=error):
                if (damaged := standby.task.restorable(error)) is None:
                    self._try_later(standby, str(error))
                else:
                    self._retries.later([setback.task_id])
                    self._close([standby], damaged)

    def _try_later(self, standby: Standby, why: str) -> None:
        task_id = standby.task.id
        self._retries.warn(task_id, f"standby task {task_id} is closed, and tried again every {RETRY_S:g} s: {why}")
        self._retries.later([task_id])
        self._close([standby])

    def _give_up_all(self) -> None:
        self._retries.later(self._folders.standbys)
        self._close(list(self._folders.standbys.values()))
        try:
            self._rounds.close()
        except Exception:
            log.exception("%s: the consumer of changelogs was not closed in good order", self._name)

    def _tell_end(self, task_id: TaskId, reason: SuspendReason) -> None:
        try:
            self._notices.remove(task_id, reason)
        except ListenerFailedError as error:
            self._listener_failed(error)

    def _listener_failed(self, error: ListenerFailedError) -> None:
        log.error("%s", error)
        member = None if error.task_id is None else self._plan.member_of(error.task_id)
        self._on_listener_failure(member, error)

    def _close(
        self,
        standbys: Iterable[Standby],
        leaves: Truncated | DamagedStoreError | None = None,
        *,
        reason: SuspendReason = SuspendReason.MIGRATED,
    ) -> None:
        """Closes standby tasks; their state is deleted, or the damaged store set aside, where that is why."""
        for one in list(standbys):
            task_id = one.task.id
            try:
                self._rounds.remove(task_id)
            except Exception:
                log.exception("standby task %s: its offsets were not kept; more is read again", task_id)
            try:
                with self._open_tasks.closing(one.task):
                    one.task.close()
            except Exception:
                log.exception("standby task %s: closing went wrong", task_id)
            try:
                match leaves:
                    case Truncated():
                        self._directory.wipe(task_id)
                    case DamagedStoreError():
                        set_store_aside(self._directory, task_id, leaves)
            except Exception:
                log.exception("standby task %s: its state was not deleted", task_id)
            finally:
                self._tell_end(task_id, reason)
                self._directory.unlock(task_id)
                self._folders.remove(task_id)
            if one.is_open:
                log.info("standby task %s is closed", task_id)


def _base(committed: Offsets) -> tuple[int | None, Pin | None]:
    return generation_of(committed), pinned(committed.values())
