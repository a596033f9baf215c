"""The processes that a process has started."""

from __future__ import annotations

from pathlib import Path


def children(pid: int) -> list[int]:
    """The children of a process (proc_pid_children(5))."""
    tasks = Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def ended(pid: int) -> bool:
    """Whether a process is gone, or only waits to be reaped by its parent (proc_pid_stat(5))."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
