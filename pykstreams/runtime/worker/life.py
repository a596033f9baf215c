"""Where a worker is in its life, from when it is made until it stops."""

from __future__ import annotations

import threading
from collections.abc import Callable


class WorkerLife:
    """The life of one worker so far; written on its thread but for ``stop`` and ``fail``, read from any.

    :param on_running: told when all tasks run, and when that ends.
    :param leaves_on_failure: whether it leaves the group when nobody has asked it to stop.
    """

    def __init__(self, on_running: Callable[[bool], None], *, leaves_on_failure: bool = True) -> None:
        self._on_running = on_running
        self._leaves = leaves_on_failure
        self._failure: Exception | None = None
        self._stopping = threading.Event()
        self._begun = False
        self._assigned = False
        self._runs = False

    @property
    def stops(self) -> bool:
        """Whether it has been asked to stop."""
        return self._stopping.is_set()

    @property
    def leaves(self) -> bool:
        """Whether it leaves the group when it ends."""
        return self._leaves

    @property
    def is_assigned(self) -> bool:
        """Whether the group has said which tasks it has, and has not gone on without it since."""
        return self._assigned

    @property
    def runs(self) -> bool:
        """Whether it has all of its tasks, and all of them run."""
        return self._runs

    @property
    def thread_state(self) -> str:
        """The state in the words of Kafka Streams (``StreamThread.State``, 4.3.1)."""
        if self.stops:
            return "PENDING_SHUTDOWN"
        if self._runs:
            return "RUNNING"
        return "PARTITIONS_ASSIGNED" if self._assigned else "STARTING" if self._begun else "CREATED"

    def begin(self) -> None:
        """Notes that its thread works."""
        self._begun = True

    def assign(self) -> None:
        """Notes that the group has said which tasks it has."""
        self._assigned = True

    def lose(self) -> None:
        """Notes that the group has gone on without it, which it joins again as at its start."""
        self._assigned = False

    def stop(self, *, leave: bool) -> None:
        """Asks it to stop, and to leave the group or not; may be called from any thread."""
        self._leaves = leave
        self._stopping.set()

    def fail(self, failure: Exception) -> None:
        """Has it end with an error that has happened elsewhere; may be called from any thread."""
        self._failure = failure

    def raise_failure(self) -> None:
        """Raises the error it is to end with, if there is one."""
        if self._failure is not None:
            raise self._failure

    def note(self, *, runs: bool) -> bool:
        """Notes whether all tasks run, and reports a change; true if it is one."""
        if runs == self._runs:
            return False
        self._runs = runs
        self._on_running(runs)
        return True
