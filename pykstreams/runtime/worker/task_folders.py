"""The folders of the tasks of one worker, which standby tasks and other processes may be in.

Invariant: a folder is locked from ``claim`` to ``unlock``; a standby task of this process is asked to leave it before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.errors import DamagedStoreError, LockError, ProcessorStateError
from pykstreams.core.ids import TaskId
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.restore.damaged_stores import set_store_aside
from pykstreams.runtime.tasks.stores.open_stores import OpenStores
from pykstreams.state.directory.file_lock import FileLock
from pykstreams.state.directory.state_directory import StateDirectory

log = logging.getLogger(__name__)

_HANDED_OVER_S: Final = 3.0
"""How long the process that had a task before may take to close it, without anybody being warned."""

LOCK_RETRY_S: Final = 0.1
"""How long to wait before a folder is claimed again."""


class Standbys(Protocol):
    """The standby tasks of this process, of which one may be in the folder of a task that comes here."""

    def give_up(self, task_id: TaskId) -> bool:
        """Asks for the folder of a task; true while there is a standby in it, which is about to leave."""
        ...

    def taken(self, task_id: TaskId) -> tuple[OpenStores, FileLock] | None:
        """Returns the stores that a standby has left open in the folder that was asked for, once."""
        ...

    def allow(self, task_id: TaskId) -> None:
        """Lets go of the folder of a task."""
        ...

    def wants(self, task_id: TaskId) -> bool:
        """Whether a task that ends here is to be kept as a standby."""
        ...

    def take(self, task_id: TaskId, stores: OpenStores, lock: FileLock) -> None:
        """Takes over the stores of such a task, open as they are, with the lock of its folder."""
        ...


class TaskFolders:
    """Locks folders for tasks, and deletes those that nobody uses any more."""

    def __init__(
        self,
        directory: StateDirectory,
        clock: Clock,
        *,
        task_timeout_ms: int,
        cleanup_delay_ms: int,
        standbys: Standbys | None,
    ) -> None:
        self._directory = directory
        self._clock = clock
        self._task_timeout_s = task_timeout_ms / 1000
        self._cleanup_delay_ms = cleanup_delay_ms
        self._cleanup_at = clock.monotonic() + cleanup_delay_ms / 1000
        self._standbys = standbys
        self._left_open: dict[TaskId, OpenStores] = {}
        self._waits = RepeatedWarnings(log, clock)

    def give_up_at(self) -> float:
        """Until when a task waits for its folder that comes now."""
        return self._clock.monotonic() + self._task_timeout_s

    def path(self, task_id: TaskId) -> Path:
        """The folder of a task."""
        return self._directory.task_dir(task_id)

    def claim(self, task_id: TaskId, *, give_up_at: float, is_waiting: bool) -> bool:
        """Locks the folder of a task; false while somebody else has it, ``LockError`` when that takes too long.

        Standby tasks leave it alone from now on.

        :param is_waiting: whether it was claimed in vain before, which is said once while it may be handed over.
        """
        has_standby = self._standbys is not None and self._standbys.give_up(task_id)
        left = None if self._standbys is None else self._standbys.taken(task_id)
        if left is not None:
            self._left_open[task_id], lock = left
            self._directory.take(task_id, lock)
            return True
        try:
            self._directory.lock(task_id)
        except LockError as error:
            if not has_standby and self._clock.monotonic() > give_up_at:
                raise LockError(
                    f"task {task_id} has waited {self._task_timeout_s:g} s (task.timeout.ms) for its state: {error}",
                    task_id=task_id,
                ) from error
            left_s = max(0.0, give_up_at - self._clock.monotonic())
            if has_standby or self._task_timeout_s - left_s < _HANDED_OVER_S:
                if not is_waiting:
                    log.info("task %s waits up to %g s for its state: %s", task_id, self._task_timeout_s, error)
            else:
                self._waits.warn(
                    str(task_id), "task %s waits for its state, for up to %.0f s: %s", task_id, left_s, error
                )
            return False
        return True

    def left_open(self, task_id: TaskId) -> OpenStores | None:
        """The stores that were open in a folder when it was claimed, for the task to take up."""
        return self._left_open.pop(task_id, None)

    def hand_on(self, task_id: TaskId, hand_over: Callable[[], OpenStores | None]) -> bool:
        """Leaves the folder of a task to its standby, locked all the time; false where none belongs here.

        :param hand_over: lets go of the stores of the task, if they can stay open; else it is false, too.
        """
        standbys = self._standbys
        if standbys is None or not standbys.wants(task_id):
            return False
        stores = hand_over()
        if stores is None:
            return False
        standbys.take(task_id, stores, self._directory.give(task_id))
        standbys.allow(task_id)
        return True

    def wipe(self, task_id: TaskId) -> None:
        """Deletes the state of a task, whose folder is locked here."""
        self._directory.wipe(task_id)

    def set_aside(self, task_id: TaskId, error: DamagedStoreError) -> None:
        """Moves a damaged store out of the folder of a task, which is locked here and closed."""
        set_store_aside(self._directory, task_id, error)

    def unlock(self, task_id: TaskId) -> None:
        """Unlocks the folder of a task."""
        self._directory.unlock(task_id)
        self.allow_standby(task_id)

    def allow_standby(self, task_id: TaskId) -> None:
        """Lets a standby task be in a folder again, which is not claimed any more."""
        if self._standbys is not None:
            self._standbys.allow(task_id)

    def cleanup_in_s(self) -> float:
        """How long until ``clean_up`` is due."""
        return self._cleanup_at - self._clock.monotonic()

    def clean_up(self) -> None:
        """Deletes the folders that nobody has used for long, when that is due."""
        if self.cleanup_in_s() <= 0:
            self._cleanup_at = self._clock.monotonic() + self._cleanup_delay_ms / 1000
            try:
                self._directory.clean_up(self._cleanup_delay_ms)
            except (OSError, ProcessorStateError) as error:  # of tasks that are not here
                log.warning(
                    "state that nobody has used for long is not deleted, and is tried again in %g s: %s",
                    self._cleanup_delay_ms / 1000,
                    error,
                )
