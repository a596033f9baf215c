"""The sticky assignor: tasks stay with the clients that have them, as far as these have no more than others.

Kafka Streams falls back to it for one rebalance where lags are not known, because end offsets could not be fetched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import Final

from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.assignment.group import Group, GroupTasks
from pykstreams.runtime.membership.assignment.java_sets import (
    clients_in_copied_order,
    clients_in_hash_order,
    in_copied_order,
    in_hash_order,
    in_map_order,
)
from pykstreams.runtime.membership.assignment.shares import Share, Shares
from pykstreams.runtime.membership.assignment.standbys import warn_of_missing
from pykstreams.runtime.membership.process_id import ProcessId

DEFAULT_STICKY_TRAFFIC_COST: Final = 1
DEFAULT_STICKY_NON_OVERLAP_COST: Final = 10


def assign_previous(group: Group) -> GroupTasks:
    """Leaves active tasks where they are, and asks for another look (``FallbackPriorTaskAssignor``, 4.3.1)."""
    sticky = StickyPlacement(group)
    sticky.place_active(keep_all=True)
    sticky.place_standby(in_hash_order(sticky.stateful))
    return GroupTasks(sticky.shares.frozen(), probing=True)


def has_more_room(share: Share, other: Share) -> bool:
    """Whether a client has less to do for each thread than another, or as much and more threads."""
    if share.load != other.load:
        return share.load < other.load
    return share.client.capacity > other.client.capacity


class StickyPlacement:
    """The placement so far, with the pairs of tasks that have been on one client: new pairs are preferred.

    :param has_more_room: which of two clients is the less loaded one.
    """

    def __init__(self, group: Group, has_more_room: Callable[[Share, Share], bool] = has_more_room) -> None:
        self._has_more_room = has_more_room
        self.shares = Shares(group.clients)
        self.tasks = {task.id for task in group.tasks}
        self.stateful = {task.id for task in group.tasks if task.stateful}
        self._replicas = group.configs.num_standby_replicas
        self._clients = clients_in_hash_order(client.process_id for client in group.clients)
        self._pairs: set[tuple[TaskId, TaskId]] = set()
        self._most_pairs = len(self.tasks) * (len(self.tasks) - 1) // 2
        self._owners: dict[TaskId, ProcessId] = {}
        self._copies: defaultdict[TaskId, list[ProcessId]] = defaultdict(list)
        for client in self._clients:
            before = self.shares[client].client
            self._owners.update(dict.fromkeys(sorted(before.previous_active), client))
            for task in sorted(before.previous_standby):
                self._copies[task].append(client)

    def place_active(self, *, keep_all: bool) -> None:
        """Assigns tasks to their owners or to clients with a copy that have not their part yet, the rest to anybody."""
        for_each_thread = len(self.tasks) // sum(share.client.capacity for share in self.shares.values())
        left = dict.fromkeys(in_copied_order(self.tasks))
        for task in in_map_order(self._owners):
            owner = self.shares[self._owners[task]]
            if task in left and (keep_all or _lacks(owner, for_each_thread)):
                self._place(task, owner)
                del left[task]
        for task in list(left):
            copies = map(self.shares.__getitem__, clients_in_hash_order(self._copies.get(task, ())))
            lacking = next((share for share in copies if _lacks(share, for_each_thread)), None)
            if lacking is not None:
                self._place(task, lacking)
                del left[task]
        for task in sorted(left):
            self._place(task, self._best(task, self._clients))

    def place_standby(self, stateful: Iterable[TaskId]) -> None:
        """Places the standby tasks of each of these tasks, on clients that had it, or have least to do."""
        missing: dict[TaskId, int] = {}
        for task in stateful if self._replicas else ():
            for placed in range(self._replicas):
                free = clients_in_hash_order(each for each in self._clients if not self.shares[each].has(task))
                if not free:
                    missing[task] = self._replicas - placed
                    break
                share = self._best(task, free)
                self._note_pairs(task, share)
                share.add_standby(task)
        warn_of_missing(missing, self._replicas)

    def _place(self, task: TaskId, share: Share) -> None:
        self._note_pairs(task, share)
        share.add_active(task)

    def _note_pairs(self, task: TaskId, share: Share) -> None:
        self._pairs.update(_pair(task, other) for other in _tasks(share))

    def _best(self, task: TaskId, clients: Collection[ProcessId]) -> Share:
        """The client that had the task, unless it is full and others are not; else the least loaded one."""
        if len(clients) == 1:
            return self.shares[next(iter(clients))]
        before = self._owner(task, clients)
        if before is not None and self._is_fuller(before):
            before = self._with_copy(task, clients)
            if before is not None and self._is_fuller(before):
                before = None
        if before is None:
            before = self._least_loaded(task, clients)
        assert before is not None, "there are clients"
        return before

    def _owner(self, task: TaskId, clients: Collection[ProcessId]) -> Share | None:
        owner = self._owners.get(task)
        return self.shares[owner] if owner in clients and owner is not None else self._with_copy(task, clients)

    def _with_copy(self, task: TaskId, clients: Collection[ProcessId]) -> Share | None:
        copies = [client for client in clients_in_copied_order(self._copies.get(task, ())) if client in clients]
        return self._least_loaded(task, copies)

    def _is_fuller(self, share: Share) -> bool:
        full = share.count >= share.client.capacity
        return full and any(self._has_more_room(other, share) for other in self.shares.values())

    def _least_loaded(self, task: TaskId, clients: Iterable[ProcessId]) -> Share | None:
        shares = [self.shares[client] for client in clients]
        found = self._least_loaded_that(shares, task, new_pair=True)
        return found if found is not None else self._least_loaded_that(shares, task, new_pair=False)

    def _least_loaded_that(self, shares: Iterable[Share], task: TaskId, *, new_pair: bool) -> Share | None:
        least: Share | None = None
        for share in shares:
            if share.count == 0:
                return share
            if (least is None or self._has_more_room(share, least)) and not (
                new_pair and not self._makes_pair(share, task)
            ):
                least = share
        return least

    def _makes_pair(self, share: Share, task: TaskId) -> bool:
        if len(self._pairs) == self._most_pairs:
            return False
        return any(_pair(task, other) not in self._pairs for other in _tasks(share))


def _tasks(share: Share) -> set[TaskId]:
    return share.active | share.standby


def _pair(one: TaskId, other: TaskId) -> tuple[TaskId, TaskId]:
    return (one, other) if one < other else (other, one)


def _lacks(share: Share, for_each_thread: int) -> bool:
    return len(share.active) < share.client.capacity * for_each_thread
