"""Members of a group that come, go, fall silent and are slow, in random order: nobody works on another's task."""

from __future__ import annotations

import random
import uuid
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykstreams.assignment import (
    ApplicationState,
    AssignedTask,
    KafkaStreamsAssignment,
    TaskAssignment,
    TaskAssignor,
    TaskType,
)
from pykstreams.core.errors import TaskAssignmentError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.coordinators.coordinator_requests import GroupSettings
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.classic.leadership import Leadership
from pykstreams.runtime.membership.classic.membership import ClassicMembership
from pykstreams.runtime.membership.classic.session import ClassicSession
from pykstreams.runtime.membership.classic.subscriptions import Introduction
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.session_times import SessionTimes
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.testing.clock import MockClock
from tests.unit.runtime.membership.classic.fake_coordinator import FakeCoordinator, FakeRequests, GroupState
from tests.unit.runtime.membership.simulated_group import Instance, SimulatedGroup

COUNTS = {"orders": 6, "prices": 6, "clicks": 4}
INPUTS = {
    **{TaskId(0, n): frozenset({TopicPartition("orders", n), TopicPartition("prices", n)}) for n in range(6)},
    **{TaskId(1, n): frozenset({TopicPartition("clicks", n)}) for n in range(4)},
}
LAYOUT = TopicLayout(COUNTS, INPUTS)
PLAN = cast(
    "Any",
    SimpleNamespace(
        subtopologies=[
            SimpleNamespace(id=0, changelogs={"sums": "app-sums-changelog"}, stores={"sums": None}),
            SimpleNamespace(id=1, changelogs={}, stores={}),
        ]
    ),
)
SESSION_MS, POLL_MS, PROBE_MS = 10_000, 30_000, 60_000


class EmptyCluster:
    def end_offsets(self, partitions: Any, *, timeout_s: float | None = None) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def racks(self, partitions: Any) -> dict[TopicPartition, frozenset[str]]:
        return {}


class ByWhim(TaskAssignor):
    """Throws the dice anew for each set of instances; now and then it cannot decide, or asks for another rebalance."""

    def assign(self, application_state: ApplicationState) -> TaskAssignment:
        states = application_state.kafka_streams_states(compute_task_lags=True)
        dice = random.Random(repr(sorted(states)))
        if dice.random() < 0.1:
            raise TaskAssignmentError("the dice fell off the table")
        assignments = {process: KafkaStreamsAssignment(process) for process in states}
        for task in application_state.all_tasks.values():
            places = dice.sample(sorted(states), min(2, len(states)))
            assignments[places[0]].assign_task(AssignedTask(task.id, TaskType.ACTIVE))
            if task.is_stateful and len(places) > 1 and dice.random() < 0.5:
                assignments[places[1]].assign_task(AssignedTask(task.id, TaskType.STANDBY))
        if dice.random() < 0.2 and len(states) > 1:
            first = min(states)
            assignments[first] = assignments[first].with_followup_rebalance(PROBE_MS * 1_000_000)
        return TaskAssignment(list(assignments.values()))


class UnstartedSession(ClassicSession):
    """A session that the test steps, instead of a thread."""

    def start(self) -> None:
        pass


class Member(Instance):
    """A member of a classic group, static where it has an ``instance_id``."""

    session: UnstartedSession
    membership: ClassicMembership

    def __init__(
        self,
        number: int,
        coordinator: FakeCoordinator,
        clock: MockClock,
        instance_id: str | None,
        assignor: TaskAssignor | None,
    ) -> None:
        super().__init__(number, coordinator, INPUTS)
        self.coordinator = coordinator
        process_id = ProcessId(uuid.UUID(int=number + 1))
        self.requests = FakeRequests(coordinator, GroupSettings("app", instance_id, SESSION_MS, POLL_MS))
        leadership = Leadership(
            PLAN,
            prepare=lambda: LAYOUT,
            cluster=EmptyCluster(),
            committed=self.requests.committed,
            ends_s=1,
            configs=AssignmentConfigs(probing_rebalance_interval_ms=PROBE_MS),
            process_id=process_id,
            clock=clock,
            assignor=assignor,
        )
        self.session = UnstartedSession(
            self.name,
            self.requests,
            leadership.assign,
            clock=clock,
            times=SessionTimes(3, SESSION_MS / 1000),
            max_poll_s=POLL_MS / 1000,
            is_static=instance_id is not None,
        )
        self.membership = ClassicMembership(
            self.session,
            FakeRequests(coordinator, self.requests.group),
            Introduction(process_id),
            stateful=frozenset({0}),
            prepare=lambda: LAYOUT,
            state=self,
            hosts=GroupHosts(),
            clock=clock,
        )
        self.membership.start(LAYOUT, self.on_revoked)

    def begin(self) -> None: ...

    def end(self) -> None: ...

    def lost(self) -> None: ...

    def assigned(self, *_: object, **__: object) -> None: ...

    def offset_sums(self) -> dict[TaskId, int]:
        return {task: -2 for task in self.positions if task.subtopology == 0}

    def on_revoked(self, tasks: frozenset[TaskId]) -> None:
        assert tasks <= self.positions.keys() | self.taken
        super().on_revoked(tasks)

    @property
    def taken(self) -> frozenset[TaskId]:
        """The tasks of the last assignment."""
        return self.membership._owned

    @property
    def counts(self) -> bool:
        return self.is_open and self.session.member_id in self.coordinator.members


class Group(SimulatedGroup[Member]):
    def __init__(self, seed: int, assignor: TaskAssignor | None) -> None:
        clock = MockClock()
        self.coordinator = FakeCoordinator(clock)
        super().__init__(random.Random(seed), clock, self.coordinator)
        self.assignor = assignor

    def make(self) -> Member:
        names = {one.requests.group.instance_id for one in self.instances}
        free = [name for name in ("s1", "s2") if name not in names]
        static = self.random.choice([None, None, *free])
        return Member(self.number, self.coordinator, self.clock, static, self.assignor)

    def lose(self, one: Member, kind: int) -> None:
        if kind == 4:
            one.requests.loses.add(self.random.choice(["join", "sync", "heartbeat", "leave"]))


@pytest.mark.parametrize("assignor", [None, ByWhim()], ids=["built-in", "by whim"])
@pytest.mark.parametrize("seed", range(40))
def test_each_task_has_one_owner_whatever_happens_to_members(seed: int, assignor: TaskAssignor | None) -> None:
    group = Group(seed, assignor)
    for _ in range(group.random.randrange(2, 5)):
        group.add()
    for _ in range(250):
        group.act()
    assert group.coordinator.generation > 1
    group.settle(600)  # with a probing rebalance in between
    before = group.coordinator.generation
    group.settle(20)
    assert group.coordinator.generation - before <= 2
    if group.coordinator.state is not GroupState.STABLE:  # another probing rebalance has just begun
        group.settle(20)
    assert group.coordinator.state is GroupState.STABLE
    assert group.worked_on() == sorted(INPUTS)
