"""The records of one task that wait to be processed.

Those of a task with one partition are a plain list, as the consumer gave them, which its loop takes slices of; those of
several partitions lie in queues, and which of them comes next is for the ``PartitionGroup`` to say.

Invariant: once it is open, either ``only`` or ``group`` is there, and ``waiting`` is empty beside a ``group``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pykstreams.core.ids import TopicPartition
from pykstreams.core.timestamps import FailOnInvalidTimestamp, WallclockTimestampExtractor
from pykstreams.core.types import Forward
from pykstreams.runtime.clients.consumers.messages import RecordMessage
from pykstreams.runtime.tasks.compiled import source_column_readers, source_decoders, source_of
from pykstreams.runtime.tasks.context import TaskState
from pykstreams.runtime.tasks.inputs.columns import Columns
from pykstreams.runtime.tasks.inputs.partition_group import LagProvider, PartitionGroup, RecordQueue
from pykstreams.topology.plan import SubtopologyPlan


class TaskInput:
    """The queues of a task.

    :param partitions: the partitions that it reads.
    :param lag: tells how many records of a partition are still on the brokers; without it there are none.
    """

    __slots__ = ("_lag", "columns", "group", "only", "partitions", "queues", "skipped", "waiting")

    def __init__(self, partitions: Collection[TopicPartition], lag: LagProvider | None) -> None:
        self.partitions = tuple(partitions)
        self._lag = lag
        self.queues: dict[TopicPartition, RecordQueue] = {}
        self.only: RecordQueue | None = None
        """The queue of the one partition, if there is no other; its records are in ``waiting``."""
        self.waiting: list[RecordMessage] = []
        self.columns = Columns(None, None)
        """Takes batches of the one partition apart."""
        self.group: PartitionGroup | None = None
        self.skipped: dict[TopicPartition, int] = {}
        """The last record of each partition that was skipped since somebody took note of it."""

    def open(self, plan: SubtopologyPlan, state: TaskState, roots: Mapping[str, Forward]) -> None:
        """Makes the queues.

        :param roots: the callables of the sources, by node.
        """
        patterns = {pattern.pattern for pattern in plan.source_patterns}
        for partition in self.partitions:
            self.queues[partition] = _queue(partition, plan, state, roots, self.skipped, partition.topic in patterns)
        if len(self.partitions) == 1 and self.partitions[0].topic not in patterns:
            self.only = self.queues[self.partitions[0]]
            self.columns = Columns(*source_column_readers(source_of(plan, self.partitions[0].topic), state))
        else:
            self.group = PartitionGroup(self.queues, state.config.max_task_idle_ms, self._lag)

    def __len__(self) -> int:
        return sum(map(len, self.queues.values())) + len(self.waiting)

    def add(self, partition: TopicPartition, messages: Sequence[RecordMessage]) -> None:
        """Puts raw messages at the end of a partition's queue."""
        if self.group is None:
            self.waiting += messages
        else:
            self.group.add(self.queues[partition], messages)

    def length_of(self, partition: TopicPartition) -> int:
        """The number of records of one partition."""
        return len(self.waiting) if self.only is not None else len(self.queues[partition])

    def is_ready(self, now_ms: int) -> bool:
        """Whether there is a record, and no other input must be waited for."""
        return bool(self.waiting) if self.group is None else self.group.is_ready(now_ms)

    def next_offset(self, partition: TopicPartition) -> int | None:
        """The offset of the first record of a partition, ``None`` without one."""
        if self.only is None:
            return self.queues[partition].next_offset
        return self.waiting[0].offset() if self.waiting else None

    def unread(self) -> int:
        """The number of records that are still on the brokers, as far as these have said."""
        return 0 if self._lag is None else sum(self._lag(partition) or 0 for partition in self.partitions)

    def may_be_unread(self) -> bool:
        """Whether the brokers have records, or have not said yet that they have none."""
        return self._lag is not None and any(self._lag(partition) != 0 for partition in self.partitions)


def _queue(
    partition: TopicPartition,
    plan: SubtopologyPlan,
    state: TaskState,
    roots: Mapping[str, Forward],
    skipped: dict[TopicPartition, int],
    of_pattern: bool,
) -> RecordQueue:
    source = source_of(plan, partition.topic)
    extractor = source.timestamp_extractor or state.config.default_timestamp_extractor
    if isinstance(extractor, WallclockTimestampExtractor):
        extractor = extractor.on_clock(state.clock)
    return RecordQueue(
        partition,
        source.name,
        roots[source.name],
        lambda topic: source_decoders(source, topic, state),
        extractor,
        state.failures,
        state.dropped,
        skipped=skipped,
        extracts=type(extractor) is not FailOnInvalidTimestamp,
        of_pattern=of_pattern,
    )
