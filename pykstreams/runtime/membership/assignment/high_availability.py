"""The assignor that groups have unless ``task.assignor.class`` names another: tasks stay where their state is."""

from __future__ import annotations

from typing import Final

from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.assignment.balance import balance
from pykstreams.runtime.membership.assignment.client_queue import ClientQueue
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.assignment.group import Group, GroupTasks
from pykstreams.runtime.membership.assignment.movements import Movements
from pykstreams.runtime.membership.assignment.rack_aware import RackAware
from pykstreams.runtime.membership.assignment.shares import Shares
from pykstreams.runtime.membership.assignment.standbys import standby_placement
from pykstreams.runtime.membership.assignment.swap import STATELESS_COSTS, Costs

DEFAULT_TRAFFIC_COST: Final = 10
DEFAULT_OVERLAP_COST: Final = 1


def assign_high_availability(group: Group) -> GroupTasks:
    """Shares out tasks as ``HighAvailabilityTaskAssignor`` of Kafka Streams 4.3.1 does, task by task.

    Stateful tasks are dealt out evenly, by racks where that is asked for, and so are standby tasks. Those whose clients
    are too far behind then begin where they can, with warm-ups on the clients that are to have them. Stateless tasks
    go to whoever has the fewest active tasks.
    """
    shares = Shares(group.clients)
    racks = RackAware(group)
    stateful = sorted(task.id for task in group.tasks if task.stateful)
    stateless = sorted(task.id for task in group.tasks if not task.stateful)
    _place_active(shares, stateful, racks, group.configs)
    if group.configs.num_standby_replicas:
        _place_standby(shares, stateful, racks, group.configs)
    movements = Movements(shares, stateful, group.configs.acceptable_recovery_lag, group.configs.max_warmup_replicas)
    moves = movements.move_active()
    moves += movements.move_standby()
    _place_stateless(shares, stateless, racks)
    return GroupTasks(shares.frozen(), probing=moves > 0)


def _place_active(shares: Shares, stateful: list[TaskId], racks: RackAware, configs: AssignmentConfigs) -> None:
    clients = list(shares)
    for at, task in enumerate(stateful):
        shares[clients[at % len(clients)]].add_active(task)
    balance(shares, "active")
    if racks.enabled:
        racks.swap_active(shares, stateful, _costs(configs))


def _place_standby(shares: Shares, stateful: list[TaskId], racks: RackAware, configs: AssignmentConfigs) -> None:
    placement = standby_placement(configs)
    placement.place(shares, stateful, configs.num_standby_replicas)
    balance(shares, "standby", placement.may_move)
    if racks.enabled:
        racks.swap_standby(shares, _costs(configs), placement.may_move_task)


def _place_stateless(shares: Shares, stateless: list[TaskId], racks: RackAware) -> None:
    queue = ClientQueue(lambda client, task: True, lambda client: shares[client].active_load)
    queue.offer(*shares)
    for task in stateless:
        client = queue.take(task)
        assert client is not None, "a group has a client"
        shares[client].add_active(task)
        queue.offer(client)
    if racks.enabled:
        racks.swap_active(shares, stateless, STATELESS_COSTS)


def _costs(configs: AssignmentConfigs) -> Costs:
    traffic, overlap = configs.rack_aware_traffic_cost, configs.rack_aware_non_overlap_cost
    return Costs(
        DEFAULT_TRAFFIC_COST if traffic is None else traffic, DEFAULT_OVERLAP_COST if overlap is None else overlap
    )
