"""The coordinator of a classic group as brokers have it, without a network: a join or sync that must wait raises.

Invariant: a member counts as long as it is in ``members``; what it may do is decided by the generation it names.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from confluent_kafka import KafkaError

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.clients.group_coordinator import GroupSettings, Joined, MemberOf
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.testing.clock import MockClock

SETTINGS = GroupSettings("app", None, session_timeout_ms=10_000, rebalance_timeout_ms=60_000)


class MustWaitError(BaseException):
    """The answer depends on others: ask again. No ``Exception``, so that nobody takes it for a failure."""


class Phase(Enum):
    EMPTY = "empty"
    PREPARING = "preparing"
    COMPLETING = "completing"
    STABLE = "stable"


@dataclass
class _Member:
    subscription: bytes
    seen_s: float
    joins: bool = True
    joined: Joined | None = None


class FakeGroup:
    """One group; the clock is moved by the test."""

    def __init__(self, clock: MockClock) -> None:
        self.clock = clock
        self.phase = Phase.EMPTY
        self.generation = 0
        self.rebalances = 0
        self.members: dict[str, _Member] = {}
        self.offsets: dict[TopicPartition, tuple[int, str]] = {}
        self._assignments: Mapping[str, bytes] = {}
        self._leader = ""
        self._made = 0
        self._deadline_s = 0.0

    def join(self, member_id: str, subscription: bytes) -> Joined:
        if member_id not in self.members:
            raise failure(KafkaError.UNKNOWN_MEMBER_ID)
        member = self._seen(member_id)
        if member.joined is None:
            if not member.joins:
                member.joins, member.subscription = True, subscription
                self._prepare()
            self._complete()
        if member.joined is None:
            raise MustWaitError
        return member.joined

    def new_member(self, subscription: bytes) -> str:
        self._made += 1
        member_id = f"member-{self._made}"
        self.members[member_id] = _Member(subscription, self.clock.monotonic())
        self._prepare()
        return member_id

    def sync(self, member: MemberOf, assignments: Mapping[str, bytes]) -> bytes:
        found = self._checked(member)
        if self.phase is Phase.PREPARING:
            found.joined = None
            raise failure(KafkaError.REBALANCE_IN_PROGRESS)
        if member.member_id == self._leader:
            self._assignments, self.phase = assignments, Phase.STABLE
        if self.phase is not Phase.STABLE:
            raise MustWaitError
        found.joined = None
        return self._assignments[member.member_id]

    def heartbeat(self, member: MemberOf) -> None:
        self._checked(member)
        if self.phase is Phase.PREPARING:
            raise failure(KafkaError.REBALANCE_IN_PROGRESS)

    def commit(self, member: MemberOf, offsets: Offsets) -> None:
        self._checked(member)
        if self.phase is Phase.COMPLETING:
            raise failure(KafkaError.REBALANCE_IN_PROGRESS)
        self.offsets.update(offsets)

    def leave(self, member_id: str) -> None:
        if self.members.pop(member_id, None) is not None:
            self._prepare()
            self._complete()

    def expire(self) -> None:
        """Puts out members that were silent for too long, or have not joined in time."""
        now = self.clock.monotonic()
        late = self.phase is Phase.PREPARING and now > self._deadline_s
        for member_id, member in list(self.members.items()):
            silent = now - member.seen_s > SETTINGS.session_timeout_ms / 1000
            waits = member.joins and self.phase is Phase.PREPARING  # who waits for others need not be heard
            if (silent and not waits) or (late and not member.joins):
                self.leave(member_id)

    def _prepare(self) -> None:
        if self.phase is not Phase.PREPARING:
            self.rebalances += 1
            self.phase = Phase.PREPARING
            self._deadline_s = self.clock.monotonic() + SETTINGS.rebalance_timeout_ms / 1000
            for member in self.members.values():
                # those that have joined, but were not given anything yet, join anew when they hear of it
                member.joined = None

    def _complete(self) -> None:
        if self.phase is not Phase.PREPARING or not all(one.joins for one in self.members.values()):
            return
        self.generation += 1
        self.phase = Phase.COMPLETING if self.members else Phase.EMPTY
        if self._leader not in self.members:
            self._leader = min(self.members, default="")
        subscriptions = {name: one.subscription for name, one in self.members.items()}
        for name, one in self.members.items():
            one.joins, one.seen_s = False, self.clock.monotonic()
            leads = name == self._leader
            one.joined = Joined(MemberOf(self.generation, name), self._leader, subscriptions if leads else None)

    def _checked(self, member: MemberOf) -> _Member:
        found = self.members.get(member.member_id)
        if found is None:
            raise failure(KafkaError.UNKNOWN_MEMBER_ID)
        if member.generation != self.generation:
            raise failure(KafkaError.ILLEGAL_GENERATION)
        return self._seen(member.member_id)

    def _seen(self, member_id: str) -> _Member:
        self.members[member_id].seen_s = self.clock.monotonic()
        return self.members[member_id]


class FakeRequests:
    """The requests of one member, for its session and its worker alike."""

    def __init__(self, group: FakeGroup) -> None:
        self.group_state = group
        self._asked_as = ""

    @property
    def group(self) -> GroupSettings:
        return SETTINGS

    def join(self, member_id: str, subscription: bytes) -> Joined:
        if not member_id and self._asked_as not in self.group_state.members:
            self._asked_as = self.group_state.new_member(subscription)
        return self.group_state.join(member_id or self._asked_as, subscription)

    def sync(self, member: MemberOf, assignments: Mapping[str, bytes]) -> bytes:
        self._asked_as = ""
        return self.group_state.sync(member, assignments)

    def heartbeat(self, member: MemberOf) -> None:
        self.group_state.heartbeat(member)

    def commit(self, member: MemberOf, offsets: Offsets) -> None:
        self.group_state.commit(member, offsets)

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets:
        return {place: self.group_state.offsets[place] for place in partitions if place in self.group_state.offsets}

    def leave(self, member_id: str, reason: str) -> None:
        self.group_state.leave(member_id)

    def close(self) -> None:
        """Nothing is open."""


def failure(code: int) -> GroupError:
    return GroupError(KafkaError(code))
