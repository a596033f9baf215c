"""When a member joins again."""

from __future__ import annotations

import uuid

import pytest

from pykstreams.core.errors import TaskAssignmentError
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignment_info import AT_ONCE, NEVER, AssignmentInfo
from pykstreams.runtime.membership.protocol.follow_up import FollowUp, follow_up
from pykstreams.runtime.membership.protocol.subscription_info import SubscriptionInfo

HERE, THERE = HostInfo("here", 1), HostInfo("there", 2)


def said(endpoint: str | None = None, version: int = 11) -> SubscriptionInfo:
    return SubscriptionInfo(ProcessId(uuid.UUID(int=1)), {}, endpoint, version=version)


@pytest.mark.parametrize("at_ms", [AT_ONCE, 12_345, NEVER])
def test_a_member_joins_when_the_leader_says(at_ms: int) -> None:
    assert follow_up(said(), AssignmentInfo(next_rebalance_ms=at_ms)) == FollowUp(at_ms, 11)


def test_another_version_is_taken_up_at_once() -> None:
    assert follow_up(said(), AssignmentInfo(version=9, common_version=9)) == FollowUp(AT_ONCE, 9)
    assert follow_up(said(version=9), AssignmentInfo(version=9, common_version=11)) == FollowUp(AT_ONCE, 11)


def test_a_member_whose_address_is_not_known_joins_at_once() -> None:
    assert follow_up(said("here:1"), AssignmentInfo(hosts={THERE: frozenset()})).at_ms == AT_ONCE
    assert follow_up(said("here:1"), AssignmentInfo(hosts={THERE: frozenset(), HERE: frozenset()})).at_ms == NEVER
    assert follow_up(said("here:1"), AssignmentInfo()).at_ms == NEVER
    assert follow_up(said(), AssignmentInfo(hosts={THERE: frozenset()})).at_ms == NEVER


def test_a_version_that_was_not_offered_is_refused() -> None:
    with pytest.raises(TaskAssignmentError, match="answered a subscription of version 9 with"):
        follow_up(said(version=9), AssignmentInfo(version=10, common_version=11))
