"""A group that has joined: what its members say, and the assignments that tell each of them what it gets."""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pykstreams.core.errors import ConfigError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.check import MemberAssignment, check_group
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.assignment.group import Client, ClientTasks, Group, Racks, Task
from pykstreams.runtime.membership.assignment.previous import lags, previous_tasks
from pykstreams.runtime.membership.assignment.sending import Sending
from pykstreams.runtime.membership.assignment.threads import consumer_tasks
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignment_info import AssignmentInfo
from pykstreams.runtime.membership.protocol.assignor_error import AssignorError
from pykstreams.runtime.membership.protocol.subscription_info import (
    UNKNOWN_SUM,
    FutureSubscription,
    SubscriptionInfo,
    decode_subscription,
)
from pykstreams.runtime.membership.protocol.user_data import MalformedUserDataError
from pykstreams.runtime.membership.protocol.versions import GroupVersions, group_versions

log = logging.getLogger(__name__)

FUTURE_PROCESS: Final = ProcessId(uuid.UUID(int=0))
"""The instance of all members whose subscription is of a later version than this release can read."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member that joined: its user data as it came, and the rest of its subscription."""

    user_data: bytes
    owned: frozenset[TopicPartition] = frozenset()
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of the application at this moment.

    :param tasks: all tasks there are.
    :param end_sums: the sum of the end offsets of each stateful task's changelogs; ``None``: they could not be had.
    """

    tasks: tuple[Task, ...]
    end_sums: Mapping[TaskId, int] | None
    racks: Racks


@dataclass(frozen=True, slots=True)
class JoinedGroup:
    """The members that can be given tasks.

    :param refused: the assignments of all others, which are nothing but an error.
    :param owners: who owns a partition until it joins again; such a partition is given to nobody else.
    :param hosts: the addresses of the instances that have one.
    :param lags_known: whether it could be found out how far behind the instances are.
    :param processes: the addresses of members, where those of one instance have several: its processes have one each.
    """

    group: Group
    refused: Mapping[str, MemberAssignment]
    versions: GroupVersions
    owners: Mapping[TopicPartition, str]
    hosts: Mapping[ProcessId, HostInfo]
    lags_known: bool
    processes: Mapping[str, HostInfo] = field(default_factory=dict)

    def assignments(
        self, shares: Mapping[ProcessId, ClientTasks], follow_ups: Mapping[ProcessId, int]
    ) -> dict[str, MemberAssignment]:
        """Returns what the members that can be given tasks get, unchecked.

        :param follow_ups: when to look again, in ms, for the instances of which a member is to join then.
        """
        send = Sending(self.owners, self.group.tasks, shares, self.versions, self._told(shares))
        given: dict[str, MemberAssignment] = {}
        for client in self.group.clients:
            given.update(send.to_client(client, follow_ups.get(client.process_id)))
        return given

    def _told(self, shares: Mapping[ProcessId, ClientTasks]) -> dict[HostInfo, ClientTasks]:
        """The tasks behind each address. In Java an instance is one process, and has one address."""
        told: dict[HostInfo, ClientTasks] = {}
        for client in self.group.clients:
            share, host = shares[client.process_id], self.hosts.get(client.process_id)
            if not self.processes.keys() & client.consumers.keys():
                if host is not None:
                    told[host] = share
                continue
            for name, tasks in consumer_tasks(client, share).items():
                if (host := self.processes.get(name)) is not None:
                    before = told.get(host, ClientTasks(frozenset(), frozenset()))
                    told[host] = ClientTasks(before.active.union(tasks.active), before.standby.union(tasks.standby))
        return told

    def check(self, given: Mapping[str, MemberAssignment]) -> None:
        """Raises ``WrongAssignmentError`` unless these may be sent."""
        check_group(given, self.group.tasks, self.owners)


def join(members: Mapping[str, Member], topics: Topics, configs: AssignmentConfigs) -> JoinedGroup:
    """Reads what the members say.

    A member whose user data cannot be read is given ``ASSIGNMENT_ERROR``, which ends it, and the others share the
    tasks; a leader in Java would end instead. When a member asks for it, all are told to shut down, and the group has
    no clients.
    """
    said, unreadable = _read(members)
    versions = group_versions((info.version, info.latest_version) for info in said.values())
    refused = refusals(unreadable, AssignorError.ASSIGNMENT_ERROR, versions)
    if any(map(_wants_shutdown, said.values())):
        said, refused = {}, refusals(members, AssignorError.SHUTDOWN_REQUESTED, versions)
    clients, hosts, processes = _clients(members, said, topics)
    owners = {place: name for name, member in members.items() for place in member.owned}
    group = Group(clients, topics.tasks, configs, topics.racks)
    return JoinedGroup(group, refused, versions, owners, hosts, topics.end_sums is not None, processes)


def asks_for_shutdown(members: Mapping[str, Member]) -> bool:
    """Whether a member asks that all shut down."""
    for member in members.values():
        try:
            if _wants_shutdown(decode_subscription(member.user_data)):
                return True
        except MalformedUserDataError:  # told of where the members share out tasks
            continue
    return False


def refusals(
    members: Mapping[str, Member], error: AssignorError, versions: GroupVersions
) -> dict[str, MemberAssignment]:
    """Returns assignments of nothing but an error."""
    info = AssignmentInfo(error=error, version=versions.used, common_version=versions.common)
    return {member: MemberAssignment((), info) for member in members}


def refuse_all(members: Mapping[str, Member], error: AssignorError) -> dict[str, MemberAssignment]:
    """Returns assignments of nothing but an error, in the version that all members can read."""
    said, _ = _read(members)
    return refusals(members, error, group_versions((info.version, info.latest_version) for info in said.values()))


def _wants_shutdown(said: SubscriptionInfo | FutureSubscription) -> bool:
    return isinstance(said, SubscriptionInfo) and said.error == AssignorError.SHUTDOWN_REQUESTED


def _read(
    members: Mapping[str, Member],
) -> tuple[dict[str, SubscriptionInfo | FutureSubscription], dict[str, Member]]:
    said: dict[str, SubscriptionInfo | FutureSubscription] = {}
    unreadable: dict[str, Member] = {}
    for name, member in sorted(members.items()):
        try:
            said[name] = decode_subscription(member.user_data)
        except MalformedUserDataError as error:
            unreadable[name] = member
            log.error("member %s is left out and told to end: %s", name, error)
    return said, unreadable


def _clients(
    members: Mapping[str, Member], said: Mapping[str, SubscriptionInfo | FutureSubscription], topics: Topics
) -> tuple[tuple[Client, ...], dict[ProcessId, HostInfo], dict[str, HostInfo]]:
    """The instances of a group, and the addresses of those that have one; of members, where they have several."""
    task_of = {place: task.id for task in topics.tasks for place in task.inputs}
    end_sums = topics.end_sums
    if end_sums is None:
        end_sums = {task.id: UNKNOWN_SUM for task in topics.tasks if task.stateful}
    consumers: defaultdict[ProcessId, dict[str, SubscriptionInfo | FutureSubscription]] = defaultdict(dict)
    for name, info in said.items():
        process = info.process_id if isinstance(info, SubscriptionInfo) else FUTURE_PROCESS
        consumers[process][name] = info
    clients = []
    hosts: dict[ProcessId, HostInfo] = {}
    processes: dict[str, HostInfo] = {}
    for process, infos in sorted(consumers.items()):
        readable = {name: info for name, info in infos.items() if isinstance(info, SubscriptionInfo)}
        sums = {task: offset_sum for info in readable.values() for task, offset_sum in info.offset_sums.items()}
        owned = {task_of[place] for name in infos for place in members[name].owned if place in task_of}
        active, standby = previous_tasks(sums, owned)
        racks = {members[name].rack for name in infos}
        first = next(iter(readable.values()), None)
        clients.append(
            Client(
                process,
                {name: frozenset(readable[name].offset_sums if name in readable else ()) for name in infos},
                lags(sums, end_sums),
                active,
                standby,
                first.tags if first else {},
                racks.pop() if len(racks) == 1 else None,
            )
        )
        host = _host(first)
        if host is not None:
            hosts[process] = host
        named = {name: found for name, info in readable.items() if (found := _host(info)) is not None}
        if len(set(named.values())) > 1:
            processes.update(named)
    return tuple(clients), hosts, processes


def _host(info: SubscriptionInfo | None) -> HostInfo | None:
    try:
        return HostInfo.from_endpoint(info.endpoint) if info else None
    except ConfigError as error:
        log.warning("an instance is left out of the addresses for queries: %s", error)
        return None
