"""The tasks of an application, as assignors see them (KIP-924)."""

from __future__ import annotations

from dataclasses import dataclass, field

from pykstreams.core.ids import TaskId, TopicPartition


@dataclass(frozen=True, slots=True)
class TaskTopicPartition:
    """A partition that a task reads or restores its state from (``TaskTopicPartition``).

    :param is_source: whether it is an input, be it of the user or a repartition topic.
    :param is_changelog: whether state is restored from it; an input may serve as changelog, too.
    :param rack_ids: the racks of its replicas; ``None``: not all of them are known.
    """

    topic_partition: TopicPartition
    is_source: bool
    is_changelog: bool
    rack_ids: frozenset[str] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A task that is to be assigned (``TaskInfo``).

    :param state_store_names: its stores, those without changelog among them.
    :param topic_partitions: its inputs and changelogs.
    """

    id: TaskId
    topic_partitions: frozenset[TaskTopicPartition]
    state_store_names: frozenset[str] = frozenset()

    @property
    def is_stateful(self) -> bool:
        """Whether it has stores, and so may have standby tasks."""
        return bool(self.state_store_names)
