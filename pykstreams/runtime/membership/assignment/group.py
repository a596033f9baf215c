"""A group as its leader sees it: frozen values that assignors decide from, and what they decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.process_id import ProcessId

Racks = Mapping[TopicPartition, frozenset[str]]
"""The racks of the replicas of partitions; one whose racks are not all known is left out."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the topology.

    :param inputs: its source and repartition partitions.
    :param changelogs: the partitions that its state is restored from, which may be inputs.
    :param stores: its stores, those without changelog among them.
    """

    id: TaskId
    inputs: frozenset[TopicPartition]
    changelogs: frozenset[TopicPartition] = frozenset()
    stores: frozenset[str] = frozenset()

    @property
    def stateful(self) -> bool:
        """Whether there is state to restore."""
        return bool(self.changelogs)


@dataclass(frozen=True, slots=True)
class Client:
    """An instance: a process with a state directory, and its consumers.

    :param consumers: the tasks with state that each consumer reported, by member id.
    :param lags: for each stateful task of the topology, how many offsets this client is behind; ``RUNNING`` where the
        active task is here, ``UNKNOWN_SUM`` where nothing is known.
    :param rack: ``None``: a consumer said none, or they said different ones.
    """

    process_id: ProcessId
    consumers: Mapping[str, frozenset[TaskId]]
    lags: Mapping[TaskId, int]
    previous_active: frozenset[TaskId] = frozenset()
    previous_standby: frozenset[TaskId] = frozenset()
    tags: Mapping[str, str] = field(default_factory=dict)
    rack: str | None = None

    @property
    def capacity(self) -> int:
        """The number of consumers, each of which has a thread."""
        return len(self.consumers)


@dataclass(frozen=True, slots=True)
class Group:
    """The clients and tasks to be brought together."""

    clients: tuple[Client, ...]
    tasks: tuple[Task, ...]
    configs: AssignmentConfigs = field(default_factory=AssignmentConfigs)
    racks: Racks = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClientTasks:
    """The tasks of one client; a warm-up is a standby task."""

    active: frozenset[TaskId]
    standby: frozenset[TaskId]


@dataclass(frozen=True, slots=True)
class GroupTasks:
    """The decision of an assignor.

    :param probing: whether to look again after ``probing.rebalance.interval.ms``, since tasks are to move to clients
        that have not caught up yet.
    """

    clients: Mapping[ProcessId, ClientTasks]
    probing: bool
