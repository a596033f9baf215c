"""Which folders of this process have a standby in them, or open stores that wait to be taken up; and for whom.

Invariant: a folder that a worker has asked for gets no new standby until the worker has let go of it. That is decided
under one lock, so that either the worker sees the standby that is about to leave, or there is none.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.standby.standby_plan import TasksWithInputs
from pykstreams.runtime.swap.bootstrap import Pin
from pykstreams.runtime.tasks.stores.open_stores import OpenStores
from pykstreams.runtime.tasks.task import Task
from pykstreams.state.directory.file_lock import FileLock

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Standby:
    """A standby task, also while it is opened."""

    task: Task
    inputs: frozenset[TopicPartition]
    base: tuple[int | None, Pin | None]
    """The generation that its state began with, by the committed offsets."""
    is_open: bool = False


class StandbyFolders:
    """The folders of one process, by task; any thread may call it, but ``standbys`` changes on that of the standbys."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked_for: set[TaskId] = set()
        self._left_open: dict[TaskId, tuple[OpenStores, FileLock]] = {}
        self.standbys: dict[TaskId, Standby] = {}
        """To be read by the thread of the standbys; for others there is ``open_tasks``."""

    def ask_for(self, task_id: TaskId) -> bool:
        """Keeps a folder for a worker; true while there is a standby in it, which has to leave."""
        with self._lock:
            self._asked_for.add(task_id)
            return task_id in self.standbys

    def allow(self, task_id: TaskId) -> bool:
        """Allows a standby in a folder again; whether there are stores that a worker has left open in it."""
        with self._lock:
            self._asked_for.discard(task_id)
            return task_id in self._left_open

    def asked_for(self) -> list[Standby]:
        """The standbys in whose folders workers wait to be."""
        with self._lock:
            return [one for task_id, one in self.standbys.items() if task_id in self._asked_for]

    def enter(self, standby: Standby) -> bool:
        """Puts a standby that is about to be opened into its folder; false where a worker has asked for that."""
        with self._lock:
            if standby.task.id in self._asked_for:
                return False
            self.standbys[standby.task.id] = standby
            return True

    def remove(self, task_id: TaskId) -> None:
        """Removes a standby that is closed."""
        with self._lock:
            del self.standbys[task_id]

    def replace(self, task_id: TaskId, stores: OpenStores, lock: FileLock) -> None:
        """Removes a standby that has left its stores open, which wait from now on."""
        with self._lock:
            self._left_open[task_id] = stores, lock
            del self.standbys[task_id]

    def open_tasks(self) -> list[Task]:
        """The standby tasks whose stores are open."""
        with self._lock:
            return [one.task for one in self.standbys.values() if one.is_open]

    def leave_open(self, task_id: TaskId, stores: OpenStores, lock: FileLock) -> None:
        """Keeps open stores, with the lock of their folder, until somebody takes them up."""
        with self._lock:
            self._left_open[task_id] = stores, lock

    def taken(self, task_id: TaskId) -> tuple[OpenStores, FileLock] | None:
        """Returns the stores that wait in a folder, with its lock; once."""
        with self._lock:
            return self._left_open.pop(task_id, None)

    def waiting(self) -> dict[TaskId, OpenStores]:
        """The stores that wait, by task."""
        with self._lock:
            return {task_id: stores for task_id, (stores, _) in self._left_open.items()}

    def sort_out(self, wanted: TasksWithInputs) -> tuple[dict[TaskId, frozenset[TopicPartition]], set[TaskId]]:
        """Returns the wanted standbys that may be opened, and the folders with stores that wait for nobody.

        Both at once: a folder that a worker lets go of in between would be in neither, and its stores be closed.
        """
        with self._lock:
            allowed = {task_id: inputs for task_id, inputs in wanted.items() if task_id not in self._asked_for}
            return allowed, self._left_open.keys() - self._asked_for - allowed.keys()

    def close_left_open(self, tasks: Iterable[TaskId]) -> None:
        """Closes stores that nobody is going to take up, and lets go of their folders."""
        for task_id in tasks:
            left = self.taken(task_id)
            if left is None:
                continue
            stores, lock = left
            try:
                stores.close()
            except Exception:
                log.exception("standby task %s: closing went wrong", task_id)
            finally:
                lock.release()
