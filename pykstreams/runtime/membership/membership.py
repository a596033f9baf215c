"""The interface to the group, which decides who owns which task: the same for every protocol.

Invariant: between two answers of ``poll`` the set of owned tasks changes in two ways only: ``on_revoked``
names tasks that go away in good order (they may still be committed inside that call), or ``poll`` gives
``Lost``, after which nothing may be committed for any task.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import CommittedOffsets, Offsets
from pykstreams.runtime.membership.session_times import SessionTimes
from pykstreams.runtime.topics.topic_admin import TopicLayout


@dataclass(frozen=True, slots=True)
class Assignment:
    """All tasks that this worker owns from now on, of the topics as they were seen when they were given."""

    active: frozenset[TaskId]
    layout: TopicLayout


@dataclass(frozen=True, slots=True)
class Lost:
    """This worker owns nothing any more, and others may already work on its tasks."""


class ShutdownRequestedError(StreamsError):
    """A member of the group has asked all of them to shut down."""


class Membership(Protocol):
    """A worker's place in the group; used by the worker's thread only."""

    def start(self, layout: TopicLayout, on_revoked: Callable[[frozenset[TaskId]], None]) -> None:
        """Joins those that share the tasks of these topics.

        ``on_revoked`` runs inside ``poll``, while heartbeats go on: it commits and suspends, and closes nothing.
        """
        ...

    def follow(self, layout: TopicLayout) -> None:
        """Follows the topics, and so the tasks, as they are from now on."""
        ...

    def poll(self, timeout: float = 0) -> Assignment | Lost | None:
        """Serves the group for up to ``timeout`` seconds; returns what changed. Call it several times a second."""
        ...

    def ack(self, change: Assignment | Lost) -> None:
        """Notes that the worker has done what ``poll`` returned: it joins anew, or tells the group what it has."""
        ...

    def may_commit(self) -> bool:
        """Whether a commit may be made now: not while tasks are shared out anew. Records may be processed meanwhile."""
        ...

    @property
    def times(self) -> SessionTimes:
        """The times of the member's session, as they are known now."""
        ...

    def silent_s(self) -> float | None:
        """Seconds since the last word to the group that it has answered was sent, 0 for a member of none.

        ``None`` while the group waits for others to join: it keeps this member meanwhile.
        """
        ...

    def commit(self, offsets: Offsets) -> bool:
        """Commits and waits; false: the group is busy, try later. ``TaskMigratedError``: not a member."""
        ...

    def committed(self, partitions: Collection[TopicPartition]) -> CommittedOffsets | None:
        """Reads committed offsets, as far as they are settled; ``None``: try again later."""
        ...

    def transaction_metadata(self) -> bytes:
        """The group metadata by which brokers fence this member's transactions; ``TaskMigratedError`` once lost."""
        ...

    def close(self, leave: bool) -> None:
        """Leaves the group, a static member too, or falls silent so that the tasks stay here until the session ends."""
        ...


def is_surely_in(membership: Membership) -> bool:
    """Whether nobody else can have had the tasks of a member until now, as far as it can know.

    Its session may be over when its process was stopped. While it joins, it knows nothing of that.
    """
    silent_s = membership.silent_s()
    return silent_s is not None and silent_s <= membership.times.session_s
