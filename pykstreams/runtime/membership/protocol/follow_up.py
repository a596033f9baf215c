"""When a member joins again after an assignment, and in which version it then writes (``StreamsPartitionAssignor``)."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.membership.protocol.assignment_info import AT_ONCE, AssignmentInfo
from pykstreams.runtime.membership.protocol.subscription_info import SubscriptionInfo
from pykstreams.runtime.membership.protocol.versions import adopted_version


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The next time that a member joins.

    :param at_ms: ``AT_ONCE``, ``NEVER``, or when the leader wants it; revoked partitions are another reason to join.
    :param version: the version of the next subscription.
    """

    at_ms: int
    version: int


def follow_up(sent: SubscriptionInfo, received: AssignmentInfo) -> FollowUp:
    """Returns when to join again; ``TaskAssignmentError``: the leader speaks in a version that was not offered.

    A member joins at once to take up another version, and when the others do not know its address: a static member
    that comes back with another one is given its old assignment.
    """
    version = adopted_version(sent.version, received.version, received.common_version)
    if version is not None:
        return FollowUp(AT_ONCE, version)
    here = HostInfo.from_endpoint(sent.endpoint)
    unknown = here is not None and bool(received.hosts) and here not in received.hosts
    return FollowUp(AT_ONCE if unknown else received.next_rebalance_ms, sent.version)
