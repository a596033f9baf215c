"""Leading a group: from what the members say to what each of them gets (``StreamsPartitionAssignor.assign``, 4.3.1).

Invariant: a partition that a member owns goes to no other before that member has given it up by joining again
without it. Who waits for a task keeps its copy of the state as a standby task, and joins again at once.
"""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pykstreams.core.errors import ConfigError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.check import MemberAssignment, check_group
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.assignment.group import Client, Group, GroupTasks, Racks, Task
from pykstreams.runtime.membership.assignment.high_availability import assign_high_availability
from pykstreams.runtime.membership.assignment.previous import lags, previous_tasks
from pykstreams.runtime.membership.assignment.sticky import assign_previous
from pykstreams.runtime.membership.assignment.threads import ConsumerTasks, consumer_tasks
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignment_info import AT_ONCE, NEVER, AssignmentInfo
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


def lead(
    members: Mapping[str, Member],
    topics: Topics,
    configs: AssignmentConfigs,
    *,
    process_id: ProcessId,
    now_ms: int,
    assign: Callable[[Group], GroupTasks] = assign_high_availability,
) -> dict[str, MemberAssignment]:
    """Returns the assignment of each member.

    A member whose user data cannot be read gets ``ASSIGNMENT_ERROR``, which ends it, and the others share the tasks;
    a leader in Java would end instead. When a member asks for it, all are told to shut down.

    :param process_id: the instance of the leader, which probes again when tasks wait for warm-ups.
    :param assign: what shares out the tasks among instances, when the lags are known.
    """
    said, unreadable = _read(members)
    versions = group_versions((info.version, info.latest_version) for info in said.values())
    if any(
        isinstance(info, SubscriptionInfo) and info.error == AssignorError.SHUTDOWN_REQUESTED for info in said.values()
    ):
        return refusals(members, AssignorError.SHUTDOWN_REQUESTED, versions)
    refused = refusals(unreadable, AssignorError.ASSIGNMENT_ERROR, versions)
    if not said:
        return refused
    clients, hosts = _clients(members, said, topics)
    group = Group(clients, topics.tasks, configs, topics.racks)
    decided = assign(group) if topics.end_sums is not None else assign_previous(group)
    send = _Sending(members, group, decided, versions, hosts)
    given: dict[str, MemberAssignment] = {}
    for client in clients:
        probe_at = now_ms + configs.probing_rebalance_interval_ms
        probes = decided.probing and client.process_id == process_id
        given.update(send.to_client(client, probe_at if probes else None))
    check_group(given, topics.tasks, send.owners)
    return given | refused


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
) -> tuple[tuple[Client, ...], dict[ProcessId, HostInfo]]:
    """The instances of a group, and the addresses of those that have one."""
    task_of = {place: task.id for task in topics.tasks for place in task.inputs}
    end_sums = topics.end_sums
    if end_sums is None:
        end_sums = {task.id: UNKNOWN_SUM for task in topics.tasks if task.stateful}
    consumers: defaultdict[ProcessId, dict[str, SubscriptionInfo | FutureSubscription]] = defaultdict(dict)
    for name, info in said.items():
        process = info.process_id if isinstance(info, SubscriptionInfo) else FUTURE_PROCESS
        consumers[process][name] = info
    clients = []
    hosts = {}
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
    return tuple(clients), hosts


def _host(info: SubscriptionInfo | None) -> HostInfo | None:
    try:
        return HostInfo.from_endpoint(info.endpoint) if info else None
    except ConfigError as error:
        log.warning("an instance is left out of the addresses for queries: %s", error)
        return None


class _Sending:
    """The assignments of all members of a group."""

    def __init__(
        self,
        members: Mapping[str, Member],
        group: Group,
        decided: GroupTasks,
        versions: GroupVersions,
        hosts: Mapping[ProcessId, HostInfo],
    ) -> None:
        self.owners = {place: name for name, member in members.items() for place in member.owned}
        self._tasks = {task.id: task for task in group.tasks}
        self._decided = decided
        self._versions = versions
        self._hosts = {host: self._places(decided.clients[process].active) for process, host in hosts.items()}
        self._standby_hosts = {host: self._places(decided.clients[process].standby) for process, host in hosts.items()}

    def to_client(self, client: Client, probe_at: int | None) -> dict[str, MemberAssignment]:
        """The assignments of an instance's members; the first that need not join at once probes at that time."""
        given: dict[str, MemberAssignment] = {}
        for name, tasks in consumer_tasks(client, self._decided.clients[client.process_id]).items():
            waits = [task for task in tasks.active if self._is_held(task, name)]
            if waits:
                # as in Java, a client that joins again at once does not probe besides
                next_ms, probe_at = AT_ONCE, None
            else:
                next_ms, probe_at = (NEVER, None) if probe_at is None else (probe_at, None)
            given[name] = self._to_member(client, tasks, waits, next_ms)
        return given

    def _to_member(self, client: Client, tasks: ConsumerTasks, waits: list[TaskId], next_ms: int) -> MemberAssignment:
        pairs = sorted(
            (place, task) for task in tasks.active if task not in waits for place in self._tasks[task].inputs
        )
        kept = [task for task in waits if task in client.previous_standby and self._tasks[task].stateful]
        info = AssignmentInfo(
            tuple(task for _, task in pairs),
            {task: self._tasks[task].inputs for task in (*tasks.standby, *kept)},
            self._hosts,
            self._standby_hosts,
            AssignorError.NONE,
            next_ms,
            self._versions.used,
            self._versions.common,
        )
        return MemberAssignment(tuple(place for place, _ in pairs), info)

    def _is_held(self, task: TaskId, name: str) -> bool:
        return any(self.owners.get(place, name) != name for place in self._tasks[task].inputs)

    def _places(self, tasks: frozenset[TaskId]) -> frozenset[TopicPartition]:
        return frozenset(place for task in tasks for place in self._tasks[task].inputs)
