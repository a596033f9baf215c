"""The members of a group with their tasks, as far as the protocol of the group tells them.

A classic group keeps what its leader gave each member, and what the member said when it joined last; neither is there
while the group rebalances. A streams group knows its tasks by itself, and no offsets of their state.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pykstreams.core.ids import TaskId
from pykstreams.runtime.clients.coordinators.streams_heartbeat import NO_TASKS, Tasks
from pykstreams.runtime.clients.inspection.group_tools import GroupMember, GroupView
from pykstreams.runtime.membership.protocol.assignment_info import decode_assignment
from pykstreams.runtime.membership.protocol.consumer_protocol import (
    decode_consumer_assignment,
    decode_consumer_subscription,
)
from pykstreams.runtime.membership.protocol.subscription_info import SubscriptionInfo, decode_subscription
from pykstreams.runtime.membership.protocol.user_data import MalformedUserDataError

log = logging.getLogger(__name__)

STABLE: Final = "Stable"


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a group.

    :param endpoint: its ``application.server``.
    :param tasks: ``None`` where they are not known. Classic groups do not tell warm-up from standby tasks.
    :param offset_sums: what it said of its state when it joined last; ``None`` where that is not known.
    """

    id: str
    client_id: str
    host: str
    process_id: str | None = None
    endpoint: str | None = None
    tasks: Tasks | None = None
    offset_sums: Mapping[TaskId, int] | None = None


def members_of(view: GroupView) -> tuple[Member, ...]:
    """Reads what the members of a group said and were given; sorted by client and member id."""
    found = (_streams(one) if view.protocol == "streams" else _classic(one, view.state) for one in view.members)
    return tuple(sorted(found, key=lambda one: (one.client_id, one.id)))


def _streams(member: GroupMember) -> Member:
    known = member.of_streams
    if known is None:
        return Member(member.member_id, member.client_id, member.host)
    return Member(
        member.member_id, member.client_id, member.host, known.process_id or None, known.endpoint, known.tasks
    )


def _classic(member: GroupMember, state: str) -> Member:
    said = _said(member)
    if said is None:
        return Member(member.member_id, member.client_id, member.host, tasks=_given(member, state))
    return Member(
        member.member_id,
        member.client_id,
        member.host,
        str(said.process_id),
        said.endpoint,
        _given(member, state),
        said.offset_sums,
    )


def _said(member: GroupMember) -> SubscriptionInfo | None:
    if not member.said:
        return None
    try:
        found = decode_subscription(decode_consumer_subscription(member.said).user_data)
    except MalformedUserDataError as error:
        log.warning("what member %s says of itself cannot be read: %s", member.member_id, error)
        return None
    return found if isinstance(found, SubscriptionInfo) else None


def _given(member: GroupMember, state: str) -> Tasks | None:
    if not member.given:
        return NO_TASKS if state == STABLE else None
    try:
        found = decode_assignment(decode_consumer_assignment(member.given).user_data)
    except MalformedUserDataError as error:
        log.warning("the tasks of member %s cannot be read: %s", member.member_id, error)
        return None
    return Tasks(frozenset(found.active), frozenset(found.standby))
