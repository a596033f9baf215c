"""Membership by task topics: each of their partitions stands for a task.

The group subscribes to these empty topics, so the broker shares out tasks; the real partitions are fetched
by another client. Sticky and balanced sharing by ``cooperative-sticky``, and all inputs of a task on one
worker, come for free. That each sub-topology is spread, too, is up to the names of the topics (``TaskTopics``).

Invariant: nothing is committed after a loss until the worker has acknowledged it, because a member that
silently joined again could overwrite the offsets of the tasks' new owners.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from pykstreams.core.errors import TaskMigratedError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.membership.membership import Assignment, Lost

log = logging.getLogger(__name__)

SHARES = 8
"""As many topics has a sub-topology, if it has as many tasks."""

_LETTERS = "abcdefghijklmnop"
# Pairs of letters halve the order again and again (0, 4, 2, 6, 1, 5, 3, 7). Which letter of a pair is whose changes as
# the Thue-Morse sequence does, whose halves begin differently at every scale.
_LETTERS_OF = tuple(
    [_LETTERS[2 * int(f"{share:03b}"[::-1], 2) + (share.bit_count() + parity) % 2] for share in range(SHARES)]
    for parity in (0, 1)
)
_COMMITTED_TIMEOUT_S = 10.0


class GroupClient(Protocol):
    """The methods of a consumer that this back end calls."""

    def subscribe(
        self,
        topics: Collection[str],
        *,
        on_assign: Callable[[list[TopicPartition]], None],
        on_revoke: Callable[[list[TopicPartition]], None],
        on_lost: Callable[[list[TopicPartition]], None],
    ) -> None: ...

    def poll(self, timeout: float) -> None: ...

    def commit(self, offsets: Offsets) -> bool: ...

    def committed(self, partitions: Collection[TopicPartition], timeout: float) -> Offsets | None: ...

    def group_metadata(self) -> Any: ...

    def close(self, leave: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class TaskTopics:
    """Which partition of which topic stands for a task.

    ``cooperative-sticky`` counts partitions, and takes those to be handed over from a member in order of topic and
    partition. So tasks are spread over that order: every eighth task of a sub-topology shares a topic, and a letter in
    its name says where in the order. Numbers alternate between the halves of the alphabet, between the quarters, and so
    on, so that a sub-topology of any size is spread over all of it; and of neighbours, now the one, now the other
    sub-topology comes first.

    Which partition a task has depends on nothing but the task: workers that know more or fewer tasks agree.

    >>> topics = TaskTopics("shop")
    >>> [tuple(topics.place(task)) for task in (TaskId(0, 0), TaskId(1, 0), TaskId(0, 12))]
    [('shop-tasks-a-0', 0), ('shop-tasks-b-1', 0), ('shop-tasks-d-0', 1)]

    :param spread: false puts all tasks of a sub-topology into one topic, as on an embedded cluster, whose topics have
        as many partitions as a sub-topology has tasks.
    """

    application_id: str
    spread: bool = True

    def place(self, task: TaskId) -> TopicPartition:
        """The partition that stands for a task."""
        index, share = divmod(task.partition, self._shares)
        return TopicPartition(self._name(task.subtopology, share), index)

    def task(self, place: TopicPartition) -> TaskId | None:
        """The task that a partition stands for, if it does."""
        found = re.fullmatch(rf"{re.escape(self.application_id)}-tasks-([{_LETTERS}])-(\d+)", place.topic)
        if found is None:
            return None
        subtopology = int(found[2])
        share = _LETTERS_OF[subtopology % 2].index(found[1])
        return TaskId(subtopology, place.partition * self._shares + share)

    def topics(self, tasks: Iterable[TaskId]) -> dict[str, int]:
        """The topics of some tasks, and the partitions that each must have for them."""
        sizes: dict[str, int] = {}
        for task in tasks:
            topic, partition = self.place(task)
            sizes[topic] = max(sizes.get(topic, 0), partition + 1)
        return sizes

    def shares(self, subtopology: int) -> list[str]:
        """All topics that a sub-topology may have: tasks 0, 8, 16 ... are those of the first."""
        return [self._name(subtopology, share) for share in range(self._shares)]

    @property
    def _shares(self) -> int:
        return SHARES if self.spread else 1

    def _name(self, subtopology: int, share: int) -> str:
        return f"{self.application_id}-tasks-{_LETTERS_OF[subtopology % 2][share]}-{subtopology}"


class TaskTopicMembership:
    """The back end; see ``Membership`` for what each method promises."""

    def __init__(self, client: GroupClient, topics: TaskTopics) -> None:
        self._client = client
        self._topics = topics
        self._subscribed: frozenset[str] = frozenset()
        self._owned: frozenset[TaskId] = frozenset()
        self._notes: dict[TopicPartition, tuple[int, str]] = {}
        self._incarnation = 0
        self._changed = False
        self._lost = False
        self._on_revoked: Callable[[frozenset[TaskId]], None] = lambda _: None

    def start(self, tasks: Collection[TaskId], on_revoked: Callable[[frozenset[TaskId]], None]) -> None:
        self._on_revoked = on_revoked
        self.follow(tasks)

    def follow(self, tasks: Collection[TaskId]) -> None:
        # a member subscribes to something, also while no topic matches the patterns of its sources
        wanted = frozenset(self._topics.topics(tasks or [TaskId(0, 0)]))
        if wanted != self._subscribed:
            self._subscribed = wanted
            self._client.subscribe(
                sorted(wanted), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._all_lost
            )

    def poll(self, timeout: float = 0) -> Assignment | Lost | None:
        if not self._lost:
            self._client.poll(timeout)
        if self._lost:
            return Lost(self._incarnation)
        if self._changed:
            self._changed = False
            return Assignment(self._incarnation, self._owned)
        return None

    def ack(self, change: Assignment | Lost) -> None:
        if isinstance(change, Lost):
            self._lost = False

    def confirm(self) -> bool:
        self._refuse_when_lost()
        # the coordinator looks at the member before it looks at what is committed, which is there already
        note = next(
            ((place, kept) for place, kept in self._notes.items() if self._topics.task(place) in self._owned), None
        )
        return note is None or self._client.commit(dict([note]))

    def commit(self, offsets: Offsets) -> bool:
        self._refuse_when_lost()
        done = self._client.commit(offsets) if offsets else True
        if done:
            self._notes.update({place: kept for place, kept in offsets.items() if self._topics.task(place) is not None})
        return done

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets | None:
        return self._client.committed(partitions, _COMMITTED_TIMEOUT_S)

    def note_of(self, task: TaskId) -> TopicPartition:
        """Where the group keeps a note of a task: the task topics hold no records, so their offsets mean nothing."""
        return self._topics.place(task)

    def transaction_metadata(self) -> Any:
        self._refuse_when_lost()
        return self._client.group_metadata()

    def close(self, leave: bool) -> None:
        self._client.close(leave)

    def _refuse_when_lost(self) -> None:
        if self._lost:
            raise TaskMigratedError("this worker lost its tasks; nothing may be committed for them any more")

    def _assigned(self, partitions: list[TopicPartition]) -> None:
        self._incarnation += 1
        self._changed = True
        self._owned |= self._tasks(partitions)

    def _revoked(self, partitions: list[TopicPartition]) -> None:
        gone = self._tasks(partitions)
        try:
            self._on_revoked(gone)
        finally:
            self._owned -= gone
            self._changed = True

    def _all_lost(self, partitions: list[TopicPartition]) -> None:
        log.warning(
            "tasks %s were lost without notice: this worker was silent for longer than its session; "
            "they are taken up again from their last commit",
            ", ".join(sorted(map(str, self._tasks(partitions)))),
        )
        self._owned -= self._tasks(partitions)
        self._lost = True
        self._changed = True

    def _tasks(self, partitions: Collection[TopicPartition]) -> frozenset[TaskId]:
        return frozenset(task for place in partitions if (task := self._topics.task(place)) is not None)
