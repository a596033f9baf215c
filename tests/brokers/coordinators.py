"""Which broker coordinates a group: the leader of the partition of the offsets topic that the name of the group has."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient

from pykstreams.topology.java.hash_order import hash_code

_OFFSETS = "__consumer_offsets"
_ASK_S = 5.0
_LEAST_INT = 1 << 31


def offsets_partition(group: str, partitions: int) -> int:
    """The partition of the offsets topic that a group has, as ``GroupCoordinator.partitionFor`` finds it."""
    code = hash_code(group)  # 32 unsigned bits; what Java makes positive, all but the least number, which becomes 0
    if code >= _LEAST_INT:
        code = (1 << 32) - code
    return (0 if code == _LEAST_INT else code) % partitions


def coordinator_of(admin: AdminClient, group: str) -> int | None:
    """The node that coordinates a group, or ``None`` when nobody does at the moment; raises ``KafkaException``.

    It is not asked for as clients do: the admin client (2.16) was seen to get no answer whenever it had just begun.
    """
    partitions = admin.list_topics(_OFFSETS, timeout=_ASK_S).topics[_OFFSETS].partitions
    if not partitions:
        return None
    leader = partitions[offsets_partition(group, len(partitions))].leader
    return leader if leader >= 0 else None
