"""The assignments of the members of a group, once it is decided which instance has which tasks.

Invariant: a partition that a member owns goes to no other before that member has given it up by joining again
without it. A client that waits for a task keeps the state that it has of it as a standby task, and joins again at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.check import MemberAssignment
from pykstreams.runtime.membership.assignment.group import Client, ClientTasks, Task
from pykstreams.runtime.membership.assignment.threads import ConsumerTasks, consumer_tasks
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignment_info import AT_ONCE, NEVER, AssignmentInfo
from pykstreams.runtime.membership.protocol.assignor_error import AssignorError
from pykstreams.runtime.membership.protocol.versions import GroupVersions


class Sending:
    """The assignments of all members of a group.

    :param owners: who owns a partition until it joins again.
    :param shares: the tasks of each instance.
    :param hosts: the addresses that are known, with the tasks behind each.
    """

    def __init__(
        self,
        owners: Mapping[TopicPartition, str],
        tasks: Iterable[Task],
        shares: Mapping[ProcessId, ClientTasks],
        versions: GroupVersions,
        hosts: Mapping[HostInfo, ClientTasks],
    ) -> None:
        self._owners = owners
        self._tasks = {task.id: task for task in tasks}
        self._shares = shares
        self._versions = versions
        self._hosts = {host: self._places(tasks.active) for host, tasks in hosts.items()}
        self._standby_hosts = {host: self._places(tasks.standby) for host, tasks in hosts.items()}

    def to_client(self, client: Client, probe_at: int | None) -> dict[str, MemberAssignment]:
        """The assignments of an instance's members; the first that need not join at once probes at that time."""
        given: dict[str, MemberAssignment] = {}
        for name, tasks in consumer_tasks(client, self._shares[client.process_id]).items():
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
        return any(self._owners.get(place, name) != name for place in self._tasks[task].inputs)

    def _places(self, tasks: frozenset[TaskId]) -> frozenset[TopicPartition]:
        return frozenset(place for task in tasks for place in self._tasks[task].inputs)
