"""Watches how much memory the processes below this one take at most: Linux's own high-water marks, read until they end.

Invariant: a process that lives longer than the pause between two looks is among them.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Final

_PAUSE_S: Final = 0.2
_PROC: Final = Path("/proc")
JAVA: Final = "java"
PYTHON: Final = "python"


class ProcessesBelow:
    """A context manager; where there is no ``/proc`` it sees nothing."""

    def __init__(self) -> None:
        self._peaks: dict[int, tuple[str, int]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)

    def __enter__(self) -> ProcessesBelow:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self.look()

    def largest(self, what: str) -> int | None:
        """The peak of the largest process of a kind, ``JAVA`` or ``PYTHON``, in MB."""
        found = [peak for kind, peak in self._peaks.values() if kind == what]
        return max(found) // 1024 if found else None

    def _watch(self) -> None:
        while not self._ended.wait(_PAUSE_S):
            self.look()

    def look(self) -> None:
        """Looks now."""
        found = {pid: status for pid in _pids() if (status := _status(pid)) is not None}
        below = {os.getpid()}
        more = True
        while more:
            more = False
            for pid, (_, parent, _) in found.items():
                if parent in below and pid not in below:
                    below.add(pid)
                    more = True
        for pid in below - {os.getpid()}:
            name, _, peak = found[pid]
            self._peaks[pid] = (JAVA if name == JAVA else PYTHON), max(peak, self._peaks.get(pid, ("", 0))[1])


def _pids() -> list[int]:
    return [int(path.name) for path in _PROC.iterdir() if path.name.isdecimal()] if _PROC.is_dir() else []


def _status(pid: int) -> tuple[str, int, int] | None:
    """(name, parent, peak in KB) of a process; ``None`` if it has ended."""
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return None
    found = dict(line.split(":", 1) for line in lines)
    return found["Name"].strip(), int(found["PPid"]), int(found.get("VmHWM", "0 kB").split()[0])
