"""Members of a group come, go, fall silent and are slow, in any order: no task has two workers, and none is left."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Collection, Mapping
from random import Random

import pytest

from pykstreams.core.errors import TaskMigratedError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.coordinators.coordinator_requests import GroupSettings
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.assignment.group import Racks
from pykstreams.runtime.membership.classic.leadership import Leadership
from pykstreams.runtime.membership.classic.membership import ClassicMembership
from pykstreams.runtime.membership.classic.session import ClassicSession
from pykstreams.runtime.membership.classic.subscriptions import Introduction
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.membership import Assignment, Lost
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.subscription_info import RUNNING
from pykstreams.runtime.membership.session_times import SessionTimes
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.testing.clock import MockClock
from pykstreams.topology.plan import InternalTopic
from tests.unit.runtime.membership.classic.fake_coordinator import FakeCoordinator, FakeRequests, GroupState
from tests.unit.runtime.plans import part, plan, source

PARTITIONS = 5
PLAN = plan(
    part(0, source("A", "in")),
    part(1, source("B", "words"), changelogs={"counts": InternalTopic("log", "changelog", PARTITIONS, {})}),
)
LAYOUT = TopicLayout(
    {"in": PARTITIONS, "words": PARTITIONS, "log": PARTITIONS},
    {
        TaskId(number, partition): frozenset({TopicPartition(topic, partition)})
        for number, topic in ((0, "in"), (1, "words"))
        for partition in range(PARTITIONS)
    },
)
QUIET_STEPS = 400
HEARTBEAT_S = 3.0
POLL_LIMIT_S = 300.0
SETTINGS = GroupSettings("app", None, session_timeout_ms=10_000, rebalance_timeout_ms=60_000)


class Cluster:
    """A cluster whose changelogs have many rows, so that a task moves only to who has caught up."""

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> Mapping[TopicPartition, int]:
        return dict.fromkeys(partitions, 50_000)

    def racks(self, partitions: Collection[TopicPartition]) -> Racks:
        raise AssertionError("no strategy wants racks")


class SteppedSession(ClassicSession):
    """A session without a thread: the test goes through its steps."""

    def start(self) -> None:
        """The first step is up to the test."""


class SimulatedMember:
    """A worker with its session, of which now the one and now the other goes on; it is also its own state."""

    def __init__(self, group: FakeCoordinator, clock: MockClock, everybody: list[SimulatedMember], number: int) -> None:
        self.group, self.clock, self.everybody = group, clock, everybody
        self.works: frozenset[TaskId] = frozenset()
        self.standby: dict[TaskId, int] = {}
        self.silent_until_s = 0.0
        self.revoked: Counter[TaskId] = Counter()
        process_id = ProcessId(uuid.UUID(int=number))
        requests = FakeRequests(group, SETTINGS)
        leadership = Leadership(
            PLAN,
            prepare=lambda: LAYOUT,
            cluster=Cluster(),
            committed=requests.committed,
            ends_s=1,
            configs=AssignmentConfigs(num_standby_replicas=1, probing_rebalance_interval_ms=60_000),
            process_id=process_id,
            clock=clock,
        )
        self.session = SteppedSession(
            f"member {number}",
            requests,
            leadership.assign,
            clock=clock,
            times=SessionTimes(HEARTBEAT_S, SETTINGS.session_timeout_ms / 1000),
            max_poll_s=POLL_LIMIT_S,
            is_static=False,
        )
        self.membership = ClassicMembership(
            self.session,
            requests,
            Introduction(process_id),
            stateful=frozenset({1}),
            prepare=lambda: LAYOUT,
            state=self,
            hosts=GroupHosts(),
            clock=clock,
        )
        self.membership.start(LAYOUT, self._give_up)

    def begin(self) -> None:
        """Nothing is on disk."""

    def offset_sums(self) -> Mapping[TaskId, int]:
        running = {task: RUNNING for task in self.works if task.subtopology == 1}
        return {**self.standby, **running}

    def assigned(self, standby: Mapping[TaskId, frozenset[TopicPartition]], active: Collection[TaskId]) -> None:
        self.standby = dict.fromkeys(standby, 50_000)  # they catch up at once

    def lost(self) -> None:
        """Standby tasks stay."""

    def end(self) -> None:
        """Nothing was opened."""

    @property
    def counts(self) -> bool:
        """Whether the group still has it."""
        return self.session.member_id in self.group.members

    def is_silent(self) -> bool:
        return self.clock.monotonic() < self.silent_until_s

    def go_on(self, random: Random) -> None:
        """One step of its session, or of its worker."""
        if self.is_silent():
            return
        if random.random() < 0.5:
            self.session.step()
        else:
            self._turn(random)

    def _turn(self, random: Random) -> None:
        try:
            change = self.membership.poll()
            if isinstance(change, Lost):
                self.works = frozenset()
                self.membership.ack(change)
            elif isinstance(change, Assignment):
                self.works = change.active
                self.membership.ack(change)
            if random.random() < 0.3 and self.membership.may_commit():
                self.commit(self.works)
        except TaskMigratedError:
            self.works = frozenset()

    def commit(self, tasks: Collection[TaskId]) -> None:
        offsets = {place: (1, "") for task in tasks for place in LAYOUT.inputs[task]}
        if self.membership.commit(offsets) and tasks:
            others = [one for one in self.everybody if one is not self and one.counts]
            assert not any(one.works & set(tasks) for one in others), "a commit for a task of somebody else counted"

    def _give_up(self, tasks: frozenset[TaskId]) -> None:
        self.revoked.update(tasks)
        self.commit(tasks)
        self.works -= tasks


class Simulation:
    """One run; what happens next is drawn."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.clock = MockClock(0)
        self.group = FakeCoordinator(self.clock)
        self.members: list[SimulatedMember] = []
        self.made = 0

    def run(self, steps: int) -> None:
        self.start()
        for _ in range(steps):
            self.happen()
            self.check()

    def start(self) -> None:
        self.made += 1
        self.members.append(SimulatedMember(self.group, self.clock, self.members, self.made))

    def happen(self) -> None:
        drawn = self.random.random()
        member = self.random.choice(self.members) if self.members else None
        if member is None or (drawn < 0.01 and len(self.members) < 5):
            self.start()
        elif drawn < 0.015 and len(self.members) > 1:
            member.membership.close(leave=self.random.random() < 0.5)
            self.members.remove(member)
        elif drawn < 0.02:
            member.silent_until_s = self.clock.monotonic() + self.random.choice((5, 15, 40))
        elif drawn < 0.15:
            self.pass_time(self.random.choice((100, 500, 1_000)))
        else:
            member.go_on(self.random)

    def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        self.group.pass_time()

    def check(self) -> None:
        """No task is worked on by two members that the group has."""
        working = Counter(task for one in self.members if one.counts for task in one.works)
        assert not [task for task, workers in working.items() if workers > 1], working

    def come_to_rest(self) -> None:
        """Nothing happens any more but that all go on; time passes."""
        for member in self.members:
            member.silent_until_s = 0.0
        for _ in range(QUIET_STEPS):
            self.pass_time(1_000)
            for member in self.members:
                for _ in range(4):
                    member.go_on(self.random)
                    self.check()


@pytest.mark.parametrize("seed", range(40))
def test_no_task_has_two_workers_and_in_the_end_each_has_one(seed: int) -> None:
    simulation = Simulation(seed)

    simulation.run(steps=1_500)
    simulation.come_to_rest()

    assert simulation.group.state is GroupState.STABLE
    assert sorted(task for one in simulation.members for task in one.works) == sorted(LAYOUT.inputs)


@pytest.mark.parametrize("seed", range(10))
def test_a_group_in_which_nothing_happens_shares_out_nothing(seed: int) -> None:
    simulation = Simulation(seed)
    for _ in range(3):
        simulation.start()
    simulation.come_to_rest()
    generation, revoked = simulation.group.generation, [one.revoked.total() for one in simulation.members]

    simulation.come_to_rest()

    assert simulation.group.generation == generation
    assert [one.revoked.total() for one in simulation.members] == revoked


@pytest.mark.parametrize("seed", range(10))
def test_a_member_that_joins_gets_its_share(seed: int) -> None:
    simulation = Simulation(seed)
    for _ in range(2):
        simulation.start()
    simulation.come_to_rest()

    simulation.start()
    simulation.come_to_rest()

    loads = [len(one.works) for one in simulation.members]
    assert max(loads) - min(loads) <= 1
