"""A model of a coordinator of a streams group, in one thread.

Source: ``GroupMetadataManager.streamsGroupHeartbeat``, 4.3.1.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaError

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.coordinators.coordinator_requests import GroupSettings, MemberOf
from pykstreams.runtime.clients.coordinators.streams_heartbeat import JOINING, LEAVING, Heartbeat, Heartbeaten, Tasks
from pykstreams.runtime.clients.positions import CommittedOffsets, Offsets
from tests.unit.runtime.membership.group_errors import NO_ANSWER, group_error

INTERVAL_MS = 1_000


@dataclass(slots=True)
class Place:
    """A member as the coordinator knows it."""

    session_ends_at: float
    epoch: int = 0
    previous_epoch: int = 0
    assigned: frozenset[TaskId] = frozenset()
    pending: frozenset[TaskId] = frozenset()
    revoke_until: float = 0.0
    since: dict[TaskId, int] = field(default_factory=dict)

    @property
    def held(self) -> frozenset[TaskId]:
        return self.assigned | self.pending


class FakeStreamsCoordinator:
    """The coordinator of one group; it gives each task to the member that has it, and evens out."""

    def __init__(self, clock: Clock, tasks: Collection[TaskId], group: GroupSettings) -> None:
        self._clock = clock
        self._tasks = sorted(tasks)
        self._group = group
        self._targets: Mapping[str, frozenset[TaskId]] = {}
        self.epoch = 0
        self.members: dict[str, Place] = {}
        self.offsets: dict[TopicPartition, tuple[int, str]] = {}
        self.statuses: dict[int, str] = {}

    def heartbeat(self, said: Heartbeat) -> Heartbeaten:
        self.pass_time()
        name = said.member_id
        if said.epoch == LEAVING:
            self._remove(name)
            return Heartbeaten(LEAVING, INTERVAL_MS)
        if said.epoch == JOINING:
            if name not in self.members:
                self.members[name] = Place(0.0)
                self._share_out()
        elif name not in self.members:
            raise group_error(KafkaError.UNKNOWN_MEMBER_ID)
        place = self.members[name]
        owned = None if said.tasks is None else said.tasks.active
        self._check(place, said.epoch, owned)
        place.session_ends_at = self._clock.monotonic() + self._group.session_timeout_ms / 1000
        before = place.assigned
        self._reconcile(name, place, owned)
        is_told = said.epoch == JOINING or place.assigned != before
        return Heartbeaten(
            place.epoch,
            INTERVAL_MS,
            statuses=dict(self.statuses),
            tasks=Tasks(place.assigned) if is_told else None,
        )

    def assigned(self, member_id: str) -> Tasks:
        self.pass_time()
        if member_id not in self.members:
            raise group_error(KafkaError.UNKNOWN_MEMBER_ID)
        return Tasks(self.members[member_id].assigned)

    def commit(self, member: MemberOf, offsets: Offsets, tasks: Mapping[TopicPartition, TaskId]) -> None:
        self.pass_time()
        place = self.members.get(member.member_id)
        if place is None:
            raise group_error(KafkaError.UNKNOWN_MEMBER_ID)
        if member.generation != place.epoch:
            for partition in offsets:
                since = place.since.get(tasks[partition])
                if tasks[partition] not in place.held or since is None or member.generation < since:
                    raise group_error(KafkaError.STALE_MEMBER_EPOCH)
        self.offsets.update(offsets)

    def pass_time(self) -> None:
        """Puts out those who were silent for too long, or did not give up tasks in time."""
        now = self._clock.monotonic()
        for name, place in list(self.members.items()):
            if now > place.session_ends_at or (place.pending and now > place.revoke_until):
                self._remove(name)

    @property
    def is_settled(self) -> bool:
        return all(self._targets[name] == place.assigned and not place.pending for name, place in self.members.items())

    def _remove(self, name: str) -> None:
        if self.members.pop(name, None) is not None:
            self._share_out()

    def _share_out(self) -> None:
        self.epoch += 1
        most = -(-len(self._tasks) // len(self.members)) if self.members else 0
        targets = {name: set(sorted(self._targets.get(name, ()))[:most]) for name in self.members}
        taken = {task for tasks in targets.values() for task in tasks}
        for task in self._tasks:
            if task not in taken and targets:
                min(targets.values(), key=len).add(task)
        self._targets = {name: frozenset(tasks) for name, tasks in targets.items()}

    @staticmethod
    def _check(place: Place, epoch: int, owned: frozenset[TaskId] | None) -> None:
        if epoch in (JOINING, place.epoch):
            return
        if epoch != place.previous_epoch or owned is None or not owned <= place.assigned:
            raise group_error(KafkaError.FENCED_MEMBER_EPOCH)

    def _reconcile(self, name: str, place: Place, owned: frozenset[TaskId] | None) -> None:
        if place.pending:
            if owned is None or owned & place.pending:
                return
            place.pending = frozenset()
        target = self._targets[name]
        if gone := place.assigned - target:
            place.assigned -= gone
            place.pending = gone
            place.revoke_until = self._clock.monotonic() + self._group.rebalance_timeout_ms / 1000
            return
        held = {task for other, found in self.members.items() if other != name for task in found.held}
        fresh = target - place.assigned - held
        if self.epoch != place.epoch:
            place.previous_epoch, place.epoch = place.epoch, self.epoch
        place.assigned |= fresh
        place.since.update(dict.fromkeys(fresh, place.epoch))


class FakeRequests:
    """The connection of one member to the coordinator; ``loses`` names a request that is lost, or its answer."""

    def __init__(
        self, coordinator: FakeStreamsCoordinator, group: GroupSettings, tasks: Mapping[TopicPartition, TaskId]
    ) -> None:
        self.group = group
        self._coordinator = coordinator
        self._tasks = tasks
        self._chance = random.Random(0)
        self.loses: set[str] = set()

    def heartbeat(self, said: Heartbeat) -> Heartbeaten:
        is_lost = "heartbeat" in self.loses
        self.loses.discard("heartbeat")
        if is_lost and self._chance.random() < 0.5:
            raise group_error(NO_ANSWER)
        answer = self._coordinator.heartbeat(said)
        if is_lost:
            raise group_error(NO_ANSWER)
        return answer

    def assigned(self, member_id: str) -> Tasks:
        if "assigned" in self.loses:
            self.loses.discard("assigned")
            raise group_error(NO_ANSWER)
        return self._coordinator.assigned(member_id)

    def commit(self, member: MemberOf, offsets: Offsets) -> None:
        self._coordinator.commit(member, offsets, self._tasks)

    def settled(self, partitions: Collection[TopicPartition]) -> CommittedOffsets:
        return CommittedOffsets(
            {place: found for place, found in self._coordinator.offsets.items() if place in partitions}
        )

    def close(self) -> None: ...
