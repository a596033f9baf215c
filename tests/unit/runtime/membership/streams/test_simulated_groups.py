"""Members of a streams group come, go, fall silent, are slow and not heard, in random order: a task has one owner."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from pykstreams.core.errors import TaskMigratedError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.coordinator_requests import GroupSettings
from pykstreams.runtime.clients.streams_heartbeat import Joining
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.member_state import NoState
from pykstreams.runtime.membership.membership import Assignment, Lost
from pykstreams.runtime.membership.streams.membership import StreamsMembership
from pykstreams.runtime.membership.streams.session import StreamsSession
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.testing.clock import MockClock
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


class Instance:
    """An instance with one worker: it takes its tasks up where the group has committed, and counts records."""

    def __init__(
        self, number: int, coordinator: FakeStreamsCoordinator, clock: MockClock, meanwhile: Callable[[Instance], None]
    ) -> None:
        self.meanwhile = meanwhile
        self.name = f"instance-{number}"
        self.coordinator = coordinator
        self.positions: dict[TaskId, int] = {}
        self.revoked: frozenset[TaskId] = frozenset()
        self.requests = FakeRequests(coordinator, GROUP, TASKS)
        self.session = UnstartedSession(
            self.name,
            self.requests,
            Joining((), self.name, POLL_MS),
            member_id=self.name,
            clock=clock,
            max_poll_s=POLL_MS / 1000,
        )
        self.membership = StreamsMembership(
            self.session,
            FakeRequests(coordinator, GROUP, TASKS),
            prepare=lambda: LAYOUT,
            state=NoState(),
            hosts=GroupHosts(),
            clock=clock,
        )
        self.is_open = True
        self.membership.start(LAYOUT, self.on_revoked)

    @property
    def counts(self) -> bool:
        """Whether the group still goes on with this member."""
        return self.is_open and self.name in self.coordinator.members

    def on_revoked(self, tasks: frozenset[TaskId]) -> None:
        self.meanwhile(self)
        self.commit()
        self.revoked = tasks
        for task in tasks:
            del self.positions[task]

    def poll(self) -> None:
        try:
            change = self.membership.poll()
        except TaskMigratedError:
            return
        if isinstance(change, Lost):
            self.positions.clear()
            self.membership.ack(change)
        elif isinstance(change, Assignment):
            assert not change.active & self.revoked, "a task that stays was revoked"
            self.revoked = frozenset()
            for task in change.active - self.positions.keys():
                self.positions[task] = self.committed(task)
            assert self.positions.keys() == change.active
            self.session.step()
            self.membership.ack(change)
        for task in self.positions:
            self.positions[task] += 1

    def committed(self, task: TaskId) -> int:
        found = self.coordinator.offsets.get(min(INPUTS[task]))
        return found[0] if found else 0

    def commit(self) -> None:
        before = {task: self.committed(task) for task in self.positions}
        try:
            if self.membership.commit({min(INPUTS[task]): (at, "") for task, at in self.positions.items()}):
                assert all(position >= before[task] for task, position in self.positions.items()), "a stale commit"
        except TaskMigratedError:
            pass

    def close(self) -> None:
        self.commit()
        self.membership.close(leave=True)
        self.is_open = False


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loss = self.random.choice([0.0, 0.1, 0.4])
        self.clock = MockClock()
        self.coordinator = FakeStreamsCoordinator(self.clock, INPUTS, GROUP)
        self.number = 0
        self.instances: list[Instance] = []
        self.silent: dict[Instance, int] = {}
        self.busy: dict[Instance, int] = {}

    def add(self) -> None:
        self.instances.append(Instance(self.number, self.coordinator, self.clock, self.meanwhile))
        self.number += 1

    def act(self) -> None:
        one = self.random.choice(self.instances)
        match self.random.randrange(20):
            case 0 if len(self.instances) < 5:
                self.add()
            case 1 if len(self.instances) > 2:
                one.close()
                self.instances.remove(one)
            case 2:
                self.silent[one] = self.random.randrange(10, 120)
            case 3:
                self.busy[one] = self.random.randrange(10, 300)
        for one in self.instances:
            if self.random.random() < self.loss:
                one.requests.loses.add("heartbeat")
        self.turn()

    def meanwhile(self, committing: Instance) -> None:
        """Has the sessions of all go on, and the other workers, while one commits."""
        committing.session.step()
        for one in self.instances:
            if one is not committing:
                one.session.step()
                one.poll()
        self.check()

    def turn(self) -> None:
        self.clock.advance(self.random.choice([0, 50, 500, 2_000]))
        self.coordinator.pass_time()
        for one in self.random.sample(self.instances, len(self.instances)):
            if self.goes_on(self.silent, one):
                steps: list[Callable[[], object]] = [one.session.step]
                if self.goes_on(self.busy, one):
                    steps += [one.poll, one.commit] if self.random.random() < 0.3 else [one.poll]
                for step in self.random.sample(steps, len(steps)):
                    step()
                    self.check()

    def goes_on(self, waiting: dict[Instance, int], one: Instance) -> bool:
        turns = waiting.pop(one, 0)
        if turns > 1:
            waiting[one] = turns - 1
        return not turns

    def check(self) -> None:
        """Nobody works on a task of another, but those that the group has already given up."""
        owners: dict[TaskId, str] = {}
        for one in self.instances:
            if one.counts:
                for task in one.positions:
                    assert task not in owners, f"{task} is worked on by {owners[task]} and {one.name}"
                    owners[task] = one.name

    def settle(self) -> None:
        """Lets all go on until no task moves any more."""
        self.silent.clear()
        self.busy.clear()
        for _ in range(300):
            self.turn()
        before = self.coordinator.epoch
        for _ in range(20):
            self.turn()
        assert self.coordinator.is_settled
        assert self.coordinator.epoch == before


@pytest.mark.parametrize("seed", range(60))
def test_each_task_has_one_owner_whatever_happens_to_members(seed: int) -> None:
    world = World(seed)
    for _ in range(world.random.randrange(2, 5)):
        world.add()
    for _ in range(250):
        world.act()
    assert world.coordinator.epoch > 1
    world.settle()
    assert sorted(task for one in world.instances for task in one.positions) == sorted(INPUTS)
