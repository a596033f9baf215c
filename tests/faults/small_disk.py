"""A disk that fills up: a small file system in memory under the state of a worker, which only root can mount."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.brokers.reaper import when_killed

_SIZE_MB = 160
_BLOCK = bytes(1 << 16)
_BALLAST = "ballast"
_ROOT = 0


def mountable() -> bool:
    """Whether there can be such disks here."""
    return sys.platform == "linux" and os.geteuid() == _ROOT


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Puts the disk in the place of a folder for the length of a block."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_SIZE_MB}m", "tmpfs", str(folder)], check=True)
    unmount = ["umount", "-l", str(folder)]
    taken_care_of = when_killed(unmount)
    try:
        yield
    finally:
        subprocess.run(unmount, check=True)
        taken_care_of()


def fill(folder: Path) -> None:
    """Writes a file that takes all the room there is."""
    with (folder / _BALLAST).open("ab", buffering=0) as file:
        try:
            while True:
                file.write(_BLOCK)
        except OSError:
            return


def make_room(folder: Path) -> None:
    """Deletes it again."""
    (folder / _BALLAST).unlink(missing_ok=True)
