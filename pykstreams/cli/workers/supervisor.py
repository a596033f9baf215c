"""Keeps N worker processes running: starts them, starts crashed ones again, and stops them together.

A worker that failed is started again after a wait that doubles each time; after ``RestartPolicy.limit`` failures in a
row the application gives up. Errors that a new start cannot cure, and that every worker would make (settings, script or
topics are wrong), end the application at once.

Invariant: when ``run`` returns no worker is left. Time and processes come from outside, so that the tests need
neither.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pykstreams.cli.exit_codes import ExitCode
from pykstreams.core.clock import Clock

log = logging.getLogger(__name__)


class Process(Protocol):
    """A running worker."""

    def terminate(self) -> None:
        """Asks it to stop: commit, close, leave the group."""
        ...

    def kill(self) -> None:
        """Ends it at once."""
        ...


@dataclass(frozen=True, slots=True)
class Exited:
    """A worker ended; a negative code is the number of the signal that ended it."""

    worker: int
    code: int


@dataclass(frozen=True, slots=True)
class StopRequested:
    """Somebody asked the application to stop; asking twice ends the workers at once."""


Event = Exited | StopRequested


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How often and how soon a crashed worker is started again.

    :param limit: crashes in a row, of one worker, before the application gives up.
    :param first_wait_s, longest_wait_s: the wait before a new start; it doubles with each crash in a row.
    :param stable_s: a worker that ran this long before it crashed starts from the first wait again.
    :param stop_s: how long workers may take to stop before they are ended.
    """

    limit: int = 5
    first_wait_s: float = 1.0
    longest_wait_s: float = 30.0
    stable_s: float = 60.0
    stop_s: float = 60.0

    def wait_s(self, crashes: int) -> float:
        """The wait after so many crashes in a row.

        >>> [RestartPolicy().wait_s(crashes) for crashes in (1, 2, 3, 10)]
        [1.0, 2.0, 4.0, 30.0]
        """
        return min(self.first_wait_s * 2.0 ** (crashes - 1), self.longest_wait_s)


@dataclass(slots=True)
class _Worker:
    process: Process | None = None
    started_at: float = 0.0
    start_at: float | None = 0.0
    crashes: int = 0


class Supervisor:
    """Runs workers 1 to N.

    :param launch: starts the worker with a number.
    :param next_event: waits for an event, at most the given seconds (``None``: for ever); ``None`` when it timed out.
    """

    def __init__(
        self,
        workers: int,
        *,
        launch: Callable[[int], Process],
        next_event: Callable[[float | None], Event | None],
        clock: Clock,
        policy: RestartPolicy | None = None,
    ) -> None:
        self._workers = {number: _Worker() for number in range(1, workers + 1)}
        self._launch = launch
        self._next_event = next_event
        self._clock = clock
        self._policy = policy or RestartPolicy()
        self._result = 0
        self._stop_before: float | None = None
        self._was_asked = False
        """Whether somebody has asked the application to stop."""

    def run(self) -> int:
        """Runs until all workers have stopped; returns the exit code of the application."""
        try:
            while True:
                if not self._stopping:
                    self._start_due()
                if not self._busy:
                    return self._result
                self._handle(self._next_event(self._time_left()))
        finally:
            for worker in self._workers.values():
                if worker.process is not None:
                    worker.process.kill()

    @property
    def _stopping(self) -> bool:
        return self._stop_before is not None

    @property
    def _busy(self) -> bool:
        return any(
            worker.process is not None or (worker.start_at is not None and not self._stopping)
            for worker in self._workers.values()
        )

    def _start_due(self) -> None:
        now = self._clock.monotonic()
        for number, worker in self._workers.items():
            if worker.start_at is not None and worker.start_at <= now:
                worker.start_at = None
                worker.started_at = now
                worker.process = self._launch(number)

    def _time_left(self) -> float | None:
        """Seconds until something is due: a start, or the end of patience with workers that stop."""
        if self._stop_before is not None:
            due = [self._stop_before]
        else:
            due = [worker.start_at for worker in self._workers.values() if worker.start_at is not None]
        return max(min(due) - self._clock.monotonic(), 0.0) if due else None

    def _handle(self, event: Event | None) -> None:
        match event:
            case Exited(number, code):
                self._exited(number, code)
            case StopRequested():
                if self._was_asked:
                    self._kill("asked to stop twice")
                elif not self._stopping:
                    log.info("stopping %s", _workers(self._running))
                    self._stop(0)
                self._was_asked = True
            case None:
                if self._stop_before is not None and self._clock.monotonic() >= self._stop_before:
                    self._kill(f"not stopped within {self._policy.stop_s:g} s")

    @property
    def _running(self) -> int:
        return sum(worker.process is not None for worker in self._workers.values())

    def _exited(self, number: int, code: int) -> None:
        worker = self._workers[number]
        worker.process = None
        if self._stopping:
            if code > 0 and not self._result:
                self._result = code
            return
        if code == 0:
            log.info("worker %s stopped", number)
            return
        if code == ExitCode.USAGE:
            others = f"; stopping {_workers(self._running)}" if self._running else ""
            log.error("worker %s ended with exit code %s%s", number, code, others)
            self._stop(code)
            return
        now = self._clock.monotonic()
        if now - worker.started_at >= self._policy.stable_s:
            worker.crashes = 0
        worker.crashes += 1
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        if worker.crashes > self._policy.limit:
            log.error("worker %s ended with %s, %s times in a row; giving up", number, how, worker.crashes)
            self._stop(code if code > 0 else int(ExitCode.UNEXPECTED))
            return
        wait = self._policy.wait_s(worker.crashes)
        worker.start_at = now + wait
        log.warning("worker %s ended with %s; starting it again in %g s", number, how, wait)

    def _stop(self, code: int) -> None:
        self._result = code
        self._stop_before = self._clock.monotonic() + self._policy.stop_s
        for worker in self._workers.values():
            if worker.process is not None:
                worker.process.terminate()

    def _kill(self, why: str) -> None:
        for number, worker in self._workers.items():
            if worker.process is not None:
                log.warning("worker %s is ended: %s", number, why)
                worker.process.kill()
        self._result = self._result or int(ExitCode.UNEXPECTED)
        self._stop_before = float("inf")


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"
