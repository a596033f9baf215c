"""The processes that a process has started."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

_GONE: Final = (FileNotFoundError, ProcessLookupError)
"""Errors of reading about a process, or a thread, that ends: before the file is opened, or behind that."""


def children(pid: int) -> list[int]:
    """The children of a process (proc_pid_children(5))."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(*_GONE):
            found += map(int, (task / "children").read_text().split())
    return found


def ended(pid: int) -> bool:
    """Whether a process is gone, or only waits to be reaped by its parent (proc_pid_stat(5))."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except _GONE:
        return True
