"""The user data of an assignment: what the leader gives a member, and who else has what.

Layout of versions 7 to 11 (``AssignmentInfo.encode``, 4.3.1); counts are ints, texts those of ``writeUTF``::

    int     version of the data          int     latest version that all members can write
    array   of active tasks, one for each partition of the assignment in its order by topic and partition
    array   of standby tasks, each with an array of its input partitions (text topic, int partition)
    array   of int index, text topic: the topics of the two maps
    map     of hosts to their active partitions: text host, int port, array of int index of the topic, int partition
    map     of hosts to their standby partitions
    int     error code                   long    time of the next rebalance in ms

A task is int sub-topology, int partition, and from version 10 on int 0 (no named topology).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pykstreams.core.errors import TaskAssignmentError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.membership.protocol.user_data import UserDataReader, UserDataWriter
from pykstreams.runtime.membership.protocol.versions import EARLIEST_VERSION, LATEST_VERSION
from pykstreams.topology.java.hash_order import bucket_order, hash_code, hash_set_order

AT_ONCE: Final = 0
"""The time of the next rebalance of a member that waits for tasks which others have to give up first."""
NEVER: Final = (1 << 63) - 1
"""The time of the next rebalance where none is planned."""

_WHAT = "assignment"
_NAMED = 10


@dataclass(frozen=True, slots=True)
class AssignmentInfo:
    """The leader's word to a member.

    :param active: one task for each partition, in the order of the partitions by topic and number.
    :param standby: the standby tasks with their input partitions.
    :param hosts: the active partitions of all instances that have an ``application.server``.
    :param standby_hosts: the same for partitions of standby tasks.
    :param error: an ``AssignorError``.
    :param next_rebalance_ms: when this member is to join again; ``AT_ONCE``, ``NEVER``.
    """

    active: tuple[TaskId, ...] = ()
    standby: Mapping[TaskId, frozenset[TopicPartition]] = field(default_factory=dict)
    hosts: Mapping[HostInfo, frozenset[TopicPartition]] = field(default_factory=dict)
    standby_hosts: Mapping[HostInfo, frozenset[TopicPartition]] = field(default_factory=dict)
    error: int = 0
    next_rebalance_ms: int = NEVER
    version: int = LATEST_VERSION
    common_version: int = LATEST_VERSION

    def encode(self) -> bytes:
        """Returns the bytes: what has no order is written in that of the tasks, hosts and partitions.

        The topics have the order that Java's hash sets give them, so that Java would write the same.
        """
        if not EARLIEST_VERSION <= self.version <= LATEST_VERSION:
            raise TaskAssignmentError(
                f"an assignment of version {self.version} cannot be written; this release writes "
                f"{EARLIEST_VERSION} to {LATEST_VERSION}"
            )
        out = UserDataWriter(_WHAT)
        out.int32(self.version)
        out.int32(self.common_version)
        out.int32(len(self.active))
        for task in self.active:
            self._write_task(out, task)
        out.int32(len(self.standby))
        for task, partitions in sorted(self.standby.items()):
            self._write_task(out, task)
            out.int32(len(partitions))
            for partition in sorted(partitions):
                out.utf(partition.topic)
                out.int32(partition.partition)
        self._write_hosts(out)
        out.int32(self.error)
        out.int64(self.next_rebalance_ms)
        return out.finish()

    def _write_task(self, out: UserDataWriter, task: TaskId) -> None:
        out.int32(task.subtopology)
        out.int32(task.partition)
        if self.version >= _NAMED:
            out.int32(0)

    def _write_hosts(self, out: UserDataWriter) -> None:
        maps = [sorted(hosts.items(), key=_host_and_port) for hosts in (self.hosts, self.standby_hosts)]
        numbers = _topic_numbers(place for hosts in maps for _, places in hosts for place in sorted(places))
        out.int32(len(numbers))
        for topic in hash_set_order(numbers):
            out.int32(numbers[topic])
            out.utf(topic)
        for hosts in maps:
            out.int32(len(hosts))
            for host, places in hosts:
                out.utf(host.host)
                out.int32(host.port)
                out.int32(len(places))
                for place in sorted(places):
                    out.int32(numbers[place.topic])
                    out.int32(place.partition)


def decode_assignment(data: bytes) -> AssignmentInfo:
    """Reads what a leader sent; ``MalformedUserDataError``: it cannot be read."""
    source = UserDataReader(data, _WHAT)
    version = source.int32()
    if not EARLIEST_VERSION <= version <= LATEST_VERSION:
        raise source.malformed(
            f"it is of version {version}, and this release reads {EARLIEST_VERSION} to {LATEST_VERSION}"
        )
    common = source.int32()
    task_size = 12 if version >= _NAMED else 8
    active = tuple(_read_task(source, version) for _ in range(source.count(task_size)))
    standby: dict[TaskId, frozenset[TopicPartition]] = {}
    for _ in range(source.count(task_size + 4)):
        task = _read_task(source, version)
        places = [TopicPartition(source.utf(), source.int32()) for _ in range(source.count(6))]
        if task in standby:
            raise source.malformed(f"the standby task {task} is there twice")
        standby[task] = _distinct(source, places)
    topics: dict[int, str] = {}
    for _ in range(source.count(6)):
        index = source.int32()
        if index in topics:
            raise source.malformed(f"topic {index} is there twice")
        topics[index] = source.utf()
    hosts = _read_hosts(source, topics)
    standby_hosts = _read_hosts(source, topics)
    error = source.int32()
    next_rebalance_ms = source.int64()
    source.end()
    return AssignmentInfo(active, standby, hosts, standby_hosts, error, next_rebalance_ms, version, common)


def _read_task(source: UserDataReader, version: int) -> TaskId:
    task = TaskId(source.int32(), source.int32())
    if task.subtopology < 0 or task.partition < 0:
        raise source.malformed(f"{task} is no task")
    if version >= _NAMED and source.int32() != 0:
        raise source.malformed(f"task {task} is of a named topology, which pykstreams does not have")
    return task


def _read_hosts(source: UserDataReader, topics: Mapping[int, str]) -> dict[HostInfo, frozenset[TopicPartition]]:
    hosts: dict[HostInfo, frozenset[TopicPartition]] = {}
    for _ in range(source.count(10)):
        host = HostInfo(source.utf(), source.int32())
        if host in hosts:
            raise source.malformed(f"the host {host.host}:{host.port} is there twice")
        places = []
        for _ in range(source.count(8)):
            index = source.int32()
            if index not in topics:
                raise source.malformed(f"there is no topic {index}")
            places.append(TopicPartition(topics[index], source.int32()))
        hosts[host] = _distinct(source, places)
    return hosts


def _distinct(source: UserDataReader, places: list[TopicPartition]) -> frozenset[TopicPartition]:
    distinct = frozenset(places)
    if len(distinct) != len(places) or any(place.partition < 0 for place in places):
        raise source.malformed(f"of the partitions {', '.join(map(str, places))} one is there twice, or is none")
    return distinct


def _topic_numbers(places: Iterable[TopicPartition]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for place in bucket_order(places, _place_code):
        numbers.setdefault(place.topic, len(numbers))
    return numbers


def _place_code(place: TopicPartition) -> int:
    """``TopicPartition.hashCode``, as 32 unsigned bits."""
    return (31 * (31 + place.partition) + hash_code(place.topic)) & 0xFFFFFFFF


def _host_and_port(entry: tuple[HostInfo, frozenset[TopicPartition]]) -> tuple[str, int]:
    return entry[0].host, entry[0].port
