"""Swapping tasks between clients so that less is fetched from other racks, and each keeps as many as it has.

What a placement costs: ``traffic`` for each partition without a replica in the client's rack, and ``overlap`` for a
task that moves. The cheapest placement is a flow of tasks to clients (``RackAwareTaskAssignor``, 4.3.1).
"""

from __future__ import annotations

import itertools
import logging
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pykstreams.core.errors import ConfigError, TaskAssignmentError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.assignment.balance import Kind
from pykstreams.runtime.membership.assignment.configs import (
    STRATEGY_BALANCE_SUBTOPOLOGY,
    STRATEGY_MIN_TRAFFIC,
    STRATEGY_NONE,
)
from pykstreams.runtime.membership.assignment.flow import FlowNetwork
from pykstreams.runtime.membership.assignment.group import Group
from pykstreams.runtime.membership.assignment.shares import Share, Shares
from pykstreams.runtime.membership.process_id import ProcessId

log = logging.getLogger(__name__)

STANDBY_ROUNDS: Final = 4
"""So often standby tasks are swapped between all pairs of clients at most."""

MayMoveTask = Callable[[Share, Share, TaskId, Shares], bool]


@dataclass(frozen=True, slots=True)
class Costs:
    """The prices of a placement."""

    traffic: int
    overlap: int


STATELESS_COSTS: Final = Costs(traffic=1, overlap=0)
"""Tasks without state may move as they like."""


class RackAware:
    """The racks of a group, and swaps by them."""

    def __init__(self, group: Group) -> None:
        self._racks = group.racks
        self._strategy = group.configs.rack_aware_assignment_strategy
        self._tasks = {task.id: task for task in group.tasks}
        self._rack_of = {client.process_id: client.rack for client in group.clients}
        self._subtopologies: dict[int, list[TaskId]] = defaultdict(list)
        for task in sorted(self._tasks):
            self._subtopologies[task.subtopology].append(task)
        self.enabled = self._strategy != STRATEGY_NONE and self._all_known(group)
        """Whether to swap: by the strategy, and as the racks of all clients and partitions are known."""

    def swap_active(self, shares: Shares, tasks: Sequence[TaskId], costs: Costs) -> None:
        """Swaps some active tasks; ``tasks`` are in their order."""
        if not tasks:
            return
        if self._strategy == STRATEGY_MIN_TRAFFIC:
            swap = _Swap(self, shares, list(shares), tasks, "active", costs)
            swap.by_traffic()
        elif self._strategy == STRATEGY_BALANCE_SUBTOPOLOGY:
            swap = _Swap(self, shares, list(shares), tasks, "active", costs)
            swap.by_subtopology(list(self._subtopologies.values()))
        else:
            raise ConfigError(
                f"rack.aware.assignment.strategy is {self._strategy!r}; it is {STRATEGY_NONE!r}, "
                f"{STRATEGY_MIN_TRAFFIC!r} or {STRATEGY_BALANCE_SUBTOPOLOGY!r}"
            )

    def swap_standby(self, shares: Shares, costs: Costs, may_move: MayMoveTask) -> None:
        """Swaps standby tasks between pairs of clients in different racks, until that brings nothing."""
        for _ in range(STANDBY_ROUNDS):
            moved = False
            for one, other in itertools.combinations(shares, 2):
                if self._rack_of[one] == self._rack_of[other]:
                    continue
                movable = [
                    [task for task in source.standby if not target.has(task) and may_move(source, target, task, shares)]
                    for source, target in ((shares[one], shares[other]), (shares[other], shares[one]))
                ]
                if all(movable):
                    tasks = sorted(itertools.chain(*movable))
                    moved |= _Swap(self, shares, [one, other], tasks, "standby", costs).by_traffic()
            if not moved:
                return

    def cost(self, task: TaskId, client: ProcessId, kind: Kind, *, moves: bool, costs: Costs) -> int:
        """The cost of a task on a client."""
        rack = self._rack_of[client]
        places = self._tasks[task].inputs if kind == "active" else self._tasks[task].changelogs
        far = sum(rack not in self._racks[place] for place in places)
        return far * costs.traffic + (costs.overlap if moves else 0)

    def _all_known(self, group: Group) -> bool:
        for client in group.clients:
            if client.rack is None:
                log.error(
                    "instance %s has no rack, or its workers have different ones: tasks are shared out without regard "
                    "to racks. Set client.rack on all instances",
                    client.process_id,
                )
                return False
        places = {place for task in group.tasks for place in task.inputs}
        if group.configs.num_standby_replicas:
            places |= {place for task in group.tasks for place in task.changelogs}
        unknown = sorted(place for place in places if not group.racks.get(place))
        if unknown:
            log.error(
                "the racks of %s are not known: tasks are shared out without regard to racks. "
                "Set broker.rack on all brokers",
                ", ".join(map(str, unknown)),
            )
        return not unknown


