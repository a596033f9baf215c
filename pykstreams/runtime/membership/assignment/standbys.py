"""Placing the configured number of standby tasks, on clients that are least loaded or differ in their tags."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Protocol

from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.assignment.client_queue import ClientQueue
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.assignment.java_sets import in_map_order
from pykstreams.runtime.membership.assignment.shares import Share, Shares
from pykstreams.runtime.membership.process_id import ProcessId

log = logging.getLogger(__name__)

Tag = tuple[str, str]

_SHOWN: Final = 10
"""How many tasks a warning names."""


class StandbyPlacement(Protocol):
    """A way to place standby tasks, and its word on moving them afterwards."""

    def place(self, shares: Shares, stateful: Iterable[TaskId], replicas: int) -> None:
        """Places up to so many standby tasks of each task, on clients that do not have it."""
        ...

    def may_move(self, source: Share, target: Share) -> bool:
        """Whether standby tasks may move from the one client to the other."""
        ...

    def may_move_task(self, source: Share, target: Share, task: TaskId, shares: Shares) -> bool:
        """Whether this standby task may move from the one client to the other."""
        ...


def standby_placement(configs: AssignmentConfigs) -> StandbyPlacement:
    """Returns the way that the settings ask for (``StandbyTaskAssignorFactory``, 4.3.1)."""
    return TagAware(configs.rack_aware_assignment_tags) if configs.rack_aware_assignment_tags else LeastLoaded()


class LeastLoaded:
    """Standby tasks go to whoever has least to do (``DefaultStandbyTaskAssignor``, 4.3.1)."""

    def place(self, shares: Shares, stateful: Iterable[TaskId], replicas: int) -> None:
        queue = _client_queue(shares)
        queue.offer(*shares)
        missing = {task: _place_on_least_loaded(shares, queue, task, replicas) for task in stateful}
        warn_of_missing(missing, replicas)

    def may_move(self, source: Share, target: Share) -> bool:
        return True

    def may_move_task(self, source: Share, target: Share, task: TaskId, shares: Shares) -> bool:
        return True


class TagAware:
    """Standby tasks go where the tags differ from those of the active task and of each other.

    Where a tag has no value left, it is disregarded; where no client is left that differs, the least loaded one serves
    (``ClientTagAwareStandbyTaskAssignor``, 4.3.1).

    :param keys: the tags that count, ``rack.aware.assignment.tags``.
    """

    def __init__(self, keys: Collection[str]) -> None:
        self._keys = frozenset(keys)

    def place(self, shares: Shares, stateful: Iterable[TaskId], replicas: int) -> None:
        values: defaultdict[str, set[str]] = defaultdict(set)
        clients: defaultdict[Tag, set[ProcessId]] = defaultdict(set)
        for client, share in shares.items():
            for tag in share.client.tags.items():
                values[tag[0]].add(tag[1])
                clients[tag].add(client)
        queue = _client_queue(shares)
        missing: dict[TaskId, int] = {}
        for task in stateful:
            active = next((client for client, share in shares.items() if task in share.active), None)
            missing[task] = replicas
            if active is not None:
                missing[task] -= self._place_on_other_tags(shares, queue, task, active, replicas, values, clients)
        if any(missing.values()):
            queue.offer(*shares)
            for task in in_map_order(missing):
                missing[task] = _place_on_least_loaded(shares, queue, task, missing[task])
            warn_of_missing(missing, replicas)

    def may_move(self, source: Share, target: Share) -> bool:
        return all(target.client.tags.get(key) == value for key, value in source.client.tags.items())

    def may_move_task(self, source: Share, target: Share, task: TaskId, shares: Shares) -> bool:
        others = {
            tag
            for share in shares.values()
            if share.has(task) and share is not source and share is not target
            for tag in share.client.tags.items()
        }
        return len(others | set(target.client.tags.items())) >= len(others | set(source.client.tags.items()))

    def _place_on_other_tags(
        self,
        shares: Shares,
        queue: ClientQueue,
        task: TaskId,
        active: ProcessId,
        replicas: int,
        values: Mapping[str, set[str]],
        clients: Mapping[Tag, set[ProcessId]],
    ) -> int:
        queue.offer(*shares)
        used_tags: dict[Tag, set[ProcessId]] = {}
        last = active
        for placed in range(replicas):
            self._note_used(shares[last], placed + 1, used_tags, values, clients)
            found = queue.take(task, _outside(used_tags.values()))
            if found is None:
                log.warning(
                    "task %s has %d of %d standby tasks on clients with other tags (%s); the others go to the least "
                    "loaded clients. Start instances with other values of these tags",
                    task,
                    placed,
                    replicas,
                    ", ".join(sorted(self._keys)),
                )
                return placed
            shares[found].add_standby(task)
            last = found
        return replicas

    def _note_used(
        self,
        share: Share,
        used_clients: int,
        used_tags: dict[Tag, set[ProcessId]],
        values: Mapping[str, set[str]],
        clients: Mapping[Tag, set[ProcessId]],
    ) -> None:
        """Notes who shares a tag with a client that has the task now; a tag whose values are used up counts no more."""
        for key, value in share.client.tags.items():
            if key not in self._keys:
                continue
            if len(values[key]) <= used_clients:
                for every in values[key]:
                    used_tags.pop((key, every), None)
            else:
                used_tags[key, value] = clients[key, value]


def _outside(sets: Collection[set[ProcessId]]) -> Callable[[ProcessId], bool]:
    return lambda client: not any(client in clients for clients in sets)


def _client_queue(shares: Shares) -> ClientQueue:
    return ClientQueue(lambda client, task: not shares[client].has(task), lambda client: shares[client].load)


def _place_on_least_loaded(shares: Shares, queue: ClientQueue, task: TaskId, missing: int) -> int:
    """Places the missing standby tasks of a task; returns how many of them have no client."""
    for left in range(missing, 0, -1):
        client = queue.take(task)
        if client is None:
            return left
        shares[client].add_standby(task)
        queue.offer(client)
    return 0


def warn_of_missing(missing: Mapping[TaskId, int], replicas: int) -> None:
    """Warns of tasks that lack standby tasks for want of clients, in one line for all."""
    lacking = sorted(task for task, number in missing.items() if number)
    if lacking:
        more = "" if len(lacking) <= _SHOWN else f" and {len(lacking) - _SHOWN} more"
        log.warning(
            "standby tasks are missing of %d tasks (%s%s), which are to have %d each: there are no more "
            "instances, of which workers with one state.dir are one. Start more of them, or lower num.standby.replicas",
            len(lacking),
            ", ".join(map(str, lacking[:_SHOWN])),
            more,
            replicas,
        )
