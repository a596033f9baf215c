"""A worker and its tasks as those see them who look from outside (``ThreadMetadata``, ``TaskMetadata``, 4.3.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.tasks.task import Task
from pykstreams.runtime.worker.client_ids import consumer_id, producer_id, restore_consumer_id
from pykstreams.runtime.worker.task_manager import Running

UNKNOWN: Final = -1
"""Stands for an offset that is not known, or of which there is none."""


@dataclass(frozen=True, slots=True)
class TaskMetadata:
    """A task at one moment; equal to another one of the same task with the same partitions.

    Offsets are -1 where there is none yet, and are missing for standby tasks, which read no input.
    """

    task_id: TaskId
    topic_partitions: frozenset[TopicPartition]
    """The partitions that it reads, or would read."""
    committed_offsets: Mapping[TopicPartition, int] = field(compare=False)
    """The next offset to process after a restart."""
    end_offsets: Mapping[TopicPartition, int] = field(compare=False)
    """The ends of the partitions, as far as the consumer has heard of them."""
    time_current_idling_started: int | None = field(compare=False)
    """Since when it had nothing to process, or waited for another input, in ms since the epoch; ``None``: it works."""
    start_offsets: Mapping[TopicPartition, int] = field(compare=False, default_factory=dict)
    """Where this worker began to read the partitions; not part of Kafka Streams."""


@dataclass(frozen=True, slots=True)
class ThreadMetadata:
    """A worker at one moment, with the client ids under which brokers know it."""

    thread_state: str
    """``CREATED``, ``STARTING``, ``PARTITIONS_ASSIGNED``, ``RUNNING`` or ``PENDING_SHUTDOWN``."""
    thread_name: str
    active_tasks: frozenset[TaskMetadata]
    standby_tasks: frozenset[TaskMetadata]
    consumer_client_id: str
    restore_consumer_client_id: str
    producer_client_ids: frozenset[str]
    admin_client_id: str


class DescribedWorker(Protocol):
    """The methods of a worker that this module calls; called from any thread."""

    @property
    def name(self) -> str: ...

    @property
    def thread_state(self) -> str: ...

    def active_tasks(self) -> frozenset[TaskMetadata]: ...


def metadata_of(worker: DescribedWorker, standbys: Iterable[Task], admin_client_id: str) -> ThreadMetadata:
    """Returns what is told of a worker.

    :param standbys: the standby tasks that it was assigned; the process keeps those of all its workers together.
    """
    return ThreadMetadata(
        worker.thread_state,
        worker.name,
        worker.active_tasks(),
        frozenset(TaskMetadata(task.id, frozenset(task.input_partitions), {}, {}, None) for task in standbys),
        consumer_id(worker.name),
        restore_consumer_id(worker.name),
        frozenset({producer_id(worker.name)}),
        admin_client_id,
    )


def metadata_of_tasks(
    tasks: Iterable[Task],
    running: Mapping[TaskId, Running],
    end_of: Callable[[TopicPartition], int | None],
    start_of: Callable[[TopicPartition], int | None],
) -> frozenset[TaskMetadata]:
    """Returns what is told of the active tasks of a worker.

    :param running: those of them that run.
    :param end_of: the end of a partition, if it is known.
    :param start_of: where reading it began, if that is known.
    """
    found = []
    for task in tasks:
        places = frozenset(task.input_partitions)
        one = running.get(task.id)
        committed = {} if one is None else one.committed.copy()
        found.append(
            TaskMetadata(
                task.id,
                places,
                {place: committed[place][0] if place in committed else UNKNOWN for place in places},
                {place: UNKNOWN if one is None else _known(end_of(place)) for place in places},
                None if one is None else one.idle_since_ms,
                {place: UNKNOWN if one is None else _known(start_of(place)) for place in places},
            )
        )
    return frozenset(found)


def _known(offset: int | None) -> int:
    return UNKNOWN if offset is None else offset
