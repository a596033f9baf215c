"""Help for assignors: swapping tasks so that less is fetched from other racks (``TaskAssignmentUtils``, 4.3.1)."""

from __future__ import annotations

import itertools
import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.balance import Kind
from pykstreams.runtime.membership.assignment.configs import STRATEGY_NONE
from pykstreams.runtime.membership.assignment.group import Group
from pykstreams.runtime.membership.assignment.java_sets import clients_in_hash_order
from pykstreams.runtime.membership.assignment.shares import Share, Shares
from pykstreams.runtime.membership.assignment.swap import STANDBY_ROUNDS, Costs, Distances, Swap
from pykstreams.runtime.membership.assignors.application_state import ApplicationState, KafkaStreamsState
from pykstreams.runtime.membership.assignors.assignments import KafkaStreamsAssignment
from pykstreams.runtime.membership.assignors.groups import (
    Assignments,
    fetched,
    group_of,
    shares_of,
    stateful_tasks,
    write_shares,
)
from pykstreams.runtime.membership.process_id import ProcessId

log = logging.getLogger(__name__)

MoveStandbyTaskPredicate: TypeAlias = Callable[
    [KafkaStreamsState, KafkaStreamsState, TaskId, Mapping[ProcessId, KafkaStreamsAssignment]], bool
]
"""Says whether a standby task may move from the one instance to the other."""


@dataclass(frozen=True)
class RackAwareOptimizationParams:
    """The application, and which tasks of it to swap (``RackAwareOptimizationParams``).

    :param tasks: ``"stateful"``, ``"stateless"`` or the tasks; ``None``: all that are assigned.
    :param traffic_cost: the cost of a partition without a replica in the rack; ``None``:
        ``rack.aware.assignment.traffic_cost``.
    :param non_overlap_cost: the cost of a task that moves; ``None``: ``rack.aware.assignment.non_overlap_cost``.
    """

    application_state: ApplicationState
    tasks: Literal["stateful", "stateless"] | Collection[TaskId] | None = None
    traffic_cost: int | None = None
    non_overlap_cost: int | None = None


def optimize_rack_aware_active_tasks(params: RackAwareOptimizationParams, assignments: Assignments) -> None:
    """Swaps active tasks between instances at the least cost; each keeps as many as it has.

    Call it before standby tasks are placed: a standby task goes where its active task comes. Nothing is swapped where
    ``rack.aware.assignment.strategy`` is ``none``, or where a cost or a rack is not known, which is logged.
    ``ValueError``: one of the tasks is active on none or on several instances.
    """
    _optimize(params, assignments, "active")


def optimize_rack_aware_standby_tasks(params: RackAwareOptimizationParams, assignments: Assignments) -> None:
    """Swaps standby tasks between pairs of instances in different racks, until that brings nothing.

    Each keeps as many as it has. As in Kafka Streams 4.3.1, ``rack.aware.assignment.tags`` count for nothing here. When
    nothing is swapped, see ``optimize_rack_aware_active_tasks``.
    """
    _optimize(params, assignments, "standby")


def _optimize(params: RackAwareOptimizationParams, assignments: Assignments, kind: Kind) -> None:
    group = group_of(params.application_state)
    shares = shares_of(group, assignments)
    tasks = _tasks(params, group, shares, kind)
    costs = _costs(params, group)
    if not tasks or costs is None or not _racks_known(group, kind):
        return
    racks = _Racks(group, kind, tasks, costs)
    if kind == "active":
        _check_owners(tasks, shares)
        racks.swap_active(shares)
    else:
        racks.swap_standby(shares)
    write_shares(shares, assignments)


