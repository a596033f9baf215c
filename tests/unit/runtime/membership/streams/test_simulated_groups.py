"""Members of a streams group come, go, fall silent, are slow and not heard, in random order: a task has one owner."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.coordinators.coordinator_requests import GroupSettings
from pykstreams.runtime.clients.coordinators.streams_heartbeat import Joining
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.member_state import NoState
from pykstreams.runtime.membership.streams.membership import StreamsMembership
from pykstreams.runtime.membership.streams.session import StreamsSession
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.testing.clock import MockClock
from tests.unit.runtime.membership.simulated_group import Instance, SimulatedGroup
from tests.unit.runtime.membership.streams.fake_coordinator import FakeRequests, FakeStreamsCoordinator

INPUTS = {
    **{TaskId(0, n): frozenset({TopicPartition("orders", n)}) for n in range(6)},
    **{TaskId(1, n): frozenset({TopicPartition("clicks", n)}) for n in range(4)},
}
TASKS = {place: task for task, places in INPUTS.items() for place in places}
LAYOUT = TopicLayout({"orders": 6, "clicks": 4}, INPUTS)
SESSION_MS, POLL_MS = 10_000, 30_000
GROUP = GroupSettings("app", None, SESSION_MS, POLL_MS)


class UnstartedSession(StreamsSession):
    """A session that the test steps, instead of a thread."""

    def start(self) -> None:
        pass


class Member(Instance):
    """A member of a streams group.

    :param meanwhile: what the rest of the group does while this one commits.
    """

    def __init__(
        self, number: int, coordinator: FakeStreamsCoordinator, clock: MockClock, meanwhile: Callable[[Member], None]
    ) -> None:
        super().__init__(number, coordinator, INPUTS)
        self.meanwhile = meanwhile
        self.is_committing = False
        self.coordinator = coordinator
        self.requests = FakeRequests(coordinator, GROUP, TASKS)
        self.session = UnstartedSession(
            self.name,
            self.requests,
            Joining((), self.name, POLL_MS),
            member_id=self.name,
            clock=clock,
            max_poll_s=POLL_MS / 1000,
            session_s=SESSION_MS / 1000,
        )
        self.membership = StreamsMembership(
            self.session,
            FakeRequests(coordinator, GROUP, TASKS),
            prepare=lambda: LAYOUT,
            state=NoState(),
            hosts=GroupHosts(),
            clock=clock,
        )
        self.membership.start(LAYOUT, self.on_revoked)

    @property
    def counts(self) -> bool:
        return self.is_open and self.name in self.coordinator.members

    def on_revoked(self, tasks: frozenset[TaskId]) -> None:
        assert tasks <= self.positions.keys()
        self.is_committing = True
        self.meanwhile(self)
        self.is_committing = False
        super().on_revoked(tasks)

    def before_ack(self) -> None:
        self.session.step()


class Group(SimulatedGroup[Member]):
    def __init__(self, seed: int) -> None:
        chance, clock = random.Random(seed), MockClock()
        self.coordinator = FakeStreamsCoordinator(clock, INPUTS, GROUP)
        super().__init__(chance, clock, self.coordinator)
        self.loss = chance.choice([0.0, 0.1, 0.4])

    def make(self) -> Member:
        return Member(self.number, self.coordinator, self.clock, self.meanwhile)

    def lose(self, one: Member, kind: int) -> None:
        for member in self.instances:
            if self.random.random() < self.loss:
                member.requests.loses.add(self.random.choice(["heartbeat", "assigned"]))

    def meanwhile(self, committing: Member) -> None:
        """Has the sessions of all go on, and the other workers, while one commits."""
        committing.session.step()
        for one in self.instances:
            if one is not committing:
                one.session.step()
                if not one.is_committing:  # a worker does one thing at a time
                    one.poll()
        self.check()


@pytest.mark.parametrize("seed", range(60))
def test_each_task_has_one_owner_whatever_happens_to_members(seed: int) -> None:
    group = Group(seed)
    for _ in range(group.random.randrange(2, 5)):
        group.add()
    for _ in range(250):
        group.act()
    assert group.coordinator.epoch > 1
    group.settle(300)
    before = group.coordinator.epoch
    group.settle(20)
    assert group.coordinator.is_settled
    assert group.coordinator.epoch == before
    assert group.worked_on() == sorted(INPUTS)
