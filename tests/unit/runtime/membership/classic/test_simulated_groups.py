"""Members of a group that come, go, fall silent and are slow, in random order: nobody works on another's task."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
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
from pykstreams.core.errors import TaskAssignmentError, TaskMigratedError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.coordinator_requests import GroupSettings
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.classic.leadership import Leadership
from pykstreams.runtime.membership.classic.membership import ClassicMembership
from pykstreams.runtime.membership.classic.session import ClassicSession
from pykstreams.runtime.membership.classic.subscriptions import Introduction
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.membership import Assignment, Lost
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.testing.clock import MockClock
from tests.unit.runtime.membership.classic.fake_coordinator import FakeCoordinator, FakeRequests, GroupState

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
    def end_offsets(self, partitions: Any) -> dict[TopicPartition, int]:
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


class Instance:
    """An instance with one worker: it takes its tasks up where the group has committed, and counts records."""

    def __init__(
        self,
        number: int,
        coordinator: FakeCoordinator,
        clock: MockClock,
        instance_id: str | None,
        assignor: TaskAssignor | None,
    ) -> None:
        self.name = f"instance-{number}"
        self.coordinator = coordinator
        self.positions: dict[TaskId, int] = {}
        self.revoked: frozenset[TaskId] = frozenset()
        self.is_open = True
        process_id = ProcessId(uuid.UUID(int=number + 1))
        self.requests = FakeRequests(coordinator, GroupSettings("app", instance_id, SESSION_MS, POLL_MS))
        leadership = Leadership(
            PLAN,
            prepare=lambda: LAYOUT,
            cluster=EmptyCluster(),
            committed=self.requests.committed,
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
            heartbeat_s=3,
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

    def assigned(self, *_: object, **__: object) -> None: ...

    def offset_sums(self) -> dict[TaskId, int]:
        return {task: -2 for task in self.positions if task.subtopology == 0}

    def on_revoked(self, tasks: frozenset[TaskId]) -> None:
        assert tasks <= self.positions.keys() | self.taken
        self.commit()
        self.revoked = tasks
        for task in tasks:
            self.positions.pop(task, None)

    @property
    def taken(self) -> frozenset[TaskId]:
        """The tasks of the last assignment."""
        return self.membership._owned

    @property
    def counts(self) -> bool:
        """Whether the group still goes on with this member."""
        return self.is_open and self.session.member_id in self.coordinator.members

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
            self.membership.ack(change)
        for task in self.positions:
            self.positions[task] += 1

    def committed(self, task: TaskId) -> int:
        found = self.coordinator.offsets.get(min(INPUTS[task]))
        return found[0] if found else 0

    def commit(self) -> None:
        before = {task: self.committed(task) for task in self.positions}
        offsets = {min(INPUTS[task]): (position, "") for task, position in self.positions.items()}
        try:
            if self.membership.commit(offsets):
                assert all(position >= before[task] for task, position in self.positions.items()), "a stale commit"
        except TaskMigratedError:
            pass

    def close(self, leave: bool) -> None:
        self.commit()
        self.membership.close(leave)
        self.is_open = False


class World:
    def __init__(self, seed: int, assignor: TaskAssignor | None) -> None:
        self.random = random.Random(seed)
        self.assignor = assignor
        self.clock = MockClock()
        self.coordinator = FakeCoordinator(self.clock)
        self.number = 0
        self.instances: list[Instance] = []
        self.silent: dict[Instance, int] = {}
        self.busy: dict[Instance, int] = {}

    def add(self) -> None:
        names = {one.requests.group.instance_id for one in self.instances}
        free = [name for name in ("s1", "s2") if name not in names]
        static = self.random.choice([None, None, *free])
        self.instances.append(Instance(self.number, self.coordinator, self.clock, static, self.assignor))
        self.number += 1

    def act(self) -> None:
        one = self.random.choice(self.instances)
        match self.random.randrange(20):
            case 0 if len(self.instances) < 5:
                self.add()
            case 1 if len(self.instances) > 2:
                one.close(leave=self.random.random() < 0.6)
                self.instances.remove(one)
            case 2:
                self.silent[one] = self.random.randrange(10, 120)
            case 3:
                self.busy[one] = self.random.randrange(10, 300)
            case 4:
                one.requests.loses.add(self.random.choice(["join", "sync", "heartbeat", "leave"]))
        self.turn()

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
        """Lets all go on until no task moves any more, with a probing rebalance in between."""
        self.silent.clear()
        self.busy.clear()
        for _ in range(600):
            self.turn()
        before = self.coordinator.generation
        for _ in range(20):
            self.turn()
        assert self.coordinator.state is GroupState.STABLE
        assert self.coordinator.generation - before <= 2


@pytest.mark.parametrize("assignor", [None, ByWhim()], ids=["built-in", "by whim"])
@pytest.mark.parametrize("seed", range(40))
def test_each_task_has_one_owner_whatever_happens_to_members(seed: int, assignor: TaskAssignor | None) -> None:
    world = World(seed, assignor)
    for _ in range(world.random.randrange(2, 5)):
        world.add()
    for _ in range(250):
        world.act()
    assert world.coordinator.generation > 1
    world.settle()
    worked_on = sorted(task for one in world.instances for task in one.positions)
    assert worked_on == sorted(INPUTS)