class _Racks:
    """Swaps of one kind of tasks.

    Invariant: clients are in the order of a Java hash map, by which the same one of several cheapest placements is
    found.
    """

    def __init__(self, group: Group, kind: Kind, tasks: Collection[TaskId], costs: Costs) -> None:
        rack_of = {client.process_id: client.rack for client in group.clients}
        places = {task.id: fetched(task) if kind == "active" else task.changelogs for task in group.tasks}
        self._distances = Distances(group.racks, rack_of, places, costs)
        self._strategy = group.configs.rack_aware_assignment_strategy
        self._clients = clients_in_hash_order(client.process_id for client in group.clients)
        self._tasks = sorted(tasks)
        subtopologies: defaultdict[int, list[TaskId]] = defaultdict(list)
        for task in self._tasks:
            subtopologies[task.subtopology].append(task)
        self._subtopologies = list(subtopologies.values())

    def swap_active(self, shares: Shares) -> None:
        swap = Swap(self._distances, shares, self._clients, self._tasks, "active")
        swap.by_strategy(self._strategy, self._subtopologies)

    def swap_standby(self, shares: Shares) -> None:
        for _ in range(STANDBY_ROUNDS):
            moved = False
            for one, other in itertools.combinations(self._clients, 2):
                if self._distances.rack_of[one] != self._distances.rack_of[other]:
                    moved |= self._swap_pair(shares, *sorted((one, other)))
            if not moved:
                return

    def _swap_pair(self, shares: Shares, one: ProcessId, other: ProcessId) -> bool:
        movable = [self._movable(shares[one], shares[other]), self._movable(shares[other], shares[one])]
        if not all(movable):
            return False
        swap = Swap(self._distances, shares, (one, other), sorted(itertools.chain(*movable)), "standby")
        return swap.by_strategy(self._strategy, self._subtopologies)

    def _movable(self, source: Share, target: Share) -> list[TaskId]:
        return [task for task in self._tasks if task in source.standby and not target.has(task)]


def _tasks(params: RackAwareOptimizationParams, group: Group, shares: Shares, kind: Kind) -> Collection[TaskId]:
    match params.tasks:
        case None:
            return {task for share in shares.values() for task in (share.active if kind == "active" else share.standby)}
        case "stateful":
            return stateful_tasks(group)
        case "stateless":
            return {task.id for task in group.tasks}.difference(stateful_tasks(group))
        case str():
            raise ValueError(f"tasks is {params.tasks!r}; it is 'stateful', 'stateless', task ids or None")
    unknown = set(params.tasks).difference(task.id for task in group.tasks)
    if unknown:
        raise ValueError(f"tasks names {', '.join(map(str, sorted(unknown)))}, which the application does not have")
    return params.tasks


def _costs(params: RackAwareOptimizationParams, group: Group) -> Costs | None:
    configs = group.configs
    if configs.rack_aware_assignment_strategy == STRATEGY_NONE:
        log.warning("tasks are not swapped by racks: rack.aware.assignment.strategy is %r", STRATEGY_NONE)
        return None
    # as in Kafka Streams, a cost of the call counts only beside one of the settings
    for name, cost in (
        ("traffic_cost", configs.rack_aware_traffic_cost),
        ("non_overlap_cost", configs.rack_aware_non_overlap_cost),
    ):
        if cost is None:
            log.warning("tasks are not swapped by racks: set rack.aware.assignment.%s", name)
            return None
    traffic = configs.rack_aware_traffic_cost if params.traffic_cost is None else params.traffic_cost
    overlap = configs.rack_aware_non_overlap_cost if params.non_overlap_cost is None else params.non_overlap_cost
    assert traffic is not None and overlap is not None, "looked at just before"
    return Costs(traffic, overlap)


def _racks_known(group: Group, kind: Kind) -> bool:
    for client in group.clients:
        if client.rack is None:
            log.error("tasks are not swapped by racks: instance %s has no client.rack", client.process_id)
            return False
    places: set[TopicPartition] = set()
    for task in group.tasks:
        places |= fetched(task) if kind == "active" else task.changelogs
    unknown = sorted(place for place in places if not group.racks.get(place))
    if unknown:
        log.error(
            "tasks are not swapped by racks: those of %s are not known. Set broker.rack on all brokers",
            ", ".join(map(str, unknown)),
        )
    return not unknown


def _check_owners(tasks: Collection[TaskId], shares: Shares) -> None:
    for task in tasks:
        owners = [str(process) for process, share in shares.items() if task in share.active]
        if len(owners) != 1:
            raise ValueError(
                f"task {task} is active on {' and '.join(owners) or 'no instance'}; only tasks that are active on "
                "one instance can be swapped"
            )
