"""The state-updater thread: opens the stores of tasks, restores them, makes their next state, and closes them again.

All of it takes long now and then, and the worker must go on polling meanwhile. A task belongs to this thread from
``open`` until it is handed over as ``Restored``, and again from ``close`` on; orders are carried out one after the
other, so a task that comes back is opened only after it was closed.

Invariant: the folder of a task is locked from before its stores are opened until after they are closed.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Protocol, TypeAlias

from pykstreams.core.clock import Clock
from pykstreams.core.errors import (
    ClusterUnavailableError,
    DamagedStoreError,
    DiskFullError,
    MissingInternalTopicsError,
    StoreEngineError,
    StreamsError,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.clients.outage import Outage
from pykstreams.runtime.metrics.updater_metrics import UpdaterMetrics
from pykstreams.runtime.pause import Pause
from pykstreams.runtime.restore.open_tasks import OpenTasks, TaskWithStores
from pykstreams.runtime.restore.remade_changelogs import RemadeChangelogs
from pykstreams.runtime.restore.restore import Damaged, Remade, RestorableStore, Restorer, Setback, Truncated
from pykstreams.runtime.swap.shadow import Shadow
from pykstreams.runtime.tasks.stores.open_stores import OpenStores
from pykstreams.runtime.worker.task_folders import LOCK_RETRY_S, Standbys, TaskFolders
from pykstreams.runtime.worker.task_reports import TaskReports
from pykstreams.state.directory.disk_room import is_full
from pykstreams.state.directory.state_directory import StateDirectory

log = logging.getLogger(__name__)

_FETCH_S = 0.1
_CLUSTER_RETRY_S = 1.0
_SHADOW_S = 0.02
"""How long a shadow that is where its task was waits for its next commit."""


class OpenableTask(TaskWithStores, Protocol):
    """The methods of a task that this thread calls."""

    def open_stores(self, kept: OpenStores | None = None) -> Mapping[TopicPartition, RestorableStore]: ...

    def hand_over(self) -> OpenStores | None: ...

    def close(self) -> None: ...

    def restorable(self, error: StoreEngineError) -> DamagedStoreError | None: ...


@dataclass(frozen=True, slots=True)
class Restored:
    """A task whose stores are as their changelogs say; it is the worker's from now on."""

    task_id: TaskId
    changelogs: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Corrupted:
    """A task that was closed and is to be opened anew; its state is deleted where its changelog has all of it."""

    task_id: TaskId


