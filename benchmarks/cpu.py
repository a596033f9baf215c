"""How much processor time this process and those below it have taken, ended ones included, as Linux tells it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_PARENT: Final = 1  # fields of /proc/<pid>/stat behind the name of the program (proc_pid_stat(5))
_TIMES: Final = slice(11, 15)  # user, system, and both of children that were waited for


def cpu_seconds() -> float:
    """The sum up to now; where there is no ``/proc``, that of this process."""
    if not _PROC.is_dir():
        return sum(os.times()[:4])
    found = {int(path.name): stat for path in _PROC.iterdir() if path.name.isdecimal() and (stat := _stat(path))}
    below = {os.getpid()}
    while more := {pid for pid, stat in found.items() if int(stat[_PARENT]) in below} - below:
        below |= more
    ticks = sum(int(ticks) for pid in below & set(found) for ticks in found[pid][_TIMES])
    return ticks / os.sysconf("SC_CLK_TCK")


def cpu_seconds_of(pids: Iterable[int]) -> float:
    """The sum of these processes up to now; ``RuntimeError`` where there is no ``/proc``, or when one has ended."""
    found = [_stat(_PROC / str(pid)) for pid in pids]
    if None in found:
        raise RuntimeError("the CPU time of a process cannot be read: it has ended, or there is no /proc")
    own = slice(_TIMES.start, _TIMES.start + 2)
    return sum(int(ticks) for stat in found if stat for ticks in stat[own]) / os.sysconf("SC_CLK_TCK")


def cpu_seconds_by_thread(pid: int) -> dict[str, float]:
    """The sums up to now of the threads of a process that have not ended, by name, the largest first. Numbers at the
    end of names are left out, so that threads of one kind are one sum. Empty where there is no ``/proc``.
    """
    found: Counter[str] = Counter()
    for task in (_PROC / str(pid) / "task").glob("*"):
        stat = _stat(task)
        if stat is not None:
            own = slice(_TIMES.start, _TIMES.start + 2)
            found[_name(task)] += sum(int(ticks) for ticks in stat[own])
    return {name: ticks / os.sysconf("SC_CLK_TCK") for name, ticks in found.most_common() if ticks}


def _name(path: Path) -> str:
    try:
        return re.sub(r"[\d#]+$", "", (path / "comm").read_text().strip()).rstrip()
    except OSError:
        return "ended"


def _stat(path: Path) -> list[str] | None:
    try:
        return (path / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
