"""The words of a member of a streams group to its coordinator, and the answers (``StreamsGroupHeartbeat``, KIP-1071).

The coordinator compares the topology of each member that joins with that of the first, as it stands here: lists by
name, settings by key, and groups of topics in the order in which Kafka Streams has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from pykstreams.core.ids import TaskId, TopicPartition

JOINING: Final = 0
"""The epoch of a member that joins."""

LEAVING: Final = -1
"""The epoch of a member that leaves."""

NO_ENDPOINTS: Final = -1
"""The epoch of end-points before any were heard of."""


class GroupStatus(IntEnum):
    """The state of a group, as its coordinator says with an answer."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


@dataclass(frozen=True, slots=True)
class TopicOfGroup:
    """An internal topic, which the coordinator creates where it is missing.

    :param partitions: 0: as many as follow from the sources.
    :param configs: settings of the topic, by key.
    """

    name: str
    partitions: int
    replication: int
    configs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CopartitionGroup:
    """Topics with equal partition counts, by their places in the lists of the sub-topology."""

    sources: tuple[int, ...]
    repartition_sources: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SubtopologyOfGroup:
    """A sub-topology."""

    id: int
    sources: tuple[str, ...]
    repartition_sinks: tuple[str, ...]
    repartition_sources: tuple[TopicOfGroup, ...]
    changelogs: tuple[TopicOfGroup, ...]
    copartition_groups: tuple[CopartitionGroup, ...]


@dataclass(frozen=True, slots=True)
class Tasks:
    """Active and standby tasks; warm-up tasks become standby tasks that are about to be active."""

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    warmup: frozenset[TaskId] = frozenset()

    def together(self, other: Tasks) -> Tasks:
        """These and others."""
        return Tasks(self.active | other.active, self.standby | other.standby, self.warmup | other.warmup)


NO_TASKS: Final = Tasks()


@dataclass(frozen=True, slots=True)
class Joining:
    """The word of a member about itself, when it joins.

    :param endpoint: host and port of ``application.server``.
    """

    topology: tuple[SubtopologyOfGroup, ...]
    process_id: str
    rebalance_timeout_ms: int
    endpoint: tuple[str, int] | None = None
    rack: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """One heartbeat.

    :param joining: given by a member that joins, ``None`` afterwards.
    :param tasks: those that the member has; ``None``: the same as in its last heartbeat.
    :param shutdown: whether all members are to shut down.
    """

    member_id: str
    epoch: int
    endpoints_epoch: int = NO_ENDPOINTS
    joining: Joining | None = None
    tasks: Tasks | None = None
    shutdown: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An instance with an ``application.server``, and the input partitions of its tasks."""

    host: str
    port: int
    active: frozenset[TopicPartition]
    standby: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Heartbeaten:
    """The answer to a heartbeat.

    :param statuses: what is the matter with the group, with details; ``None``: nothing was said of it.
    :param tasks: those that the member is to have; ``None``: the same as before.
    :param endpoints: ``None``: the same as before.
    """

    epoch: int
    interval_ms: int
    endpoints_epoch: int = NO_ENDPOINTS
    statuses: Mapping[int, str] | None = None
    tasks: Tasks | None = None
    endpoints: tuple[Endpoint, ...] | None = None
