"""A lock on a file, that other processes respect and that goes with the process that holds it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

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


class FileLock:
    """One holder at a time, or several that share it; the file may say who it is. It stays when the lock is let go."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self, content: str | None = None) -> bool:
        """Takes the lock, without waiting, and writes ``content``; false when another holds it."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _try_lock(descriptor)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        if content is not None:
            self.write(content)
        return True

    def share(self) -> bool:
        """Takes the lock of a file that is there, beside others who share it; false when another holds it alone."""
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            _try_lock(descriptor, shared=True)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

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
            os.close(descriptor)
