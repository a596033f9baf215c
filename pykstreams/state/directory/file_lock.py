"""A lock on a file, that other processes respect and that goes with the process that holds it.

A process that user code forks, such as those of a pool, lets go of the locks of its parent at once: it would keep them
from the next start when the parent was killed.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Final
from weakref import WeakSet

if sys.platform == "win32":
    import msvcrt

    _LOCKED_BYTE = 1 << 20  # beyond the content, which others may then read

    def _try_lock(descriptor: int, *, shared: bool = False) -> None:  # Windows has no shared ones here
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int, *, shared: bool = False) -> None:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


_HELD_ELSEWHERE: Final = frozenset({errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK})
"""Errors of a lock that somebody holds; others tell of file systems without locks, or whose server of locks is away."""


class FileLock:
    """One holder at a time, or several that share it; the file may say who it is. It stays when the lock is let go."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self, content: str | None = None) -> bool:
        """Takes the lock, without waiting, and writes ``content``; false when another holds it.

        ``OSError`` where the file cannot be made, written or locked by anybody.
        """
        if not self._lock(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644), shared=False):
            return False
        if content is not None:
            self.write(content)
        return True

    def share(self) -> bool:
        """Takes the lock of a file that is there, beside others who share it; false when another holds it alone.

        ``OSError`` where the file is not there, or cannot be locked by anybody.
        """
        return self._lock(os.open(self._path, os.O_RDONLY), shared=True)

    def content(self) -> str:
        """The content of the file, whoever holds the lock."""
        return self._path.read_text(encoding="utf-8").strip()

    def write(self, content: str) -> None:
        """Replaces what the file says; only for the holder."""
        if self._descriptor is None:
            raise RuntimeError(f"{str(self._path)!r} cannot be written without its lock")
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.write(self._descriptor, content.encode())

    def release(self) -> None:
        """Lets go of the lock; without it, it does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            _HELD.discard(self)
            os.close(descriptor)

    def _lock(self, descriptor: int, *, shared: bool) -> bool:
        try:
            _try_lock(descriptor, shared=shared)
        except OSError as error:
            os.close(descriptor)
            if error.errno in _HELD_ELSEWHERE:
                return False
            raise OSError(error.errno, error.strerror, str(self._path)) from error
        self._descriptor = descriptor
        _HELD.add(self)
        return True


_HELD: Final[WeakSet[FileLock]] = WeakSet()
"""The locks of this process."""


def _let_go_in_fork() -> None:
    for lock in list(_HELD):
        lock.release()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_let_go_in_fork)
