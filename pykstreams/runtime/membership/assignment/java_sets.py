"""The order in which Kafka Streams goes through tasks and clients that it keeps in hash sets."""

from __future__ import annotations

from collections.abc import Iterable

from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.topology.java.hash_order import bucket_order


def in_hash_order(tasks: Iterable[TaskId]) -> tuple[TaskId, ...]:
    """Returns tasks in the order of a Java hash set that they were put into in their own order."""
    return bucket_order(sorted(tasks), _code)


def in_copied_order(tasks: Iterable[TaskId]) -> tuple[TaskId, ...]:
    """Returns tasks in the order of a Java hash set that was made from such a set."""
    return bucket_order(in_hash_order(tasks), _code, copied=True)


def in_map_order(tasks: Iterable[TaskId]) -> tuple[TaskId, ...]:
    """Returns tasks in the order of a Java hash map that they were put into in this order."""
    return bucket_order(tasks, _code)


def clients_in_hash_order(clients: Iterable[ProcessId]) -> tuple[ProcessId, ...]:
    """Returns clients in the order of a Java hash set."""
    return bucket_order(clients, lambda client: client.hash_code)


def clients_in_copied_order(clients: Iterable[ProcessId]) -> tuple[ProcessId, ...]:
    """Returns clients in the order of a Java hash set that was made from such a set."""
    return bucket_order(clients_in_hash_order(clients), lambda client: client.hash_code, copied=True)


def _code(task: TaskId) -> int:
    """``TaskId.hashCode``, as 32 unsigned bits."""
    return (31 * (31 * (31 + task.subtopology) + task.partition)) & 0xFFFFFFFF
