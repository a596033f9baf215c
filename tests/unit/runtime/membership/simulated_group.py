"""A group whose members come, go, fall silent and are slow, in random order; the protocols fill in what is theirs."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

from pykstreams.core.errors import TaskMigratedError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.membership import Assignment, Lost, Membership
from pykstreams.testing.clock import MockClock


class Session(Protocol):
    """A session that the test steps, instead of a thread."""

    def step(self) -> float: ...


class Coordinator(Protocol):
    """The coordinator of the group, whatever it speaks."""

    @property
    def offsets(self) -> Mapping[TopicPartition, tuple[int, str]]: ...

    def pass_time(self) -> None: ...


class Instance(ABC):
    """An instance with one worker: it takes its tasks up where the group has committed, and counts records."""

    session: Session
    membership: Membership

    def __init__(
        self, number: int, coordinator: Coordinator, inputs: Mapping[TaskId, frozenset[TopicPartition]]
    ) -> None:
        self.name = f"instance-{number}"
        self.positions: dict[TaskId, int] = {}
        self.revoked: frozenset[TaskId] = frozenset()
        self.is_open = True
        self._offsets = coordinator.offsets
        self._places = {task: min(partitions) for task, partitions in inputs.items()}

    @property
    @abstractmethod
    def counts(self) -> bool:
        """Whether the group still goes on with this member."""

    def on_revoked(self, tasks: frozenset[TaskId]) -> None:
        self.commit()
        self.revoked = tasks
        for task in tasks:
            self.positions.pop(task, None)

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
            self.before_ack()
            self.membership.ack(change)
        for task in self.positions:
            self.positions[task] += 1

    def before_ack(self) -> None:
        """Is called between an assignment and the word of the worker that it has it."""
        return

    def committed(self, task: TaskId) -> int:
        found = self._offsets.get(self._places[task])
        return found[0] if found else 0

    def commit(self) -> None:
        before = {task: self.committed(task) for task in self.positions}
        try:
            if self.membership.commit({self._places[task]: (at, "") for task, at in self.positions.items()}):
                assert all(position >= before[task] for task, position in self.positions.items()), "a stale commit"
        except TaskMigratedError:
            pass

    def close(self, leave: bool) -> None:
        self.commit()
        self.membership.close(leave)
        self.is_open = False


InstanceT = TypeVar("InstanceT", bound=Instance)


class SimulatedGroup(ABC, Generic[InstanceT]):
    """The instances of an application, and what becomes of them.

    :param clock: that of the coordinator, too.
    """

    def __init__(self, chance: random.Random, clock: MockClock, coordinator: Coordinator) -> None:
        self.random = chance
        self.clock = clock
        self.number = 0
        self.instances: list[InstanceT] = []
        self._coordinator = coordinator
        self._silent: dict[InstanceT, int] = {}
        self._busy: dict[InstanceT, int] = {}

    @abstractmethod
    def make(self) -> InstanceT:
        """Makes the next instance."""

    @abstractmethod
    def lose(self, one: InstanceT, kind: int) -> None:
        """Has answers get lost that this instance, or others, wait for; ``kind`` is drawn from 0 to 19."""

    def add(self) -> None:
        self.instances.append(self.make())
        self.number += 1

    def act(self) -> None:
        one = self.random.choice(self.instances)
        kind = self.random.randrange(20)
        match kind:
            case 0 if len(self.instances) < 5:
                self.add()
            case 1 if len(self.instances) > 2:
                one.close(leave=self.random.random() < 0.6)
                self.instances.remove(one)
            case 2:
                self._silent[one] = self.random.randrange(10, 120)
            case 3:
                self._busy[one] = self.random.randrange(10, 300)
        self.lose(one, kind)
        self.turn()

    def turn(self) -> None:
        self.clock.advance(self.random.choice([0, 50, 500, 2_000]))
        self._coordinator.pass_time()
        for one in self.random.sample(self.instances, len(self.instances)):
            if self._goes_on(self._silent, one):
                steps: list[Callable[[], object]] = [one.session.step]
                if self._goes_on(self._busy, one):
                    steps += [one.poll, one.commit] if self.random.random() < 0.3 else [one.poll]
                for step in self.random.sample(steps, len(steps)):
                    step()
                    self.check()

    def check(self) -> None:
        """Nobody works on a task of another, but those that the group has already given up."""
        owners: dict[TaskId, str] = {}
        for one in self.instances:
            if one.counts:
                for task in one.positions:
                    assert task not in owners, f"{task} is worked on by {owners[task]} and {one.name}"
                    owners[task] = one.name

    def settle(self, turns: int) -> None:
        """Lets all go on, for so many turns."""
        self._silent.clear()
        self._busy.clear()
        for _ in range(turns):
            self.turn()

    def worked_on(self) -> list[TaskId]:
        return sorted(task for one in self.instances for task in one.positions)

    def _goes_on(self, waiting: dict[InstanceT, int], one: InstanceT) -> bool:
        turns = waiting.pop(one, 0)
        if turns > 1:
            waiting[one] = turns - 1
        return not turns
