"""Membership by task topics: partition p of ``<application>-tasks-<sub-topology>`` stands for task ``n_p``.

The group subscribes to these empty topics, so the broker shares out tasks; the real partitions are fetched
by another client. Sticky and balanced sharing by ``cooperative-sticky``, and all inputs of a task on one
worker, come for free.

Invariant: nothing is committed after a loss until the worker has acknowledged it, because a member that
silently joined again could overwrite the offsets of the tasks' new owners.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any, Protocol

from pykstreams.core.errors import TaskMigratedError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership import Assignment, Lost, Offsets

log = logging.getLogger(__name__)

_COMMITTED_TIMEOUT_S = 10.0


class GroupClient(Protocol):
    """What this back end needs of a consumer."""

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


def task_topic(application_id: str, subtopology: int) -> str:
    """The topic that stands for the tasks of a sub-topology.

    >>> task_topic("shop", 1)
    'shop-tasks-1'
    """
    return f"{application_id}-tasks-{subtopology}"


class TaskTopicMembership:
    """The back end; see ``Membership`` for what each method promises."""

    def __init__(self, client: GroupClient, application_id: str) -> None:
        self._client = client
        self._application_id = application_id
        self._subtopologies: dict[str, int] = {}
        self._owned: frozenset[TaskId] = frozenset()
        self._incarnation = 0
        self._changed = False
        self._lost = False
        self._on_revoked: Callable[[frozenset[TaskId]], None] = lambda _: None

    def start(self, subtopologies: Collection[int], on_revoked: Callable[[frozenset[TaskId]], None]) -> None:
        self._subtopologies = {task_topic(self._application_id, number): number for number in subtopologies}
        self._on_revoked = on_revoked
        self._client.subscribe(
            sorted(self._subtopologies),
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._all_lost,
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
        if not self._owned:
            return True
        # the coordinator looks at the member before it looks at the offset, which of a task topic is always 0
        task_id = min(self._owned)
        mark = TopicPartition(task_topic(self._application_id, task_id.subtopology), task_id.partition)
        return self._client.commit({mark: (0, "")})

    def commit(self, offsets: Offsets) -> bool:
        self._refuse_when_lost()
        return self._client.commit(offsets) if offsets else True

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets | None:
        return self._client.committed(partitions, _COMMITTED_TIMEOUT_S)

    def note_of(self, task: TaskId) -> TopicPartition:
        """Where the group keeps a note of a task: the task topics hold no records, so their offsets mean nothing."""
        return TopicPartition(task_topic(self._application_id, task.subtopology), task.partition)

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
        return frozenset(TaskId(self._subtopologies[topic], number) for topic, number in partitions)
