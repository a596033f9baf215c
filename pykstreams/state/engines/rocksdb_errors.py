"""The error for what RocksDB says: damaged files, a full disk, or anything else.

RocksDB has no classes of exceptions here, except for a database that is closed, only texts, which begin with its own
code (``Status::ToString``) and hold what the operating system has said.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rocksdict import DbClosedError

from pykstreams.core.errors import (
    DamagedStoreError,
    DiskFullError,
    InvalidStateStoreError,
    StoreEngineError,
    StreamsError,
)
from pykstreams.core.ids import TaskId

_NO_ROOM: Final = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
_FILE_IS_MISSING: Final = os.strerror(errno.ENOENT)
_TOO_MANY_FILES: Final = os.strerror(errno.EMFILE)
_CORRUPTION: Final = "Corruption"
_CURE: Final = (
    "Look at the disk (space, permissions); when the files are damaged, stop the worker and delete the folder, and the "
    "store is restored from its changelog"
)
_CURE_OF_TOO_MANY_FILES: Final = (
    "Raise the limit of open files (ulimit -n, or LimitNOFILE of systemd): a store has some eight open, and more as it "
    "grows"
)


@dataclass(frozen=True, slots=True)
class EnginePlace:
    """Which store it is, of which task, and in which folder."""

    store: str
    task_id: TaskId
    folder: Path

    def __str__(self) -> str:
        return f"store {self.store!r} of task {self.task_id} in {str(self.folder)!r}"

    def failed(self, what: str, error: Exception, cure: str = _CURE) -> StreamsError:
        """Returns the error for one of RocksDB; ``what`` completes "the store cannot be ..."."""
        if isinstance(error, DbClosedError):
            return not_open(self.store)
        text = str(error)
        if any(one in text for one in _NO_ROOM):
            full = f"{self} cannot be {what}: {text}. Its disk is full: make room there"
            return DiskFullError(full, folder=str(self.folder), task_id=self.task_id)
        if _TOO_MANY_FILES in text:
            cure = _CURE_OF_TOO_MANY_FILES
        message = f"{self} cannot be {what}: {text}. {cure}"
        if text.startswith(_CORRUPTION) or _FILE_IS_MISSING in text:
            return DamagedStoreError(message, store=self.store, task_id=self.task_id)
        return StoreEngineError(message, task_id=self.task_id)


def not_open(store: str) -> InvalidStateStoreError:
    """The error for a store that was never opened, or was closed."""
    return InvalidStateStoreError(f"store {store!r} is not open; ask the context for the store again")
