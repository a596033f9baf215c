"""The state directory: one folder per task, a lock on each, and clean-up of those that nobody uses any more.

::

    <state.dir>/pykstreams/<application.id>/
        format                             the version of all this
        worker-0.id, worker-1.id, ...      the ids of the processes that share the directory, one lock each
        global-0/, global-1/, ...          global stores, for the process that holds the lock of that number
        <task id>/
            .lock                          locked while a process has the task; holds the number of that process,
                                           until it lets go of the task in good order
            rocksdb/<store>/               one database per store, and the form of its rows (``form``)
            rocksdb/@checkpoint            how far they are in their changelogs
            <store>.damaged-<ms>/          a store that was set aside at that time: damaged, or of another form

The default of ``state.dir`` is that of Kafka Streams, whose workers have ``<state.dir>/<application.id>`` with folders
of the same names and another content; so ours have a folder of their own in it. Earlier releases had none.

Invariant: nobody touches a task's folder without its lock. A lock is the operating system's, so it goes with the
process that held it; the time of the lock file says when the task was last in use.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Final

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import (
    ConfigError,
    DiskFullError,
    LockError,
    ProcessorStateError,
    StoreEngineError,
    TaskIdFormatError,
)
from pykstreams.core.ids import TaskId
from pykstreams.state.directory.damaged_stores import set_aside
from pykstreams.state.directory.disk_room import is_full
from pykstreams.state.directory.file_lock import FileLock
from pykstreams.state.directory.permissions import restrict
from pykstreams.state.directory.state_format import FORMAT
from pykstreams.state.directory.task_checkpoint import read_checkpoint

OWN_FOLDER: Final = "pykstreams"
"""The folder in ``state.dir`` that nobody else uses."""

_MADE_BY_JAVA: Final = ("kafka-streams-process-metadata", "*_*/.checkpoint")
_OURS: Final = ("worker-*.id", "[0-9]*_[0-9]*")
_LOCK: Final = ".lock"
_GLOBAL: Final = "global-"
_LOOKS: Final = 100
_LOOK_S: Final = 0.01

log = logging.getLogger(__name__)


def application_folder(state_dir: Path | str, application_id: str) -> Path:
    """Returns the folder of an application below ``state.dir``: its own, or that which an earlier release has left."""
    own = Path(state_dir) / OWN_FOLDER / application_id
    former = Path(state_dir) / application_id
    if not own.is_dir() and _has(former, _OURS) and not _has(former, _MADE_BY_JAVA):
        return former
    return own


class StateDirectory:
    """The folder of one application, as one process uses it.

    :param parent: the folder that it lies in; see ``application_folder``.
    """

    def __init__(self, parent: Path | str, application_id: str, *, clock: Clock) -> None:
        self.path = Path(parent) / application_id
        self._clock = clock
        self._locks: dict[TaskId, FileLock] = {}
        self._process: FileLock | None = None
        self._number = 0

    @classmethod
    def of(cls, config: StreamsConfig, *, clock: Clock) -> StateDirectory:
        """Makes the one of the application that the settings are of."""
        path = application_folder(config.state_dir, config.application_id)
        return cls(path.parent, path.name, clock=clock)

    def make(self, config: StreamsConfig) -> None:
        """Makes the folder for a worker that starts, in this format and for its user, and deletes what is too old.

        ``state.cleanup.dir.max.age.ms`` is heeded here only (``KafkaStreams.start``, 4.3.1, KIP-1259).
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            FORMAT.adopt(self.path)
        except OSError as error:
            raise _not_made(self.path, error) from error
        above = Path(config.state_dir)
        folders = [self.path, *(one for one in self.path.parents if one == above or above in one.parents)]
        restrict(folders, group_may_write=config.allow_os_group_write_access)
        if (max_age_ms := config.state_cleanup_dir_max_age_ms) >= 0:
            self.clean_up(max_age_ms)

    def task_path(self, task_id: TaskId) -> Path:
        """The folder of a task, which need not be there yet."""
        return self.path / str(task_id)

    def task_dir(self, task_id: TaskId) -> Path:
        """The folder of a task, made if need be."""
        path = self.task_path(task_id)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if is_full(error):
                raise _no_room(path, task_id, "made", error) from error
            raise ProcessorStateError(
                f"folder {str(path)!r} of task {task_id} cannot be made: {error}; give the worker the right to write "
                "there, or set state.dir to a folder where it has",
                task_id=task_id,
            ) from error
        return path

    def lock(self, task_id: TaskId) -> Path:
        """Takes the lock of a task, and gives its folder; ``LockError`` when another process holds it.

        Locking again what this process holds does nothing. ``StoreEngineError`` when the disk does not let it.
        """
        path = self.task_dir(task_id)
        if task_id not in self._locks:
            lock = FileLock(path / _LOCK)
            try:
                taken = lock.take(str(os.getpid()))
            except OSError as error:
                lock.release()
                if is_full(error):
                    raise _no_room(path, task_id, "locked", error) from error
                raise StoreEngineError(
                    f"folder {str(path)!r} of task {task_id} cannot be locked: {error}. Look at the disk (space, "
                    "permissions, whether it is mounted for reading only)",
                    task_id=task_id,
                ) from error
            if not taken:
                raise LockError(
                    f"folder {str(path)!r} of task {task_id} is in use by process {lock.content() or 'unknown'}; wait "
                    "until that process has stopped, or give this worker a state.dir of its own",
                    task_id=task_id,
                )
            self._locks[task_id] = lock
            self._touch(path)
        return path

    def unlock(self, task_id: TaskId) -> None:
        """Lets go of the lock of a task; without one it does nothing."""
        lock = self._locks.pop(task_id, None)
        if lock is not None:
            self._note_good_order(lock)
            self._touch(self.path / str(task_id))
            lock.release()

    def give(self, task_id: TaskId) -> FileLock:
        """Lets go of the lock of a task, which stays locked: for another object of the same directory to ``take``."""
        return self._locks.pop(task_id)

    def take(self, task_id: TaskId, lock: FileLock) -> None:
        """Takes the lock of a task as another has given it."""
        self._locks[task_id] = lock
        self._touch(self.path / str(task_id))

    def tasks(self) -> list[TaskId]:
        """The tasks whose state is here, in order."""
        found = []
        for path in self.path.iterdir() if self.path.is_dir() else ():
            try:
                task_id = TaskId.parse(path.name)
            except TaskIdFormatError:
                continue  # not a task's folder
            if any(entry.name != _LOCK for entry in path.iterdir()):
                found.append(task_id)
        return sorted(found)

    def free_checkpoints(self) -> dict[TaskId, dict[str, int]]:
        """The changelog offsets of the stores of each task that nobody has locked, as far as checkpoints tell."""
        return {task_id: found for task_id in self.tasks() if (found := self._free_checkpoint(task_id))}

    def _free_checkpoint(self, task_id: TaskId) -> dict[str, int]:
        path = self.path / str(task_id)
        lock = FileLock(path / _LOCK)
        try:
            return read_checkpoint(path) if lock.share() else {}
        except OSError:  # without a lock file no checkpoint of ours is there
            return {}
        finally:
            lock.release()

    def wipe(self, task_id: TaskId) -> None:
        """Deletes the state of a task whose lock this process holds."""
        if task_id not in self._locks:
            raise LockError(f"the state of task {task_id} cannot be deleted without its lock", task_id=task_id)
        for entry in (self.path / str(task_id)).iterdir():
            if entry.name != _LOCK:
                _delete(entry)

    def set_aside(self, task_id: TaskId, store: str) -> Path | None:
        """Moves a damaged store of a task whose lock this process holds; see ``damaged_stores.set_aside``."""
        if task_id not in self._locks:
            raise LockError(f"store {store!r} of task {task_id} cannot be set aside without its lock", task_id=task_id)
        return set_aside(self.path / str(task_id), store, self._clock.now_ms())

    def clean_up(self, unused_ms: int) -> list[TaskId]:
        """Deletes the state of tasks that no process holds and none has used for ``unused_ms``; returns those tasks.

        What cannot be deleted is raised when the others are (``StateDirectory.cleanRemovedTasksCalledByUser``, 4.3.1).
        """
        cleaned, errors = [], []
        for task_id in self.tasks():
            try:
                if task_id not in self._locks and self._clean(task_id, unused_ms):
                    cleaned.append(task_id)
            except (OSError, ProcessorStateError) as error:
                errors.append(error)
        if errors:
            raise errors[0]
        return cleaned

    def keep(self, task_id: TaskId) -> None:
        """Notes that the state of a task that is not open is still wanted, so that no process cleans it up."""
        path = self.task_path(task_id)
        if (path / _LOCK).exists():
            self._touch(path)

    def _clean(self, task_id: TaskId, unused_ms: int) -> bool:
        now_ms, path = self._clock.now_ms(), self.path / str(task_id)
        if now_ms - _last_used_ms(path) < unused_ms:
            return False
        lock = FileLock(path / _LOCK)
        if not lock.take():  # without a word in it, which would make the task look used
            return False
        try:
            if now_ms - _last_used_ms(path) < unused_ms:
                return False
            for entry in path.iterdir():
                if entry.name != _LOCK:
                    _delete(entry)
            log.info("%s: deleted its state in %r, unused for %d ms", task_id, str(path), unused_ms)
            return True
        finally:
            lock.release()

    def process_id(self, make: Callable[[], str]) -> str:
        """The id of this process, the same after a restart: the first stored one that no other process holds.

        ``make`` gives a new one when all are taken.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if self._process is None:
                for number in count():
                    lock = FileLock(self.path / f"worker-{number}.id")
                    if lock.take():
                        self._process, self._number = lock, number
                        break
            held = self._process
            assert held is not None  # the loop ends only with a lock
            stored = held.content()
            if not stored:
                stored = make()
                held.write(stored)
        except OSError as error:
            raise _not_made(self.path, error) from error
        return stored

    def instance_id(self) -> str:
        """The id of all processes that share the directory: that of the first of them, running or not."""
        held = self._process
        if held is None:
            raise LockError(f"the id of {str(self.path)!r} needs the lock of a worker; ask for process_id first")
        first = FileLock(self.path / "worker-0.id")
        for _ in range(_LOOKS):
            if found := first.content():
                return found
            threading.Event().wait(_LOOK_S)  # another process is about to write it
        return held.content()

    @property
    def global_dir(self) -> Path:
        """The folder for global stores, of this process alone while it holds the lock behind ``process_id``."""
        if self._process is None:
            raise LockError(f"global stores in {str(self.path)!r} need the lock of a worker; ask for process_id first")
        return self.path / f"{_GLOBAL}{self._number}"

    def clean_up_global(self) -> None:
        """Deletes the global stores of every process that does not run."""
        for path, lock in self._global_stores():
            if lock.take():
                try:
                    _delete(path)
                finally:
                    lock.release()

    def global_in_use(self) -> list[Path]:
        """The folders of global stores whose processes run."""
        in_use = []
        for path, lock in self._global_stores():
            if lock.take():
                lock.release()
            else:
                in_use.append(path)
        return in_use

    def _global_stores(self) -> list[tuple[Path, FileLock]]:
        """The folders of global stores, each with the lock of its process."""
        found = sorted(self.path.glob(f"{_GLOBAL}*"))
        return [(path, FileLock(self.path / f"worker-{path.name.removeprefix(_GLOBAL)}.id")) for path in found]

    def close(self) -> None:
        """Lets go of every lock."""
        for task_id in list(self._locks):
            self.unlock(task_id)
        process, self._process = self._process, None
        if process is not None:
            process.release()

    def _note_good_order(self, lock: FileLock) -> None:
        """Takes the number of the process out: after a crash it is still there, and stores may lack what was
        committed last, which no log of theirs has.
        """
        try:
            lock.write("")
        except OSError as error:  # then the folder looks like one that a crash has left
            log.warning("that the state of a task was closed in good order is not kept: %s", error)

    def _touch(self, path: Path) -> None:
        now = self._clock.now_ms() / 1000
        try:
            os.utime(path / _LOCK, (now, now))
        except OSError as error:  # then it looks unused for longer than it is; its lock still goes with its holder
            log.warning("when %r was last used is not kept: %s", str(path), error)


def _not_made(path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"folder {str(path)!r} for local state cannot be made, written or locked: {error}; give the worker room and "
        "the right to write there, or set state.dir to a folder where it has them, on a file system with locks"
    )


def _no_room(path: Path, task_id: TaskId, what: str, error: OSError) -> DiskFullError:
    return DiskFullError(
        f"folder {str(path)!r} of task {task_id} cannot be {what}: {error}. Its disk is full: make room there",
        folder=str(path if path.is_dir() else path.parent),
        task_id=task_id,
    )


def _has(folder: Path, patterns: Iterable[str]) -> bool:
    return any(True for pattern in patterns for _ in folder.glob(pattern))


def _last_used_ms(path: Path) -> int:
    """When a task was last locked or let go; without a lock file, when its folder was changed."""
    lock = path / _LOCK
    return (lock if lock.exists() else path).stat().st_mtime_ns // 1_000_000


def _delete(path: Path) -> None:
    try:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError as error:
        raise ProcessorStateError(f"{str(path)!r} cannot be deleted: {error}; delete it by hand") from error
