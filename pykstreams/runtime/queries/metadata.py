"""Which instance of an application has which stores, by the addresses that the leader of the group sends around.

Every assignment tells of all instances that have an ``application.server`` (``StreamsMetadataState``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Final

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.membership.host_info import HostInfo as HostInfo

NO_PARTITION: Final = -1


@dataclass(frozen=True, slots=True)
class StreamsMetadata:
    """The tasks and stores of one instance."""

    host_info: HostInfo
    state_store_names: frozenset[str]
    """The stores of its tasks, and the global ones."""
    topic_partitions: frozenset[TopicPartition]
    """The input partitions of its tasks."""
    standby_topic_partitions: frozenset[TopicPartition] = frozenset()
    """The input partitions of its standby tasks."""
    standby_state_store_names: frozenset[str] = frozenset()
    """The stores of its standby tasks."""

    @property
    def host(self) -> str:
        """The host of its address."""
        return self.host_info.host

    @property
    def port(self) -> int:
        """The port of its address."""
        return self.host_info.port


@dataclass(frozen=True, slots=True)
class KeyQueryMetadata:
    """Where a key is.

    :param active_host: ``HostInfo.UNAVAILABLE`` when no instance with an address has it.
    :param standby_hosts: the instances that have a standby of the task.
    :param partition: that of the store in which the key is; -1 for a global store.
    """

    active_host: HostInfo
    standby_hosts: frozenset[HostInfo]
    partition: int

    NOT_AVAILABLE: ClassVar[KeyQueryMetadata]
    """Stands for not knowing: the application has no tasks yet."""


KeyQueryMetadata.NOT_AVAILABLE = KeyQueryMetadata(HostInfo.UNAVAILABLE, frozenset(), NO_PARTITION)


def only_partition(chosen: int | Collection[int] | None, store: str) -> int:
    """The partition that a partitioner has chosen; ``ValueError`` unless it is one."""
    if isinstance(chosen, int):
        return chosen
    if chosen is not None and len(chosen) == 1:
        return next(iter(chosen))
    raise ValueError(
        f"the partitioner for store {store!r} gave {chosen!r}; to find a key it must give exactly one partition"
    )
