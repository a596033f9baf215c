"""The sticky assignor of Kafka Streams, as a model of how ``StickyPlacement`` and the swaps of racks go together."""

from __future__ import annotations

from pykstreams.runtime.membership.assignment.group import Group, GroupTasks
from pykstreams.runtime.membership.assignment.java_sets import in_hash_order
from pykstreams.runtime.membership.assignment.rack_aware import RackAware
from pykstreams.runtime.membership.assignment.sticky import (
    DEFAULT_STICKY_NON_OVERLAP_COST,
    DEFAULT_STICKY_TRAFFIC_COST,
    StickyPlacement,
)
from pykstreams.runtime.membership.assignment.swap import STATELESS_COSTS, Costs


def assign_sticky(group: Group) -> GroupTasks:
    """Shares out tasks as ``LegacyStickyTaskAssignor`` of Kafka Streams 4.3.1 does, task by task."""
    sticky = StickyPlacement(group)
    sticky.place_active(keep_all=False)
    racks = RackAware(group)
    costs = _costs(group)
    if racks.enabled:
        racks.swap_active(sticky.shares, sorted(sticky.stateful), costs)
        racks.swap_active(sticky.shares, sorted(sticky.tasks - sticky.stateful), STATELESS_COSTS)
    sticky.place_standby(in_hash_order(sticky.stateful))
    if racks.enabled and group.configs.num_standby_replicas:
        racks.swap_standby(sticky.shares, costs, lambda source, target, task, shares: True)
    return GroupTasks(sticky.shares.frozen(), probing=False)


def _costs(group: Group) -> Costs:
    traffic, overlap = group.configs.rack_aware_traffic_cost, group.configs.rack_aware_non_overlap_cost
    return Costs(
        DEFAULT_STICKY_TRAFFIC_COST if traffic is None else traffic,
        DEFAULT_STICKY_NON_OVERLAP_COST if overlap is None else overlap,
    )
