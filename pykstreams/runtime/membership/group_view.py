"""The group as one sees it who is no member: who works on which task, by the task topics, and what was committed.

Invariant: it takes no part in the group, and changes nothing of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Protocol

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.membership.client_ids import instance_of
from pykstreams.runtime.membership.task_topics import TaskTopics

_COMMITTED_TIMEOUT_S = 2.0


class MemberReader(Protocol):
    """The methods of an administrative client that this module calls."""

    def group_members(self, group: str) -> list[tuple[str, list[TopicPartition]]] | None: ...


class CommittedReader(Protocol):
    """The methods of a consumer that this module calls."""

    def committed(self, partitions: Collection[TopicPartition], timeout: float) -> Offsets | None: ...

    def close(self, leave: bool) -> None: ...


class TaskTopicGroup:
    """The group of one application.

    :param topics: which partition stands for which task.
    :param open_client: makes the consumer that reads committed offsets, when it is needed first.
    """

    def __init__(
        self,
        application_id: str,
        topics: TaskTopics,
        admin: MemberReader,
        open_client: Callable[[], CommittedReader],
    ) -> None:
        self._group = application_id
        self._topics = topics
        self._admin = admin
        self._open_client = open_client
        self._client: CommittedReader | None = None

    def members(self) -> dict[str, frozenset[TaskId]] | None:
        """The tasks of each instance; ``None`` while they are being shared out."""
        members = self._admin.group_members(self._group)
        if members is None:
            return None
        found: defaultdict[str, set[TaskId]] = defaultdict(set)
        for client_id, partitions in members:
            tasks = map(self._topics.task, partitions)
            found[instance_of(client_id)].update(task for task in tasks if task is not None)
        return {instance: frozenset(tasks) for instance, tasks in found.items()}

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets | None:
        """Committed offsets; ``None``: ask again later."""
        if not partitions:
            return {}
        if self._client is None:
            self._client = self._open_client()
        return self._client.committed(partitions, _COMMITTED_TIMEOUT_S)

    def close(self) -> None:
        """Lets go of the client."""
        client, self._client = self._client, None
        if client is not None:
            client.close(leave=True)