class UpdaterEndedError(Exception):
    """The thread has failed, which ends its worker: nothing would be opened any more."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Failed:
    """The error after which the thread opens nothing more; it closes tasks until it is stopped."""

    error: Exception


Report: TypeAlias = Restored | Corrupted | Damaged | Failed
"""A task that is ``Damaged`` was closed; its state is as it was, or the damaged store set aside."""


Leaves: TypeAlias = Shadow | DamagedStoreError | Truncated | None
"""The fate of the state of a task that is closed: its shadow takes its place, the damaged store is set aside, all of it
is deleted, or it stays as it is."""


@dataclass(frozen=True, slots=True)
class _Open:
    task: OpenableTask
    limits: Mapping[TopicPartition, int]
    give_up_at: float


@dataclass(frozen=True, slots=True)
class _Close:
    task: OpenableTask
    leaves: Leaves


class StateUpdater:
    """The thread of one worker; its methods are for the worker's thread.

    :param pause: while it is set nothing is read back; stores are opened and closed.
    """

    def __init__(
        self,
        name: str,
        *,
        restorer: Callable[[], tuple[Restorer, Callable[[], None]]],
        directory: StateDirectory,
        clock: Clock,
        task_timeout_ms: int,
        cleanup_delay_ms: int,
        standbys: Standbys | None = None,
        pause: Pause | None = None,
        metrics: UpdaterMetrics | None = None,
    ) -> None:
        self._pause = Pause() if pause is None else pause
        self._metrics = UpdaterMetrics(StreamsMetrics(clock=clock)) if metrics is None else metrics
        self._make_restorer = restorer
        self._folders = TaskFolders(
            directory, clock, task_timeout_ms=task_timeout_ms, cleanup_delay_ms=cleanup_delay_ms, standbys=standbys
        )
        self._tasks = OpenTasks(directory.task_dir, clock)
        self._clock = clock
        self._outage = Outage(f"requests of {name}", clock, task_timeout_ms / 1000)
        self._orders: SimpleQueue[_Open | _Close | Shadow | None] = SimpleQueue()
        self._reports: TaskReports[OpenableTask, Report] = TaskReports()
        self._waiting: dict[TaskId, _Open] = {}
        self._retry_at = 0.0
        self._restoring: dict[TaskId, tuple[OpenableTask, frozenset[TopicPartition]]] = {}
        self._restorer: Restorer | None = None
        self._remade = RemadeChangelogs(clock)
        self._shadow: Shadow | None = None
        self._shadow_works = False
        self._started = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._started = True
        self._metrics.describe(
            restoring=lambda: len(self._restoring), standby=lambda: 0, paused=lambda: self._pause.is_set
        )
        self._thread.start()

    def open(self, task: OpenableTask, limits: Mapping[TopicPartition, int]) -> None:
        """Hands a task to this thread: to open its stores, restore them, and hand it back."""
        self._orders.put(_Open(task, limits, self._folders.give_up_at()))

    def follow(self, shadow: Shadow) -> None:
        """Hands the shadow of a task to this thread, until that task is closed; there is one at a time."""
        self._orders.put(shadow)

    def close(self, task: OpenableTask, leaves: Leaves = None) -> None:
        """Hands a task to this thread: to close it, wherever it is.

        :param leaves: what becomes of its state; of a shadow that is not to take its place nothing is left.
        """
        self._reports.take_back(task)
        if self._thread.is_alive() or not self._started:
            self._orders.put(_Close(task, leaves))
        else:  # it has ended
            self._close(task, leaves)

    def reports(self) -> list[Report]:
        """The events since the last call, without those of tasks that were handed over to be closed meanwhile."""
        return self._reports.take()

    def remaining(self) -> dict[TaskId, int]:
        """How many changelog offsets each restoring task has still before it."""
        return {} if self._restorer is None else self._restorer.remaining()

    @property
    def restored(self) -> int:
        """How many records have been restored so far."""
        return 0 if self._restorer is None else self._restorer.restored

    def positions(self) -> dict[TopicPartition, int]:
        """How far the changelogs are that are being read; may be called from any thread."""
        return {} if self._restorer is None else self._restorer.positions()

    def offset_sums(self) -> dict[TaskId, int]:
        """The sum of the changelog offsets of each task whose stores are open; may be called from any thread.

        These are all tasks of the worker: those that it works on, those that are restored, and those that are about to
        be closed.
        """
        return self._tasks.sums(self.positions())

    def stop(self) -> None:
        """Carries out the orders there are, closes every task that is not handed over, and ends the thread.

        While brokers do not answer, no more stores are opened.
        """
        self._stopping.set()
        self._orders.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        with ExitStack() as stack:  # closed from the last to the first, whatever one of them raises
            stack.callback(self._metrics.close)
            try:
                self._restorer, close = self._make_restorer()
                stack.callback(close)
                stack.callback(self._close_restoring)
                while self.turn(self._restorer, self._patience()):
                    continue
            except BaseException as error:  # foreign extensions raise what is no Exception, and so does sys.exit
                self._reports.put(None, Failed(_ending(error)))
                self._only_close()

    def _close_restoring(self) -> None:
        self._discard_shadow()
        for task, _ in list(self._restoring.values()):
            self._close_whatever_comes(task)

    def _close_whatever_comes(self, task: OpenableTask, leaves: Leaves = None) -> None:
        try:
            self._close(task, leaves)
        except Exception:
            log.exception("task %s: its state was not put in order", task.id)

    def _only_close(self) -> None:
        """Opens nothing more, and closes what it is told to, until the end: the next owner must find folders free."""
        while (order := self._orders.get()) is not None:
            match order:
                case _Open():
                    self._waiting[order.task.id] = order
                case _Close():
                    self._close_whatever_comes(order.task, order.leaves)
                case Shadow():
                    self._shadow = order

    def turn(self, restorer: Restorer, wait: float) -> bool:
        """Carries out the orders there are, for one of which it waits, and goes on with the rest; false at the end."""
        began = self._clock.monotonic()
        goes_on = self._obey(wait)
        if wait:
            self._metrics.idled(self._clock.monotonic() - began)
        if not goes_on:
            return False
        self._work(restorer)
        return True

    def _patience(self) -> float:
        """How long to wait for orders: with nothing else to do."""
        if self._restoring or self._shadow_works:
            return LOCK_RETRY_S if self._pause.is_set else 0
        if self._shadow is not None:
            return _SHADOW_S
        if self._waiting:
            return LOCK_RETRY_S
        due_in_s = self._tasks.due_in_s
        patience = self._folders.cleanup_in_s() if due_in_s is None else min(due_in_s, self._folders.cleanup_in_s())
        return max(LOCK_RETRY_S, patience)

    def _obey(self, wait: float) -> bool:
        while True:
            try:
                order = self._orders.get(wait != 0, wait)
            except Empty:
                return True
            wait = 0
            match order:
                case None:
                    return False
                case _Open():
                    self._open(order)
                case _Close():
                    self._close(order.task, order.leaves)
                case Shadow():
                    self._shadow = order

    def _work(self, restorer: Restorer) -> None:
        if self._restoring and not self._pause.is_set:
            for setback in restorer.step(_FETCH_S):
                self._set_back(setback)
            self._hand_over(restorer)
        if self._shadow is not None and not self._pause.is_set:
            self._shadow_works = self._shadow.step()
        if self._waiting and self._clock.monotonic() >= self._retry_at:
            for order in list(self._waiting.values()):
                self._open(order)
        self._tasks.keep()
        self._folders.clean_up()

    def _open(self, order: _Open) -> None:
        task = order.task
        if self._outage.lasts and (self._stopping.is_set() or self._clock.monotonic() < self._retry_at):
            self._waiting[task.id] = order  # with the task whose request has failed; at the end, to be closed only
            return
        try:
            claimed = self._folders.claim(task.id, give_up_at=order.give_up_at, is_waiting=task.id in self._waiting)
        except StoreEngineError as error:
            self._waiting.pop(task.id, None)
            self._folders.allow_standby(task.id)
            self._reports.put(task, Damaged(task.id, error))
            return
        if not claimed:
            self._wait(order, LOCK_RETRY_S)
            return
        self._waiting.pop(task.id, None)
        restorer = self._restorer
        assert restorer is not None  # set before the first order is carried out
        self._restoring[task.id] = (task, frozenset())
        try:
            stores = task.open_stores(self._folders.left_open(task.id))
            self._tasks.add(task)
            setback = restorer.add(task.id, stores, order.limits)
        except ClusterUnavailableError as error:
            self._outage.failed(error)
            self._close(task)
            self._wait(order, _CLUSTER_RETRY_S)
            return
        except StoreEngineError as error:
            self._set_back(Damaged(task.id, error))
            return
        except OSError as error:
            if not is_full(error):
                raise
            folder = str(self._folders.path(task.id))
            text = (
                f"the stores of task {task.id} in {folder!r} cannot be opened: {error}. Their disk is full: make room"
            )
            self._set_back(Damaged(task.id, DiskFullError(text, folder=folder, task_id=task.id)))
            return
        self._outage.over()
        self._restoring[task.id] = (task, frozenset(stores))
        if setback:
            self._set_back(setback, order)
        else:
            self._hand_over(restorer)

    def _wait(self, order: _Open, seconds: float) -> None:
        self._waiting[order.task.id] = order
        self._retry_at = self._clock.monotonic() + seconds

    def _discard_shadow(self) -> None:
        shadow, self._shadow, self._shadow_works = self._shadow, None, False
        if shadow is not None:
            try:
                shadow.discard()
            except Exception:  # its task is to be closed all the same
                log.exception("task %s: what was made as its next state was not deleted", shadow.task_id)

    def _hand_over(self, restorer: Restorer) -> None:
        for task_id, (task, changelogs) in list(self._restoring.items()):
            if not restorer.is_restoring(task_id):
                del self._restoring[task_id]
                self._remade.forget(changelogs)
                self._reports.put(task, Restored(task_id, changelogs))

    def _set_back(self, setback: Setback, order: _Open | None = None) -> None:
        """Closes a task that cannot be restored; its state is deleted only where its changelog has all of it.

        :param order: the order to open it, while that is being carried out.
        """
        task_id = setback.task_id
        found = self._restoring.get(task_id)
        if found is None:  # another store of the same task was first
            return
        match setback:
            case Truncated(reason=reason):
                log.warning("%s; its state is deleted and restored from the beginning", reason)
                self._close(found[0], setback)
                self._reports.put(found[0], Corrupted(task_id))
            case Damaged(error=error):
                self._close(found[0], found[0].restorable(error))
                self._reports.put(found[0], setback)
            case Remade():
                self._close(found[0])
                if self._remade.is_certain(setback):
                    raise self._without_changelog(setback)
                if order is None:
                    self._reports.put(found[0], Corrupted(task_id))
                else:
                    self._wait(order, _CLUSTER_RETRY_S)

    def _without_changelog(self, remade: Remade) -> MissingInternalTopicsError:
        folder = str(self._folders.path(remade.task_id))
        return MissingInternalTopicsError(
            f"{remade.reason}: the topic was deleted and made anew, for instance by a reset on another machine or with "
            "another state directory, or the brokers have lost records of it. The local state may be the only copy "
            "that is left, so it is not touched, and nothing is processed. After a reset, delete the local state here, "
            "too: stop all workers, and run pykstreams reset with --to-current and the --state-dir of this worker. "
            f"Otherwise bring back topic {remade.place.topic!r} with all its records and offsets (from a backup or a "
            f"mirror); or delete the folder {folder!r}, and the task goes on with what the topic holds now",
            [remade.place.topic],
        )

    def _close(self, task: OpenableTask, leaves: Leaves = None) -> None:
        if self._waiting.pop(task.id, None) is not None:
            self._folders.allow_standby(task.id)
            return
        try:
            if self._restoring.pop(task.id, None) is not None and self._restorer is not None:
                self._restorer.remove(task.id)
        finally:  # nobody but this knows of the task any more, whatever a listener of restoring has raised
            self._close_stores(task, leaves)

    def _close_stores(self, task: OpenableTask, leaves: Leaves) -> None:
        swapped = leaves if isinstance(leaves, Shadow) else None
        if self._shadow is not None and self._shadow.task_id == task.id and self._shadow is not swapped:
            self._discard_shadow()
        try:
            if leaves is None and self._folders.hand_on(task.id, task.hand_over):
                self._tasks.forget(task)
                log.info("task %s is a standby task from now on, with its stores open", task.id)
                return
            with self._tasks.closing(task):
                task.close()
            if swapped is not None:
                swapped.adopt()
                self._shadow, self._shadow_works = None, False
        except Exception:
            self._tasks.forget(task)
            log.exception("task %s: closing went wrong; its state is read again from the last commit", task.id)
            if swapped is not None:
                self._discard_shadow()
        try:
            match leaves:
                case Truncated():
                    self._folders.wipe(task.id)
                case DamagedStoreError():
                    self._folders.set_aside(task.id, leaves)
        finally:
            self._folders.unlock(task.id)


def _ending(error: BaseException) -> Exception:
    """The error that a worker ends with, whose thread of state was ended by another one."""
    if isinstance(error, Exception):
        return error
    ending = StreamsError(f"the thread of state was ended by {error!r}; the worker cannot go on without it")
    ending.__cause__ = error
    return ending
