"""Leading a group: from what the members say to what each of them gets (``StreamsPartitionAssignor.assign``, 4.3.1)."""

from __future__ import annotations

from collections.abc import Callable

from pykstreams.runtime.membership.assignment.check import MemberAssignment
from pykstreams.runtime.membership.assignment.group import Group, GroupTasks
from pykstreams.runtime.membership.assignment.high_availability import assign_high_availability
from pykstreams.runtime.membership.assignment.joined_group import JoinedGroup
from pykstreams.runtime.membership.assignment.sticky import assign_previous
from pykstreams.runtime.membership.process_id import ProcessId

Assign = Callable[[Group], GroupTasks]


def lead(
    joined: JoinedGroup, *, process_id: ProcessId, now_ms: int, assign: Assign = assign_high_availability
) -> dict[str, MemberAssignment]:
    """Returns the assignment of each member; ``WrongAssignmentError``: it may not be sent.

    :param process_id: the instance of the leader, which probes again when tasks wait for warm-ups.
    :param assign: what shares out the tasks among instances, when the lags are known.
    """
    if not joined.group.clients:
        return dict(joined.refused)
    decided = assign(joined.group) if joined.lags_known else assign_previous(joined.group)
    probe_at = now_ms + joined.group.configs.probing_rebalance_interval_ms
    given = joined.assignments(decided.clients, {process_id: probe_at} if decided.probing else {})
    joined.check(given)
    return {**given, **joined.refused}
