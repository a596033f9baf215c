"""The groups of co-partitioned topics, in the order in which Kafka Streams tells them to the brokers.

A broker compares the topologies of all members of a streams group, and of these groups only one order is equal to that
of the member that came first (``InternalTopologyBuilder.copartitionGroups``, 4.3.1: hash sets of hash sets).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from pykstreams.topology.java.hash_order import bucket_order, hash_code, hash_set_order

_Group: TypeAlias = tuple[str, ...]


def java_copartition_groups(groups: Iterable[Iterable[str]]) -> tuple[_Group, ...]:
    """Returns groups that share topics as one, as far as Kafka Streams does.

    A group joins the first group that has a topic of its own, not all of them.

    :param groups: the topics of each group, in the order of their sources.
    """
    found: dict[str, list[str]] = {}
    for given in groups:
        topics = hash_set_order(given)
        group = next((found[topic] for topic in topics if topic in found), [])
        group.extend(topic for topic in topics if topic not in group)
        found.update(dict.fromkeys(topics, group))
    return bucket_order((hash_set_order(group) for group in found.values()), _code, copied=True)


def _code(group: _Group) -> int:
    """``AbstractSet.hashCode``, as 32 unsigned bits."""
    return sum(map(hash_code, group)) & 0xFFFFFFFF
