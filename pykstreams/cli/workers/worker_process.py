"""Worker processes: how a supervisor starts one, notices its end, and how a worker notices that it is alone.

A worker runs in a session of its own, so that Ctrl-C reaches the supervisor only, which stops the workers in
order. Its standard input is a pipe that the supervisor holds open: when the supervisor dies, however it dies,
the pipe ends and the worker stops as it does on SIGTERM.

Invariant: every process that was launched reports its end exactly once.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from pykstreams.cli.workers.supervisor import Event, Exited, Process, StopRequested


class WorkerProcesses:
    """Starts ``python -m pykstreams run ...`` and collects what happens.

    :param arguments: what follows ``run``; the number of the worker is appended, unless it is not ``numbered``.
    """

    def __init__(self, arguments: Sequence[str], *, numbered: bool = True) -> None:
        self._arguments = list(arguments)
        self._numbered = numbered
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.stop_requested = False
        """Whether a signal has come."""

    def launch(self, number: int) -> Process:
        """Starts a worker."""
        command = [sys.executable, "-m", "pykstreams", "run", *self._arguments]
        if self._numbered:
            command += ["--worker", str(number)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        threading.Thread(target=self._wait, args=(number, process), name=f"wait-{number}", daemon=True).start()
        return process

    def next_event(self, timeout: float | None) -> Event | None:
        """Waits for the end of a worker or a signal."""
        try:
            return self._events.get(timeout=None if timeout == float("inf") else timeout)
        except queue.Empty:
            return None

    def catch_signals(self) -> None:
        """Turns SIGINT and SIGTERM into requests to stop; only the main thread may do so."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.stop_requested = True
        self._events.put(StopRequested())  # the one queue whose put() may interrupt its own get()

    def _wait(self, number: int, process: subprocess.Popen[bytes]) -> None:
        with process:
            code = process.wait()
        self._events.put(Exited(number, code))


def stop_with_supervisor(pipe: int) -> None:
    """In a worker: stops it as SIGTERM does when the supervisor's end of a pipe (a descriptor) is closed."""

    def watch() -> None:
        while os.read(pipe, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="supervisor-watch", daemon=True).start()
