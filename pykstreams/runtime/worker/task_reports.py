"""Reports about tasks from one thread to another, without those of tasks that were taken back meanwhile."""

from __future__ import annotations

from queue import Empty, SimpleQueue
from typing import Generic, TypeVar
from weakref import WeakSet

Task = TypeVar("Task")
Report = TypeVar("Report")


class TaskReports(Generic[Task, Report]):
    """A queue of reports; both threads may call any method.

    A task that was taken back may have been opened anew since, as another object with the same id, and a report about
    the first would be taken for one about the second.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Task | None, Report]] = SimpleQueue()
        self._taken_back: WeakSet[Task] = WeakSet()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to be taken."""
        return self._queue.empty()

    def put(self, task: Task | None, report: Report) -> None:
        """Reports about a task; ``None``: about none in particular."""
        self._queue.put((task, report))

    def take_back(self, task: Task) -> None:
        """Leaves out what is reported about a task, also what was."""
        self._taken_back.add(task)

    def take(self) -> list[Report]:
        """The reports since the last call."""
        found: list[Report] = []
        while True:
            try:
                task, report = self._queue.get_nowait()
            except Empty:
                return found
            if task not in self._taken_back:
                found.append(report)
