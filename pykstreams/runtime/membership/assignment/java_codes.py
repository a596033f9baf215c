"""Hash codes of task ids, where Kafka Streams goes through tasks in the order of a hash set."""

from __future__ import annotations

from collections.abc import Iterable

from pykstreams.core.ids import TaskId
from pykstreams.topology.java_order import bucket_order


def in_hash_order(tasks: Iterable[TaskId]) -> tuple[TaskId, ...]:
    """Returns tasks in the order of a Java hash set that they were put into in their own order."""
    return bucket_order(sorted(tasks), _code)


def _code(task: TaskId) -> int:
    """``TaskId.hashCode``, as 32 unsigned bits."""
    return (31 * (31 * (31 + task.subtopology) + task.partition)) & 0xFFFFFFFF
