"""Keeps an application running while its files are edited: stops it in order when one changes, and starts it anew.

The application is a process of its own, since modules that Python has imported cannot be taken back. One that ends by
itself, as with an error in the script, is started again with the next change.

Invariant: when ``run`` returns no process is left. Files, time and processes come from outside.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from pykstreams.cli.exit_codes import ExitCode
from pykstreams.cli.workers.supervisor import Event, Exited, Process, StopRequested
from pykstreams.core.clock import Clock

log = logging.getLogger(__name__)

LOOK_S: Final = 0.3
"""How often the files are looked at, and for how long they must be left alone before the application is started."""
STOP_S: Final = 60.0
"""How long the application may take to stop before it is ended."""


class Reloader:
    """Runs one process after the other.

    :param launch: starts the process of a number, which counts them from 1.
    :param next_event: waits for an event, at most the given seconds; ``None`` when it timed out.
    :param changed: gives the files that have changed since it was asked last.
    """

    def __init__(
        self,
        *,
        launch: Callable[[int], Process],
        next_event: Callable[[float | None], Event | None],
        changed: Callable[[], list[str]],
        clock: Clock,
    ) -> None:
        self._launch = launch
        self._next_event = next_event
        self._changed = changed
        self._clock = clock
        self._number = 0
        self._process: Process | None = None
        self._stopping = False

    def run(self) -> int:
        """Runs until somebody asks to stop; returns the exit code of the application."""
        try:
            while not self._stopping:
                self._number += 1
                self._process = self._launch(self._number)
                self._wait_for_change()
                code = self._stop()
            return code
        finally:
            if self._process is not None:
                self._process.kill()

    def _wait_for_change(self) -> None:
        """Waits until a file has changed and no other one follows, or until it is to stop."""
        seen = False
        while not self._stopping:
            if files := self._changed():
                for file in files:
                    log.info("%s has changed", file)
                seen = True
            elif seen:
                return
            self._handle(self._next_event(LOOK_S))

    def _stop(self) -> int:
        """Stops the process in order and returns its exit code; zero for one that has ended already."""
        process, code = self._process, int(ExitCode.STOPPED)
        if process is None:
            return code
        log.info("stopping the application" if self._stopping else "stopping the application, to start it anew")
        asked, end = self._stopping, self._clock.monotonic() + STOP_S
        process.terminate()
        while self._process is not None:
            event = self._next_event(max(end - self._clock.monotonic(), 0.0))
            if isinstance(event, Exited) and event.worker == self._number:
                self._process = None
                code = event.code if event.code > 0 else code
            elif event is None or (isinstance(event, StopRequested) and asked):
                log.warning("the application is ended: it has not stopped, or was asked twice")
                process.kill()
                end = float("inf")
            self._stopping = asked = self._stopping or isinstance(event, StopRequested)
        return code

    def _handle(self, event: Event | None) -> None:
        if isinstance(event, StopRequested):
            self._stopping = True
        elif isinstance(event, Exited) and event.worker == self._number:
            self._process = None
            log.warning("the application ended with exit code %s; it is started anew with the next change", event.code)
