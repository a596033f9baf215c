"""The clients of a group by load, from which the least loaded one is taken that may have a task."""

from __future__ import annotations

from collections.abc import Callable

from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.assignment.java_queue import JavaQueue
from pykstreams.runtime.membership.process_id import ProcessId


class ClientQueue:
    """Clients by load, and by id where loads are equal (``ConstrainedPrioritySet``, 4.3.1).

    :param may_have: whether a client may have a task at all.
    :param load: the load of a client, which may change as long as the client is offered again afterwards.
    """

    def __init__(self, may_have: Callable[[ProcessId, TaskId], bool], load: Callable[[ProcessId], float]) -> None:
        self._may_have = may_have
        self._queue: JavaQueue[ProcessId] = JavaQueue(lambda client: (load(client), client))

    def offer(self, *clients: ProcessId) -> None:
        """Puts clients in, or in their places where they are in already."""
        for client in clients:
            if client in self._queue:
                self._queue.remove(client)
            self._queue.push(client)

    def take(self, task: TaskId, fits: Callable[[ProcessId], bool] = lambda _: True) -> ProcessId | None:
        """Removes and returns the least loaded client that may have the task and fits; ``None``: there is none."""
        passed_over: list[ProcessId] = []
        found = None
        while found is None and len(self._queue):
            client = self._queue.pop()
            if self._may_have(client, task) and fits(client):
                found = client
            else:
                passed_over.append(client)
        self.offer(*passed_over)
        return found
