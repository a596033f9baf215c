"""Which instance of the application has which partitions, as the leader told it with the last assignment.

Instances are known by their ``application.server``; those without one are known to nobody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.membership.host_info import HostInfo

_NONE: frozenset[TopicPartition] = frozenset()

PartitionsOf: TypeAlias = Mapping[HostInfo, frozenset[TopicPartition]]


@dataclass(frozen=True, slots=True)
class HostPartitions:
    """The input partitions of the active tasks of an instance, and of its standby tasks."""

    active: frozenset[TopicPartition] = _NONE
    standby: frozenset[TopicPartition] = _NONE


class GroupHosts:
    """The instances of the group, by the last assignment of any member of this process; for any thread."""

    def __init__(self) -> None:
        self._known: Mapping[HostInfo, HostPartitions] = {}

    def update(self, active: PartitionsOf, standby: PartitionsOf) -> None:
        """Notes what an assignment says of all instances."""
        self._known = {
            host: HostPartitions(active.get(host, _NONE), standby.get(host, _NONE))
            for host in sorted({*active, *standby}, key=lambda one: (one.host, one.port))
        }

    def known(self) -> Mapping[HostInfo, HostPartitions]:
        """The instances with an address, in the order of their addresses; empty before the first assignment."""
        return self._known
