"""Makes the stores of a task from the files of a bootstrap, all of them or none.

They come about in a folder beside and are renamed into place together, with a mark that says which bootstrap they are
based on::

    <task>/bootstrap/files/<store>/<n>.sst      linked or copied, and verified
    <task>/bootstrap/rocksdb/<store>/           made of them
    <task>/rocksdb/                             that folder, renamed
    <task>/rocksdb/@bootstrap                   the mark; no store can have that name

For a task that runs they are made in ``<task>/next`` in place of ``<task>``, and take the place of those in use later::

    <task>/next/rocksdb/                        what is to be used next
    <task>/last/                                what was used, for as long as it takes to delete it

Invariant: what lies in ``rocksdb`` with a mark is whole, wherever the process was ended; what lies in ``bootstrap`` is
used by nobody, and the next attempt deletes it. The files of the bootstrap are never changed.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import BootstrapError
from pykstreams.core.ids import TaskId
from pykstreams.state.bulk.folder import AnyFolder, Folder, folder_at
from pykstreams.state.bulk.manifest import TaskFiles, check_file
from pykstreams.state.bulk.offline import OfflineStore
from pykstreams.state.bulk.sst import SstFile
from pykstreams.state.directory.durable_files import sync_folder
from pykstreams.state.engines.rocksdb import RocksDbEngine
from pykstreams.state.interfaces.store import StoreContext
from pykstreams.state.spec import StoreBuilder

log = logging.getLogger(__name__)

_BESIDE: Final = "bootstrap"
_ROCKSDB: Final = "rocksdb"
_MARK: Final = "@bootstrap"
_NEXT: Final = "next"
_LAST: Final = "last"
_THREADS: Final = 2


@dataclass(frozen=True, slots=True)
class StoreToMake:
    """One store of the task.

    :param offset: the offset of its changelog that it stands for then, ``None`` for a store without one.
    """

    builder: StoreBuilder[Any]
    files: TaskFiles
    offset: int | None
    topic: str | None


def mark_of(directory: Path) -> str | None:
    """Which bootstrap the state in the folder of a task is based on."""
    try:
        return (directory / _ROCKSDB / _MARK).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def put_mark(directory: Path, mark: str) -> None:
    """Notes which bootstrap state is based on that is read from changelogs instead of files, wholly or from now on."""
    (directory / _ROCKSDB).mkdir(parents=True, exist_ok=True)
    _write_mark(directory / _ROCKSDB, mark)


def forget_mark(directory: Path) -> None:
    """Has state begin anew, with its bootstrap if it is based on one; without a mark it does nothing."""
    (directory / _ROCKSDB / _MARK).unlink(missing_ok=True)


def take_over(
    directory: Path,
    task_id: TaskId,
    where: AnyFolder,
    stores: Sequence[StoreToMake],
    config: StreamsConfig,
    mark: str,
) -> None:
    """Makes the stores of a task; its folder has none yet, and its lock is held.

    Raises ``BootstrapError`` for a file that is missing or damaged; then nothing has changed.

    :param directory: the folder of the task.
    :param where: the folder of the bootstrap.
    """
    folder = folder_at(where)
    beside = directory / _BESIDE
    _remove(beside)
    try:
        made = beside / _ROCKSDB
        made.mkdir(parents=True)
        linked = _gathered(folder, beside / "files", {one.builder.name: one.files.files for one in stores})
        for one in stores:
            _make(one, linked[one.builder.name], task_id, beside, config)
        _write_mark(made, mark)
        made.rename(directory / _ROCKSDB)
        sync_folder(directory)
    except OSError as error:
        raise BootstrapError(
            f"task {task_id} cannot take over the files of {str(folder)!r} into {str(beside)!r}: {error}; look at the "
            "disk (space, permissions)",
            task_id=task_id,
        ) from error
    except BootstrapError as error:
        error.task_id = task_id
        raise
    finally:
        _remove(beside)
    rows = sum(one.files.rows for one in stores)
    log.info("task %s: took over %s rows of %s stores from %r", task_id, rows, len(stores), str(folder))


def next_of(directory: Path) -> Path:
    """The folder beside the state of a task in which its next state is made."""
    return directory / _NEXT


def forget_next(directory: Path) -> None:
    """Deletes what was made beside the state of a task, or was left of what it replaced."""
    try:
        _remove(directory / _NEXT)
    finally:
        _remove(directory / _LAST)


def put_in_place(directory: Path) -> None:
    """Puts what was made beside the state of a task, and is closed like it, in its place.

    If the process ends in between there is no state, or one without the right mark; it is restored then.
    """
    try:
        (directory / _ROCKSDB).rename(directory / _LAST)
        (directory / _NEXT / _ROCKSDB).rename(directory / _ROCKSDB)
        sync_folder(directory)
        forget_next(directory)
    except OSError as error:
        raise BootstrapError(
            f"what was made in {str(directory / _NEXT)!r} cannot take the place of the state beside it: {error}; look "
            "at the disk (space, permissions)"
        ) from error


def _gathered(folder: Folder, target: Path, files: Mapping[str, Sequence[SstFile]]) -> dict[str, list[Path]]:
    """Brings files, and verifies them; returns their new paths by store, in the order of keys."""
    jobs: list[tuple[SstFile, Path]] = []
    found: dict[str, list[Path]] = {}
    for store, mine in files.items():
        (target / store).mkdir(parents=True)
        ordered = sorted(mine, key=lambda file: file.first)
        found[store] = [target / store / f"{number}.sst" for number in range(len(ordered))]
        jobs += zip(ordered, found[store], strict=True)
    with ThreadPoolExecutor(_THREADS) as threads:
        problems = [problem for problem in threads.map(lambda job: _gather(folder, *job), jobs) if problem]
    if problems:
        raise BootstrapError(
            f"the bootstrap in {str(folder)!r} cannot be taken over: {'; '.join(problems)}. Nothing was loaded; copy "
            "it again from where it is whole, or bootstrap again"
        )
    return found


def _gather(folder: Folder, file: SstFile, target: Path) -> str | None:
    """Brings a file, and reads what arrived; returns what is wrong with it."""
    try:
        folder.bring(file.path, target)
    except FileNotFoundError:
        return f"{file.path} is missing"
    return check_file(target, file)


def _make(one: StoreToMake, files: Sequence[Path], task_id: TaskId, beside: Path, config: StreamsConfig) -> None:
    """Makes a store of files, and has it drop what is too old and keep the offset that it stands for."""

    def engine(name: str, prefix_bytes: int | None, form: str | None) -> RocksDbEngine:
        return _OfFiles(name, prefix_bytes, form, files)

    with OfflineStore(one.builder, task_id, config, engine, directory=beside, topic=one.topic) as offline:
        offline.store.advance(one.files.observed_time)
        offline.store.commit(one.offset)


class _OfFiles(RocksDbEngine):
    """A new database that begins with the rows of files."""

    def __init__(self, name: str, prefix_bytes: int | None, form: str | None, files: Sequence[Path]) -> None:
        super().__init__(name, prefix_bytes, form)
        self._files = files

    def open(self, context: StoreContext) -> None:
        super().open(context)
        if self._files:
            self.ingest(self._files)


def _write_mark(rocksdb: Path, mark: str) -> None:
    with (rocksdb / _MARK).open("w", encoding="utf-8") as file:
        file.write(mark)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(rocksdb)


def _remove(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)
