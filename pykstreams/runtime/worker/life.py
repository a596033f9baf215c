"""Where a worker is in its life, from when it is made until it stops."""

from __future__ import annotations

import threading
from collections.abc import Callable


class WorkerLife:
    """The life of one worker so far; written on its thread but for ``stop``, read from any.

    :param on_running: told when all tasks run, and when that ends.
    """

    def __init__(self, on_running: Callable[[bool], None]) -> None:
        self._on_running = on_running
        self._stopping = threading.Event()
        self._begun = False
        self._assigned = False
        self._runs = False

    @property
    def stops(self) -> bool:
        """Whether it has been asked to stop."""
        return self._stopping.is_set()

    @property
    def is_assigned(self) -> bool:
        """Whether the group has ever said which tasks it has."""
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

    def stop(self) -> None:
        """Asks it to stop; may be called from any thread."""
        self._stopping.set()

    def note(self, *, runs: bool) -> bool:
        """Notes whether all tasks run, and reports a change; true if it is one."""
        if runs == self._runs:
            return False
        self._runs = runs
        self._on_running(runs)
        return True
