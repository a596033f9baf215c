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
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Protocol, TypeAlias
from weakref import WeakSet

from pykstreams.core.clock import Clock
from pykstreams.core.errors import (
    ClusterUnavailableError,
    LockError,
    MissingInternalTopicsError,
    StoreEngineError,
    StreamsError,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.restore.restore import Damaged, Remade, Restorer, Setback, Truncated
from pykstreams.runtime.swap.shadow import Shadow
from pykstreams.runtime.worker.outage import Outage
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.interfaces.store import TaskStore

log = logging.getLogger(__name__)

_FETCH_S = 0.1
_LOCK_RETRY_S = 0.1
_CLUSTER_RETRY_S = 1.0
_SHADOW_S = 0.02
"""How long a shadow that is where its task was waits for news of it."""


class Copies(Protocol):
    """The methods of the standby tasks that this thread calls; they may be in the folder of a task that comes here."""

    def give_up(self, task_id: TaskId) -> bool:
        """Asks for the folder of a task; true while there is a copy in it, which is about to be closed."""
        ...

    def allow(self, task_id: TaskId) -> None:
        """Lets go of the folder of a task."""
        ...


class OpenableTask(Protocol):
    """The methods of a task that this thread calls."""

    @property
    def id(self) -> TaskId: ...

    def open_stores(self) -> dict[TopicPartition, TaskStore]: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Restored:
    """A task whose stores are as their changelogs say; it is the worker's from now on."""

    task_id: TaskId
    changelogs: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Corrupted:
    """A task whose local state is of no use; it was closed and its state deleted."""

    task_id: TaskId


@dataclass(frozen=True, slots=True)
class Failed:
    """Something that ends the worker."""

    error: Exception


Report: TypeAlias = Restored | Corrupted | Damaged | Failed
"""A task that is ``Damaged`` was closed, and its state left as it is."""


@dataclass(frozen=True, slots=True)
class _Open:
    task: OpenableTask
    limits: Mapping[TopicPartition, int]
    give_up_at: float


@dataclass(frozen=True, slots=True)
class _Close:
    task: OpenableTask
    wipe: bool
    swapped: Shadow | None


class StateUpdater:
    """The thread of one worker; its methods are for the worker's thread."""

    def __init__(
        self,
        name: str,
        *,
        restorer: Callable[[], tuple[Restorer, Callable[[], None]]],
        directory: StateDirectory,
        clock: Clock,
        task_timeout_ms: int,
        cleanup_delay_ms: int,
        copies: Copies | None = None,
    ) -> None:
        self._make_restorer = restorer
        self._copies = copies
        self._directory = directory
        self._clock = clock
        self._task_timeout_s = task_timeout_ms / 1000
        self._cleanup_delay_ms = cleanup_delay_ms
        self._cleanup_at = clock.monotonic() + cleanup_delay_ms / 1000
        self._outage = Outage(f"requests of {name}", clock, task_timeout_ms / 1000)
        self._orders: SimpleQueue[_Open | _Close | Shadow | None] = SimpleQueue()
        self._reports: SimpleQueue[tuple[OpenableTask | None, Report]] = SimpleQueue()
        self._let_go: WeakSet[OpenableTask] = WeakSet()
        self._waiting: dict[TaskId, _Open] = {}
        self._retry_at = 0.0
        self._restoring: dict[TaskId, tuple[OpenableTask, frozenset[TopicPartition]]] = {}
        self._restorer: Restorer | None = None
        self._shadow: Shadow | None = None
        self._shadow_works = False
        self._started = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._started = True
        self._thread.start()

    def open(self, task: OpenableTask, limits: Mapping[TopicPartition, int]) -> None:
        """Hands a task to this thread: to open its stores, restore them, and hand it back."""
        self._orders.put(_Open(task, limits, self._clock.monotonic() + self._task_timeout_s))

    def follow(self, shadow: Shadow) -> None:
        """Hands the shadow of a task to this thread, until that task is closed; there is one at a time."""
        self._orders.put(shadow)

    def close(self, task: OpenableTask, *, wipe: bool = False, swapped: Shadow | None = None) -> None:
        """Hands a task to this thread: to close it, wherever it is, and to delete its state if asked to.

        :param swapped: its shadow, if that is to take the place of its state; else nothing is left of one.
        """
        self._let_go.add(task)
        if self._thread.is_alive() or not self._started:
            self._orders.put(_Close(task, wipe, swapped))
        else:  # it failed; nothing is restored any more
            self._close(task, wipe=wipe, swapped=swapped)

    def reports(self) -> list[Report]:
        """The events since the last call, without those of tasks that were handed over to be closed meanwhile.

        The same tasks may have been opened anew since, and would be taken for the ones that are told of.
        """
        found: list[Report] = []
        while True:
            try:
                task, report = self._reports.get_nowait()
            except Empty:
                return found
            if task not in self._let_go:
                found.append(report)

    def remaining(self) -> dict[TaskId, int]:
        """How many changelog offsets each restoring task has still before it."""
        return {} if self._restorer is None else self._restorer.remaining()

    def stop(self) -> None:
        """Carries out the orders there are, closes every task that is not handed over, and ends the thread."""
        self._orders.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            self._restorer, close = self._make_restorer()
        except Exception as error:
            self._reports.put((None, Failed(error)))
            return
        try:
            while self.turn(self._restorer, self._patience()):
                continue
        except Exception as error:
            self._reports.put((None, Failed(error)))
        finally:
            self._discard_shadow()
            for task, _ in list(self._restoring.values()):
                self._close(task, wipe=False, swapped=None)
            close()

    def turn(self, restorer: Restorer, wait: float) -> bool:
        """Carries out the orders there are, for one of which it waits, and goes on with the rest; false at the end."""
        if not self._obey(wait):
            return False
        self._work(restorer)
        return True

    def _patience(self) -> float:
        """How long to wait for orders: with nothing else to do."""
        if self._restoring or self._shadow_works:
            return 0
        if self._shadow is not None:
            return _SHADOW_S
        return _LOCK_RETRY_S if self._waiting else max(_LOCK_RETRY_S, self._cleanup_at - self._clock.monotonic())

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
                    self._close(order.task, wipe=order.wipe, swapped=order.swapped)
                case Shadow():
                    self._shadow = order

    def _work(self, restorer: Restorer) -> None:
        if self._restoring:
            for setback in restorer.step(_FETCH_S):
                self._set_back(setback)
            self._hand_over(restorer)
        if self._shadow is not None:
            self._shadow_works = self._shadow.step()
        if self._waiting and self._clock.monotonic() >= self._retry_at:
            for order in list(self._waiting.values()):
                self._open(order)
        if self._clock.monotonic() >= self._cleanup_at:
            self._cleanup_at = self._clock.monotonic() + self._cleanup_delay_ms / 1000
            self._directory.clean_up(self._cleanup_delay_ms)

    def _open(self, order: _Open) -> None:
        task = order.task
        has_copy = self._copies is not None and self._copies.give_up(task.id)
        try:
            self._directory.lock(task.id)
        except LockError as error:
            if not has_copy and self._clock.monotonic() > order.give_up_at:
                raise LockError(
                    f"task {task.id} has waited {self._task_timeout_s:g} s (task.timeout.ms) for its state: {error}",
                    task_id=task.id,
                ) from error
            if task.id not in self._waiting:
                # a copy is closed in a moment, here or in another process with the same state directory
                level = logging.WARNING if self._copies is None else logging.INFO
                log.log(level, "task %s waits up to %g s for its state: %s", task.id, self._task_timeout_s, error)
            self._waiting[task.id] = order
            self._retry_at = self._clock.monotonic() + _LOCK_RETRY_S
            return
        except StoreEngineError as error:
            self._waiting.pop(task.id, None)
            self._allow_copy(task.id)
            self._reports.put((task, Damaged(task.id, error)))
            return
        self._waiting.pop(task.id, None)
        restorer = self._restorer
        assert restorer is not None  # set before the first order is carried out
        self._restoring[task.id] = (task, frozenset())
        try:
            stores = task.open_stores()
            setback = restorer.add(task.id, stores, order.limits)
        except ClusterUnavailableError as error:
            self._outage.failed(error)
            self._close(task, wipe=False, swapped=None)
            self._waiting[task.id] = order
            self._retry_at = self._clock.monotonic() + _CLUSTER_RETRY_S
            return
        except StoreEngineError as error:
            self._set_back(Damaged(task.id, error))
            return
        self._outage.over()
        self._restoring[task.id] = (task, frozenset(stores))
        if setback:
            self._set_back(setback)
        else:
            self._hand_over(restorer)

    def _discard_shadow(self) -> None:
        shadow, self._shadow, self._shadow_works = self._shadow, None, False
        if shadow is not None:
            try:
                shadow.discard()
            except StreamsError:
                log.exception("task %s: what was made as its next state was not deleted", shadow.task_id)

    def _hand_over(self, restorer: Restorer) -> None:
        for task_id, (task, changelogs) in list(self._restoring.items()):
            if not restorer.is_restoring(task_id):
                del self._restoring[task_id]
                self._reports.put((task, Restored(task_id, changelogs)))

    def _set_back(self, setback: Setback) -> None:
        """Closes a task that cannot be restored; its state is deleted only where its changelog has all of it."""
        task_id = setback.task_id
        found = self._restoring.get(task_id)
        if found is None:  # another store of the same task was first
            return
        match setback:
            case Truncated(reason=reason):
                log.warning("%s; its state is deleted and restored from the beginning", reason)
                self._close(found[0], wipe=True, swapped=None)
                self._reports.put((found[0], Corrupted(task_id)))
            case Damaged():
                self._close(found[0], wipe=False, swapped=None)
                self._reports.put((found[0], setback))
            case Remade():
                self._close(found[0], wipe=False, swapped=None)
                raise self._without_changelog(setback)

    def _without_changelog(self, remade: Remade) -> MissingInternalTopicsError:
        folder = str(self._directory.task_dir(remade.task_id))
        return MissingInternalTopicsError(
            f"{remade.reason}: the topic was deleted and made anew, or the brokers have lost records of it. The local "
            "state may be the only copy that is left, so it is not touched, and nothing is processed. Either bring "
            f"back topic {remade.place.topic!r} with all its records and offsets (from a backup or a mirror); or "
            f"delete the folder {folder!r}, and the task goes on with what the topic holds now",
            [remade.place.topic],
        )

    def _close(self, task: OpenableTask, *, wipe: bool, swapped: Shadow | None) -> None:
        if self._waiting.pop(task.id, None) is not None:
            self._allow_copy(task.id)
            return
        if self._restoring.pop(task.id, None) is not None and self._restorer is not None:
            self._restorer.remove(task.id)
        if self._shadow is not None and self._shadow.task_id == task.id and self._shadow is not swapped:
            self._discard_shadow()
        try:
            task.close()
            if swapped is not None:
                swapped.adopt()
                self._shadow, self._shadow_works = None, False
        except StreamsError:
            log.exception("task %s: closing went wrong; its state is read again from the last commit", task.id)
            if swapped is not None:
                self._discard_shadow()
        if wipe:
            self._directory.wipe(task.id)
        self._directory.unlock(task.id)
        self._allow_copy(task.id)

    def _allow_copy(self, task_id: TaskId) -> None:
        if self._copies is not None:
            self._copies.allow(task_id)
