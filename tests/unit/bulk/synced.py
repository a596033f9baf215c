"""What has been brought to the disk, as a test sees it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest


class Synced:
    """Notes what files and folders held when they were brought to the disk for the last time.

    :param counts: whether it is noted now.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, counts: Callable[[], bool]) -> None:
        self._held: dict[int, int | list[str]] = {}
        fsync = os.fsync

        def noted(descriptor: int) -> None:
            fsync(descriptor)
            if counts():
                status = os.fstat(descriptor)
                is_folder = stat.S_ISDIR(status.st_mode)
                self._held[status.st_ino] = sorted(os.listdir(descriptor)) if is_folder else status.st_size

        monkeypatch.setattr(os, "fsync", noted)

    def is_whole(self, file: Path) -> bool:
        """Whether all that a file has is on the disk."""
        status = file.stat()
        return self._held.get(status.st_ino) == status.st_size

    def has_name(self, path: Path) -> bool:
        """Whether the name of a file or a folder is on the disk."""
        names = self._held.get(path.parent.stat().st_ino)
        return isinstance(names, list) and path.name in names
