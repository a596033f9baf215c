"""``StickyTaskAssignor``: an assignor to name or to start from, which leaves tasks where they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pykstreams.runtime.membership.assignment.java_sets import clients_in_hash_order
from pykstreams.runtime.membership.assignment.shares import Share
from pykstreams.runtime.membership.assignment.sticky import (
    DEFAULT_STICKY_NON_OVERLAP_COST,
    DEFAULT_STICKY_TRAFFIC_COST,
    StickyPlacement,
)
from pykstreams.runtime.membership.assignment.swap import STATELESS_COSTS
from pykstreams.runtime.membership.assignors.application_state import ApplicationState
from pykstreams.runtime.membership.assignors.assignments import KafkaStreamsAssignment, TaskAssignment
from pykstreams.runtime.membership.assignors.groups import group_of, logged_tasks, shares_of, write_shares
from pykstreams.runtime.membership.assignors.rack_optimization import (
    RackAwareOptimizationParams,
    optimize_rack_aware_active_tasks,
    optimize_rack_aware_standby_tasks,
)
from pykstreams.runtime.membership.assignors.task_assignor import TaskAssignor
from pykstreams.runtime.membership.process_id import ProcessId

_AT_ONCE: Final = 0


class StickyTaskAssignor(TaskAssignor):
    """Leaves tasks on the instances that have them, as far as these have no more than others.

    It does not ask how far instances are behind, so that tasks with state may move to where all of it is restored.

    :param must_preserve_active_task_assignment: whether active tasks stay where they are whoever has more of them, and
        a rebalance follows at once.
    """

    DEFAULT_STICKY_TRAFFIC_COST: Final = DEFAULT_STICKY_TRAFFIC_COST
    DEFAULT_STICKY_NON_OVERLAP_COST: Final = DEFAULT_STICKY_NON_OVERLAP_COST

    def __init__(self, must_preserve_active_task_assignment: bool = False) -> None:
        self._keeps_all = must_preserve_active_task_assignment

    def assign(self, application_state: ApplicationState) -> TaskAssignment:
        """Returns the tasks of each instance."""
        group = group_of(application_state)
        sticky = StickyPlacement(group, _has_less_to_do)
        assignments: dict[ProcessId, KafkaStreamsAssignment] = {}
        sticky.place_active(keep_all=self._keeps_all)
        if not self._keeps_all:
            write_shares(sticky.shares, assignments)
            optimize_rack_aware_active_tasks(replace(_params(application_state), tasks="stateful"), assignments)
            optimize_rack_aware_active_tasks(_stateless(application_state), assignments)
            sticky.shares = shares_of(group, assignments)
        sticky.place_standby(logged_tasks(group))
        write_shares(sticky.shares, assignments)
        if self._keeps_all:
            first = clients_in_hash_order(client.process_id for client in group.clients)[0]
            assignments[first] = assignments[first].with_followup_rebalance(_AT_ONCE)
        elif group.configs.num_standby_replicas:
            optimize_rack_aware_standby_tasks(_params(application_state), assignments)
        return TaskAssignment(tuple(assignments.values()))


def _has_less_to_do(share: Share, other: Share) -> bool:
    return share.load < other.load


def _params(state: ApplicationState) -> RackAwareOptimizationParams:
    configs = state.assignment_configs
    traffic, overlap = configs.rack_aware_traffic_cost, configs.rack_aware_non_overlap_cost
    return RackAwareOptimizationParams(
        state,
        traffic_cost=DEFAULT_STICKY_TRAFFIC_COST if traffic is None else traffic,
        non_overlap_cost=DEFAULT_STICKY_NON_OVERLAP_COST if overlap is None else overlap,
    )


def _stateless(state: ApplicationState) -> RackAwareOptimizationParams:
    return RackAwareOptimizationParams(
        state,
        tasks="stateless",
        traffic_cost=STATELESS_COSTS.traffic,
        non_overlap_cost=STATELESS_COSTS.overlap,
    )