class _Swap:
    """One flow of tasks to clients.

    Invariant: each client has as many of the tasks afterwards as before.
    """

    def __init__(
        self,
        racks: RackAware,
        shares: Shares,
        clients: Sequence[ProcessId],
        tasks: Sequence[TaskId],
        kind: Kind,
        costs: Costs,
    ) -> None:
        self._racks = racks
        self._shares = shares
        self._clients = clients
        self._tasks = tasks
        self._kind = kind
        self._costs = costs
        self._owners = {task: client for client in clients for task in tasks if self._has(client, task)}
        self._counts = Counter(client for client in shares for task in tasks if self._has(client, task))

    def by_traffic(self) -> bool:
        """Swaps tasks at the least cost; returns whether any has moved."""
        first_client = len(self._tasks)
        sink = first_client + len(self._clients)
        network = FlowNetwork(sink)
        for node, task in enumerate(self._tasks):
            for at, client in enumerate(self._clients):
                here = self._has(client, task)
                network.add(node, first_client + at, capacity=1, cost=self._cost(task, client), flow=int(here))
            network.add(network.SOURCE, node, capacity=1, flow=1)
        for at, client in enumerate(self._clients):
            network.add(first_client + at, sink, capacity=self._counts[client], flow=self._counts[client])
        network.cheapen()
        return self._move(network, [(task, node, first_client) for node, task in enumerate(self._tasks)])

    def by_subtopology(self, subtopologies: Sequence[Sequence[TaskId]]) -> bool:
        """Swaps tasks at the least cost at which each client has its part of each sub-topology.

        Between tasks and clients is a node for each client and sub-topology, which lets the client's part through.
        """
        wanted = set(self._tasks)
        width = len(self._clients)
        last_stage = len(self._tasks) + width * len(subtopologies)
        sink = last_stage + width
        network = FlowNetwork(sink)
        places: list[tuple[TaskId, int, int]] = []
        for at_subtopology, every in enumerate(subtopologies):
            tasks = [task for task in every if task in wanted]
            first_client = len(self._tasks) + width * at_subtopology
            nodes = [(task, len(places) + at) for at, task in enumerate(tasks)]
            for at, client in enumerate(self._clients if tasks else ()):
                for task, node in nodes:
                    network.add(node, first_client + at, capacity=1, cost=self._cost(task, client))
                part = math.ceil(self._counts[client] * 1.0 / len(self._tasks) * len(tasks))
                network.add(first_client + at, last_stage + at, capacity=part)
            places += [(task, node, first_client) for task, node in nodes]
        for _, node, _ in places:
            network.add(network.SOURCE, node, capacity=1)
        for at, client in enumerate(self._clients):
            network.add(last_stage + at, sink, capacity=self._counts[client])
        placed = network.fill()
        if placed != len(self._tasks):
            raise TaskAssignmentError(f"of {len(self._tasks)} tasks only {placed} have a place by sub-topology")
        network.cheapen()
        return self._move(network, places)

    def _has(self, client: ProcessId, task: TaskId) -> bool:
        share = self._shares[client]
        return task in (share.active if self._kind == "active" else share.standby)

    def _cost(self, task: TaskId, client: ProcessId) -> int:
        moves = not self._has(client, task)
        return self._racks.cost(task, client, self._kind, moves=moves, costs=self._costs)

    def _move(self, network: FlowNetwork, places: Sequence[tuple[TaskId, int, int]]) -> bool:
        moved = False
        for task, node, first_client in places:
            for target in network.targets(node):
                client = self._clients[target - first_client]
                owner = self._owners[task]
                if client != owner:
                    self._hand_over(task, self._shares[owner], self._shares[client])
                    moved = True
        return moved

    def _hand_over(self, task: TaskId, source: Share, target: Share) -> None:
        if self._kind == "active":
            source.drop_active(task)
            target.add_active(task)
        else:
            source.drop_standby(task)
            target.add_standby(task)
