"""A model of a coordinator of a classic group (``GroupMetadataManager.classicGroupJoin`` and its kind, 4.3.1).

It runs in one thread. Where a broker keeps a request until others have come, the request here times out, and the
answer is there when the session asks again: a join of a follower is answered when the leader has brought the
assignments, so that its sync need not wait.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from confluent_kafka import KafkaError

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.coordinators.coordinator_requests import GroupSettings, MemberOf
from pykstreams.runtime.clients.coordinators.group_coordinator import Joined
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.clients.positions import CommittedOffsets, Offsets
from tests.unit.runtime.membership.group_errors import NO_ANSWER, group_error


class GroupState(Enum):
    EMPTY = auto()
    PREPARING = auto()
    COMPLETING = auto()
    STABLE = auto()


@dataclass(slots=True)
class Place:
    """A member as the coordinator knows it."""

    settings: GroupSettings
    subscription: bytes
    expires_at: float
    waits: bool = False
    """Whether its join is kept until the rebalance is over."""


class FakeCoordinator:
    """The coordinator of one group."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ids = 0
        self._ready_at = 0.0
        self._instances: dict[str, str] = {}
        self._assignments: dict[str, bytes] = {}
        self.fenced: set[str] = set()
        self.members: dict[str, Place] = {}
        self.state = GroupState.EMPTY
        self.generation = 0
        self.leader = ""
        self.offsets: dict[TopicPartition, tuple[int, str]] = {}

    def pass_time(self) -> None:
        """Removes those who have been silent for too long, and ends a wait for those who do not join."""
        now = self._clock.monotonic()
        for member, place in list(self.members.items()):
            if not self._is_kept(member, place) and now > place.expires_at:
                self.remove(member)
        if self.state is GroupState.PREPARING and now > self._ready_at:
            for member, place in list(self.members.items()):
                if not place.waits:
                    self._forget(member)
            self._complete_if_all_joined()

    def join(self, member: str, settings: GroupSettings, subscription: bytes) -> str:
        """Takes note of a join, and returns the id of the member."""
        instance = settings.instance_id
        if instance is not None and not member and instance in self._instances:
            return self._replace(self._instances[instance], settings, subscription)
        if member:
            self.check_known(member)
        else:
            self._ids += 1
            member = f"member-{self._ids:03d}"
            self.members[member] = Place(settings, b"", 0.0)
            if instance is not None:
                self._instances[instance] = member
        place = self.members[member]
        is_same = place.subscription == subscription
        place.subscription = subscription
        if self.state is GroupState.STABLE and is_same and member != self.leader:
            return member
        place.waits = True
        self._prepare()
        self._complete_if_all_joined()
        return member

    def sync(self, member: MemberOf, assignments: Mapping[str, bytes]) -> bytes:
        self._check(member)
        if self.state is GroupState.PREPARING:
            raise group_error(KafkaError.REBALANCE_IN_PROGRESS)
        if self.state is GroupState.COMPLETING and member.member_id == self.leader:
            self._assignments = dict(assignments)
            self.state = GroupState.STABLE
            for name in self.members:
                self._is_alive(name)
        assert self.state is GroupState.STABLE, "the join of a follower is answered when the leader has synced"
        return self._assignments.get(member.member_id, b"")

    def heartbeat(self, member: MemberOf) -> None:
        self._check(member)
        self._is_alive(member.member_id)
        if self.state is GroupState.PREPARING:
            raise group_error(KafkaError.REBALANCE_IN_PROGRESS)

    def commit(self, member: MemberOf, offsets: Offsets) -> None:
        self._check(member)
        if self.state is GroupState.COMPLETING:
            raise group_error(KafkaError.REBALANCE_IN_PROGRESS)
        self._is_alive(member.member_id)
        self.offsets.update(offsets)

    def remove(self, member: str) -> None:
        """Goes on without a member; those that are left share its tasks."""
        self._forget(member)
        if not self.members:
            self.state = GroupState.EMPTY
        else:
            self._prepare()
            self._complete_if_all_joined()

    def check_known(self, member: str) -> None:
        if member in self.fenced:
            raise group_error(KafkaError.FENCED_INSTANCE_ID)
        if member not in self.members:
            raise group_error(KafkaError.UNKNOWN_MEMBER_ID)

    def _check(self, member: MemberOf) -> None:
        self.check_known(member.member_id)
        if member.generation != self.generation:
            raise group_error(KafkaError.ILLEGAL_GENERATION)

    def _is_kept(self, member: str, place: Place) -> bool:
        return place.waits or (self.state is GroupState.COMPLETING and member != self.leader)

    def _is_alive(self, member: str) -> None:
        place = self.members[member]
        place.expires_at = self._clock.monotonic() + place.settings.session_timeout_ms / 1000

    def _replace(self, old: str, settings: GroupSettings, subscription: bytes) -> str:
        """A static member has come back: it has the place of the former one, which is fenced."""
        assert settings.instance_id is not None
        self._ids += 1
        new = f"{settings.instance_id}-{self._ids:03d}"
        self.fenced.add(old)
        self.members[new] = self.members.pop(old)
        self.members[new].subscription = subscription
        self._instances[settings.instance_id] = new
        if self.leader == old:
            self.leader = new
        if old in self._assignments:
            self._assignments[new] = self._assignments.pop(old)
        if self.state is GroupState.STABLE:
            self._is_alive(new)
        else:
            self.members[new].waits = True
            self._prepare()
            self._complete_if_all_joined()
        return new

    def _forget(self, member: str) -> None:
        place = self.members.pop(member)
        if place.settings.instance_id is not None:
            del self._instances[place.settings.instance_id]

    def _prepare(self) -> None:
        if self.state is not GroupState.PREPARING:
            self.state = GroupState.PREPARING
            longest = max(place.settings.rebalance_timeout_ms for place in self.members.values())
            self._ready_at = self._clock.monotonic() + longest / 1000

    def _complete_if_all_joined(self) -> None:
        if not self.members:
            self.state = GroupState.EMPTY
        elif self.state is GroupState.PREPARING and all(place.waits for place in self.members.values()):
            self.generation += 1
            self.state = GroupState.COMPLETING
            self._assignments = {}
            if self.leader not in self.members:
                self.leader = next(iter(self.members))
            for member, place in self.members.items():
                place.waits = False
                self._is_alive(member)


