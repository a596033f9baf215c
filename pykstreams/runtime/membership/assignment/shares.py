"""The tasks of each client while an assignor decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.assignment.group import Client, ClientTasks
from pykstreams.runtime.membership.process_id import ProcessId


class Share:
    """The tasks that one client has so far.

    Invariant: no task is there twice, be it as an active and a standby one.
    """

    __slots__ = ("active", "client", "standby")

    def __init__(self, client: Client) -> None:
        self.client = client
        self.active: set[TaskId] = set()
        self.standby: set[TaskId] = set()

    @property
    def count(self) -> int:
        return len(self.active) + len(self.standby)

    @property
    def load(self) -> float:
        """Tasks for each thread."""
        return self.count / self.client.capacity

    @property
    def active_load(self) -> float:
        return len(self.active) / self.client.capacity

    def has(self, task: TaskId) -> bool:
        return task in self.active or task in self.standby

    def add_active(self, task: TaskId) -> None:
        self._refuse_twice(task)
        self.active.add(task)

    def add_standby(self, task: TaskId) -> None:
        self._refuse_twice(task)
        self.standby.add(task)

    def drop_active(self, task: TaskId) -> None:
        self.active.remove(task)

    def drop_standby(self, task: TaskId) -> None:
        self.standby.remove(task)

    def _refuse_twice(self, task: TaskId) -> None:
        if self.has(task):
            raise AssertionError(f"task {task} would be on {self.client.process_id} twice")


class Shares:
    """The shares of all clients, in the order of their ids."""

    __slots__ = ("_shares",)

    def __init__(self, clients: Iterable[Client]) -> None:
        ordered = sorted(clients, key=lambda client: client.process_id)
        self._shares = {client.process_id: Share(client) for client in ordered}

    def __getitem__(self, client: ProcessId) -> Share:
        return self._shares[client]

    def __iter__(self) -> Iterator[ProcessId]:
        return iter(self._shares)

    def values(self) -> Iterable[Share]:
        return self._shares.values()

    def items(self) -> Iterable[tuple[ProcessId, Share]]:
        return self._shares.items()

    def frozen(self) -> dict[ProcessId, ClientTasks]:
        return {
            client: ClientTasks(frozenset(share.active), frozenset(share.standby))
            for client, share in self._shares.items()
        }
