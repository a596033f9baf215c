"""Which job writes to a folder: one at a time, and none whose driver has ended, however it has.

The driver holds a lock on a file of the folder, which goes with its process. The file goes when the job has published;
where it is left, a job has failed, and nothing but its work is there. Folders that fsspec reaches know no locks.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pykstreams.core.errors import BootstrapError
from pykstreams.state.bulk.folder import BESIDE, MANIFEST, AnyFolder, folder_at
from pykstreams.state.directory.file_lock import FileLock

LOCK: Final = ".job"
WORK: Final = ".work-"
"""How the names of folders begin that a job works in, and deletes when it ends."""


@contextmanager
def held_by_job(where: AnyFolder) -> Iterator[None]:
    """Holds a folder for a job, after deleting what dead ones have left; ``BootstrapError`` if another has it, or has
    published in it.

    The files of their stores stay, of which nobody reads one that no manifest names.
    """
    root = folder_at(where).local
    if root is None:
        check_unpublished(where)
        yield
        return
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BootstrapError(f"folder {str(root)!r} cannot be made: {error.strerror}; name another one") from error
    has_failed = (root / LOCK).exists()  # or what is there is somebody else's
    with _held(root):
        try:
            check_unpublished(root)
        except BootstrapError:
            (root / LOCK).unlink(missing_ok=True)
            raise
        delete_work(root)
        if has_failed:
            for beside in filter(Path.exists, map(root.joinpath, BESIDE)):
                shutil.rmtree(beside)
        yield
        (root / LOCK).unlink()


def check_unpublished(where: AnyFolder) -> None:
    """Raises ``BootstrapError`` for a folder that holds a bootstrap; a job asks again when nobody else can publish."""
    folder = folder_at(where)
    if folder.has(MANIFEST):
        raise BootstrapError(
            f"{str(folder)!r} holds a bootstrap already; a bootstrap is never changed, name a new folder"
        )


@contextmanager
def held_to_clean(where: AnyFolder) -> Iterator[None]:
    """Keeps jobs away; ``BootstrapError`` if one has the folder."""
    root = folder_at(where).local
    if root is None or not (root / LOCK).exists():
        yield
        return
    with _held(root):
        yield


@contextmanager
def work_folder(root: Path | None) -> Iterator[Path]:
    """A folder for what a job works with, which is deleted at its end.

    :param root: where it is; ``None`` for where the machine keeps such things.
    """
    if root is not None:
        root.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=WORK, dir=root))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def delete_work(root: Path) -> None:
    """Deletes the folders that jobs worked in; only for the holder."""
    for path in root.glob(f"{WORK}*"):
        shutil.rmtree(path)


@contextmanager
def _held(root: Path) -> Iterator[None]:
    lock = FileLock(root / LOCK)
    try:
        taken = lock.take()
    except OSError as error:
        raise BootstrapError(
            f"folder {str(root)!r} cannot be locked for a job: {error}; name one that may be written, on a file system "
            "with locks"
        ) from error
    if not taken:
        raise BootstrapError(
            f"a job is writing to {str(root)!r} (it holds the lock of {LOCK}); wait until it has ended, or name "
            "another folder"
        )
    try:
        yield
    finally:
        lock.release()