class FakeRequests:
    """The connection of one member to the coordinator; ``loses`` names requests whose answers get lost."""

    def __init__(self, coordinator: FakeCoordinator, group: GroupSettings) -> None:
        self.group = group
        self._coordinator = coordinator
        self._given = ""
        self._asks = False
        self.loses: set[str] = set()
        self.is_closed = False

    def join(self, member_id: str, subscription: bytes) -> Joined:
        self._begin("join")
        group = self._coordinator
        member = member_id or self._given
        try:
            if member:
                group.check_known(member)
            is_kept = self._asks and (group.members[member].waits or group.state is not GroupState.PREPARING)
            if not is_kept:
                member = self._given = group.join(member, self.group, subscription)
                self._asks = True
        except GroupError:
            self._asks, self._given = False, ""
            raise
        leads = member == group.leader and group.state is GroupState.COMPLETING
        if not leads and group.state is not GroupState.STABLE:
            raise group_error(NO_ANSWER)
        self._asks, self._given = False, ""
        subscriptions = {name: place.subscription for name, place in group.members.items()} if leads else None
        return Joined(MemberOf(group.generation, member), group.leader, subscriptions)

    def sync(self, member: MemberOf, assignments: Mapping[str, bytes]) -> bytes:
        self._begin("sync")
        return self._coordinator.sync(member, assignments)

    def heartbeat(self, member: MemberOf) -> None:
        self._begin("heartbeat")
        self._coordinator.heartbeat(member)

    def leave(self, member_id: str, reason: str) -> None:
        self._begin("leave")
        self._coordinator.check_known(member_id)
        self._coordinator.remove(member_id)

    def commit(self, member: MemberOf, offsets: Offsets) -> None:
        self._begin("commit")
        self._coordinator.commit(member, offsets)

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets:
        return self.settled(partitions).offsets

    def settled(self, partitions: Collection[TopicPartition]) -> CommittedOffsets:
        self._begin("committed")
        return CommittedOffsets(
            {place: found for place, found in self._coordinator.offsets.items() if place in partitions}
        )

    def close(self) -> None:
        self.is_closed = True

    def _begin(self, request: str) -> None:
        self._coordinator.pass_time()
        if request in self.loses:
            self.loses.remove(request)
            raise group_error(NO_ANSWER)
