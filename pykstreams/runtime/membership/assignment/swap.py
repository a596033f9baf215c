"""Swapping tasks of one kind between clients: one flow of tasks to clients at the least cost.

What a placement costs: ``traffic`` for each partition without a replica in the client's rack, and ``overlap`` for a
task that moves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pykstreams.core.errors import ConfigError, TaskAssignmentError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.balance import Kind
from pykstreams.runtime.membership.assignment.configs import (
    STRATEGY_BALANCE_SUBTOPOLOGY,
    STRATEGY_MIN_TRAFFIC,
    STRATEGY_NONE,
)
from pykstreams.runtime.membership.assignment.flow import FlowNetwork
from pykstreams.runtime.membership.assignment.group import Racks
from pykstreams.runtime.membership.assignment.shares import Share, Shares
from pykstreams.runtime.membership.process_id import ProcessId

STANDBY_ROUNDS: Final = 4
"""So often standby tasks are swapped between all pairs of clients at most."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The prices of a placement."""

    traffic: int
    overlap: int


STATELESS_COSTS: Final = Costs(traffic=1, overlap=0)
"""Tasks without state may move as they like."""


@dataclass(frozen=True, slots=True)
class Distances:
    """The costs of tasks on clients.

    :param places: the partitions of each task that are fetched.
    """

    racks: Racks
    rack_of: Mapping[ProcessId, str | None]
    places: Mapping[TaskId, Collection[TopicPartition]]
    costs: Costs

    def cost(self, task: TaskId, client: ProcessId, *, moves: bool) -> int:
        """The cost of a task on a client."""
        rack = self.rack_of[client]
        far = sum(rack not in self.racks[place] for place in self.places[task])
        return far * self.costs.traffic + (self.costs.overlap if moves else 0)


class Swap:
    """One flow of tasks to clients.

    Invariant: each client has as many of the tasks afterwards as before.
    """

    def __init__(
        self,
        distances: Distances,
        shares: Shares,
        clients: Sequence[ProcessId],
        tasks: Sequence[TaskId],
        kind: Kind,
    ) -> None:
        self._distances = distances
        self._shares = shares
        self._clients = clients
        self._tasks = tasks
        self._kind = kind
        self._owners = {task: client for client in clients for task in tasks if self._has(client, task)}
        self._counts = Counter(client for client in shares for task in tasks if self._has(client, task))

    def by_strategy(self, strategy: str, subtopologies: Sequence[Sequence[TaskId]]) -> bool:
        """Swaps tasks as ``rack.aware.assignment.strategy`` asks for; returns whether any has moved."""
        if strategy == STRATEGY_MIN_TRAFFIC:
            return self.by_traffic()
        if strategy == STRATEGY_BALANCE_SUBTOPOLOGY:
            return self.by_subtopology(subtopologies)
        raise ConfigError(
            f"rack.aware.assignment.strategy is {strategy!r}; it is {STRATEGY_NONE!r}, "
            f"{STRATEGY_MIN_TRAFFIC!r} or {STRATEGY_BALANCE_SUBTOPOLOGY!r}"
        )

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
        return self._distances.cost(task, client, moves=not self._has(client, task))

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
            target.standby.discard(task)  # an assignor of a user may have placed standby tasks already
            target.add_active(task)
        else:
            source.drop_standby(task)
            target.add_standby(task)
