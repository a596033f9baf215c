"""Where state lies on disk that nobody works on: which folders have a store, and how they are held while it is read.

Invariant: while a folder is held here, no worker takes it; others may read it at the same time. A folder without a
lock file is a copy, which no worker has ever had.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import LockError, TaskIdFormatError
from pykstreams.core.ids import TaskId
from pykstreams.state.directory.file_lock import FileLock
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.directory.state_format import FORMAT

NO_TASK: Final = TaskId(-1, -1)
"""Whose the store is that every worker has whole, and the folder whose name does not tell its task."""


class StoreFolder(NamedTuple):
    """One folder in which a store lies, and who locks it: a task, or a worker for its global stores."""

    folder: Path
    task_id: TaskId
    lock: Path


def places_of(root: Path, store: str, subtopologies: Collection[int]) -> list[StoreFolder]:
    """The folders below the one of an application, or below a copy of it, in which a store lies, by partition.

    ``ProcessorStateError`` where a newer release has written them.

    :param subtopologies: those that have the store; none for a global store, of which any one copy is given.
    """
    here = Path("rocksdb") / store
    FORMAT.check(root)
    if subtopologies:
        tasks = StateDirectory(root.parent, root.name, clock=SystemClock()).tasks()
        wanted = [(task, root / str(task)) for task in tasks if task.subtopology in subtopologies]
        return [StoreFolder(folder, task, folder / ".lock") for task, folder in wanted if (folder / here).is_dir()]
    folders = [path for path in sorted(root.glob("global-*")) if (path / here).is_dir()]
    locks = [path.with_name(f"worker-{path.name.removeprefix('global-')}.id") for path in folders]
    return [StoreFolder(path, NO_TASK, lock) for path, lock in zip(folders, locks, strict=True)][:1]


def place_of_task(folder: Path) -> StoreFolder:
    """The folder of one task, or a copy of it: its name may tell the task."""
    try:
        task_id = TaskId.parse(folder.resolve().name)
    except TaskIdFormatError:
        task_id = NO_TASK
    return StoreFolder(folder, task_id, folder / ".lock")


def was_closed(place: StoreFolder) -> bool:
    """Whether a folder is known to have been closed in good order, so that all that was committed is in its files.

    After a crash it is not, nor is it where the lock file tells nothing: in copies without one, in folders that a
    release left that did not note it, and for global stores.
    """
    return place.task_id != NO_TASK and place.lock.exists() and not FileLock(place.lock).content()


@contextmanager
def held(place: StoreFolder) -> Iterator[None]:
    """Keeps workers away from a folder; ``LockError`` when one has it."""
    lock = FileLock(place.lock)
    try:
        is_free = not place.lock.exists() or lock.share()
    except OSError as error:
        raise LockError(
            f"folder {str(place.folder)!r} cannot be locked: {error}; read a copy of it on a file system with locks"
        ) from error
    if not is_free:
        raise LockError(
            f"folder {str(place.folder)!r} is in use by process {lock.content() or 'unknown'}; stop the application, "
            "or ask it while it runs (with --url on the command line, with KafkaStreams.store in its process)"
        )
    try:
        yield
    finally:
        lock.release()
