"""Swapping tasks between clients so that less is fetched from other racks, and each keeps as many as it has.

The cheapest placement is a flow of tasks to clients (``RackAwareTaskAssignor``, 4.3.1).
"""

from __future__ import annotations

import itertools
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.configs import STRATEGY_NONE
from pykstreams.runtime.membership.assignment.group import Group
from pykstreams.runtime.membership.assignment.shares import Share, Shares
from pykstreams.runtime.membership.assignment.swap import STANDBY_ROUNDS, Costs, Distances, Swap

log = logging.getLogger(__name__)

MayMoveTask = Callable[[Share, Share, TaskId, Shares], bool]


class RackAware:
    """The racks of a group, and swaps by them."""

    def __init__(self, group: Group) -> None:
        self._racks = group.racks
        self._strategy = group.configs.rack_aware_assignment_strategy
        self._tasks = group.tasks
        self._rack_of = {client.process_id: client.rack for client in group.clients}
        self._subtopologies: dict[int, list[TaskId]] = defaultdict(list)
        for task in sorted(task.id for task in group.tasks):
            self._subtopologies[task.subtopology].append(task)
        self.enabled = self._strategy != STRATEGY_NONE and self._all_known(group)
        """Whether to swap: by the strategy, and as the racks of all clients and partitions are known."""

    def swap_active(self, shares: Shares, tasks: Sequence[TaskId], costs: Costs) -> None:
        """Swaps some active tasks; ``tasks`` are in their order."""
        if tasks:
            inputs = {task.id: task.inputs for task in self._tasks}
            swap = Swap(self._distances(inputs, costs), shares, list(shares), tasks, "active")
            swap.by_strategy(self._strategy, list(self._subtopologies.values()))

    def swap_standby(self, shares: Shares, costs: Costs, may_move: MayMoveTask) -> None:
        """Swaps standby tasks between pairs of clients in different racks, until that brings nothing."""
        distances = self._distances({task.id: task.changelogs for task in self._tasks}, costs)
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
                    moved |= Swap(distances, shares, [one, other], tasks, "standby").by_traffic()
            if not moved:
                return

    def _distances(self, places: Mapping[TaskId, Collection[TopicPartition]], costs: Costs) -> Distances:
        return Distances(self._racks, self._rack_of, places, costs)

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
