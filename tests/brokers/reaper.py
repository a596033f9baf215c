"""What tests have started ends with them, however they end: brokers, workers, containers, folders in memory.

Fixtures end what they began, unless pytest itself is killed: by the SIGTERM of a build server, by a debugger, for want
of memory. So each process that runs tests has a reaper beside it, which reads from a pipe what there is to end. When
the pipe closes, because its only writer is gone, the reaper ends what is left, and then itself.

Invariant: what ``when_killed`` names is done once at most, and only if the tests could not take it back.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

_numbers = itertools.count(1)


def when_killed(command: Sequence[str]) -> Callable[[], None]:
    """Has a command run when this process is gone; gives what takes that back.

    The last one to be named is the first to run, in the environment of now.
    """
    return _register({"command": list(command), "environment": dict(os.environ)})


class Process(subprocess.Popen[bytes]):
    """A process in a session of its own, which is killed with all its children when the tests are.

    The signal of Ctrl-C does not reach it either: it is for the tests, whose fixtures then end it.
    """

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        super().__init__(command, start_new_session=True, **options)
        self._take_back = _register({"session": self.pid})

    def poll(self) -> int | None:
        return self._ended(super().poll())

    def wait(self, timeout: float | None = None) -> int:
        code = super().wait(timeout)
        self._ended(code)
        return code

    def _ended(self, code: int | None) -> int | None:
        """From now on its number may be another process's."""
        if code is not None:
            self._take_back()
        return code


def _register(what: dict[str, object]) -> Callable[[], None]:
    reaper, number = _reaper(os.getpid()), next(_numbers)
    _tell(reaper, {"number": number, **what})
    untold = threading.Lock()

    def take_back() -> None:
        if untold.acquire(blocking=False):  # never released: several threads may ask for one process at a time
            _tell(reaper, {"number": number})

    return take_back


def _tell(reaper: subprocess.Popen[bytes], what: dict[str, object]) -> None:
    assert reaper.stdin is not None
    reaper.stdin.write(json.dumps(what).encode() + b"\n")
    reaper.stdin.flush()


@functools.cache
def _reaper(of: int) -> subprocess.Popen[bytes]:
    """The reaper of a process; one that was forked needs its own."""
    reaper = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, start_new_session=True)
    atexit.register(reaper.communicate)
    return reaper


def reap(lines: Iterable[bytes]) -> None:
    """Reads to the end what there is to end, and ends what was not taken back, the last first."""
    left: dict[int, dict[str, Any]] = {}
    for line in lines:
        what = json.loads(line)
        number = what.pop("number")
        if what:
            left[number] = what
        else:
            del left[number]
    for what in reversed(left.values()):
        if "session" in what:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(what["session"], signal.SIGKILL)
        else:
            subprocess.run(what["command"], env=what["environment"], stdout=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    reap(sys.stdin.buffer)
