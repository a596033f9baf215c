"""Requests to the coordinator of a classic group: join, sync, heartbeat, leave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

from pykstreams.runtime.clients.coordinators.coordinator_requests import CoordinatorRequests, MemberOf
from pykstreams.runtime.clients.errors import GroupError

PROTOCOL_TYPE: Final = "consumer"
PROTOCOL: Final = "stream"
"""The names under which Kafka Streams joins (``StreamsPartitionAssignor.name``)."""

_GRACE_S: Final = 5.0
"""How much longer an answer is waited for than the group waits for others (``AbstractCoordinator``, 4.3.1, of joins):
for the slowest member up to the rebalance time-out, and for a leader that falls silent up to its session."""


@dataclass(frozen=True, slots=True)
class Joined:
    """An answer to a join.

    :param subscriptions: of all members, where this one leads; ``None`` where another one does, or where the
        assignment that there is holds on (KIP-814).
    """

    member: MemberOf
    leader: str
    subscriptions: Mapping[str, bytes] | None


@dataclass(frozen=True, slots=True)
class NamedFirst:
    """An answer to a first join: the id under which to join, so that a join that gets lost leaves no second member."""

    member_id: str


class GroupCoordinator(CoordinatorRequests):
    """The coordinator of a classic group."""

    def join(self, member_id: str, subscription: bytes) -> Joined | NamedFirst:
        """Joins, or joins again; waits for the other members up to the rebalance time-out.

        :param member_id: the one of the last time; empty for the first.
        """
        answer = self._join(member_id, subscription)
        if answer.error_code == KafkaError.MEMBER_ID_REQUIRED:
            return NamedFirst(answer.member_id)
        self.raise_for(answer.error_code)
        leads = answer.leader == answer.member_id and not answer.skip_assignment
        return Joined(
            MemberOf(answer.generation_id, answer.member_id),
            answer.leader,
            {one.member_id: bytes(one.metadata) for one in answer.members} if leads else None,
        )

    def _join(self, member_id: str, subscription: bytes) -> Any:
        return self.ask(
            JoinGroupRequest(
                max_version=9,
                group_id=self.group.group,
                session_timeout_ms=self.group.session_timeout_ms,
                rebalance_timeout_ms=self.group.rebalance_timeout_ms,
                member_id=member_id,
                group_instance_id=self.group.instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=[(PROTOCOL, subscription)],
                reason="",
            ),
            self.group.rebalance_timeout_ms / 1000 + _GRACE_S,
        )

    def sync(self, member: MemberOf, assignments: Mapping[str, bytes]) -> bytes:
        """Brings the assignments of all members, or nothing where another one leads; returns this member's own.

        A leader of Java says meanwhile that it lives, and may take longer: this member joins again then, and waits on
        in the same generation.
        """
        answer = self.ask(
            SyncGroupRequest(
                max_version=5,
                group_id=self.group.group,
                generation_id=member.generation,
                member_id=member.member_id,
                group_instance_id=self.group.instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=PROTOCOL,
                assignments=list(assignments.items()),
            ),
            self.group.session_timeout_ms / 1000 + _GRACE_S,
        )
        if answer.error_code == KafkaError.INVALID_REQUEST:
            # librdkafka's own cluster answers so to a follower that asks after the leader has brought the assignments
            raise GroupError(KafkaError(KafkaError.REBALANCE_IN_PROGRESS))
        self.raise_for(answer.error_code)
        return bytes(answer.assignment or b"")

    def heartbeat(self, member: MemberOf) -> None:
        """Confirms that this member is alive; ``REBALANCE_IN_PROGRESS``: it is to join again."""
        answer = self.ask(
            HeartbeatRequest(
                max_version=4,
                group_id=self.group.group,
                generation_id=member.generation,
                member_id=member.member_id,
                group_instance_id=self.group.instance_id,
            )
        )
        self.raise_for(answer.error_code)

    def leave(self, member_id: str, reason: str) -> None:
        """Leaves the group, a static member too, so that others get its tasks at once."""
        answer = self.ask(
            LeaveGroupRequest(
                max_version=5,
                group_id=self.group.group,
                member_id=member_id,
                members=[
                    LeaveGroupRequest.MemberIdentity(
                        member_id=member_id, group_instance_id=self.group.instance_id, reason=reason
                    )
                ],
            )
        )
        self.raise_for(answer.error_code)
        for one in answer.members or ():
            self.raise_for(one.error_code)
