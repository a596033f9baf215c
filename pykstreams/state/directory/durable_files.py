"""Files that survive a crash of the machine: there as a whole, with their name, or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Writes a file in place of the one that is there, if any; one process at a time."""
    beside = path.with_name(f"{path.name}.new")
    with beside.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())  # or the name may be on the disk before what is in the file
    beside.replace(path)
    sync_folder(path.parent)


def sync_file(path: Path) -> None:
    """Makes durable what a file holds that somebody has written."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def publish_file(beside: Path, path: Path) -> None:
    """Moves a file to its place that was written beside it; there, it is whole even after a crash of the machine."""
    sync_file(beside)  # or the name may be on the disk before what is in the file
    beside.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes durable which files a folder has."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
