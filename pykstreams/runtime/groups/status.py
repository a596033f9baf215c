"""The status of a group: its state, its members with their tasks, and the tasks that nobody has."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pykstreams.core.ids import TaskId
from pykstreams.runtime.clients.inspection.group_tools import GroupView
from pykstreams.runtime.groups.group_states import told_state
from pykstreams.runtime.groups.members import Member, members_of
from pykstreams.runtime.membership.task_names import task_names


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """A group at one moment.

    :param tasks: all tasks of the topology.
    """

    application_id: str
    protocol: str
    state: str
    members: tuple[Member, ...]
    tasks: frozenset[TaskId]

    @property
    def unassigned(self) -> tuple[TaskId, ...] | None:
        """The tasks that no member has as active ones; ``None`` while the tasks of a member are not known."""
        had: set[TaskId] = set()
        for member in self.members:
            if member.tasks is None:
                return None
            had |= member.tasks.active
        return tuple(sorted(self.tasks - had))

    def as_dict(self) -> dict[str, object]:
        """Returns the shape for programs, which docs/reference/cli.md describes."""
        unassigned = self.unassigned
        return {
            "application_id": self.application_id,
            "protocol": self.protocol,
            "state": self.state,
            "members": [_member(one) for one in self.members],
            "tasks": _names(self.tasks),
            "unassigned": None if unassigned is None else _names(unassigned),
        }

    def lines(self) -> Iterator[str]:
        """Yields the text for users."""
        yield f"group {self.application_id} ({self.protocol}): {told_state(self.state)}, {len(self.members)} members"
        for one in self.members:
            yield f"member {one.id} (client {one.client_id}, {one.host}{_served(one)})"
            if one.tasks is None:
                yield "  tasks are not known"
                continue
            yield f"  active: {task_names(one.tasks.active)}"
            yield f"  standby: {task_names(one.tasks.standby)}"
            if one.tasks.warmup:
                yield f"  warm-up: {task_names(one.tasks.warmup)}"
        unassigned = self.unassigned
        if unassigned is None:
            yield "tasks that nobody has: not known while the group rebalances; ask again"
        else:
            yield f"tasks that nobody has: {task_names(unassigned)}"


def status_of(application_id: str, view: GroupView, tasks: Collection[TaskId]) -> GroupStatus:
    """Returns the status of a group, for the tasks that the topology has."""
    return GroupStatus(application_id, view.protocol, view.state, members_of(view), frozenset(tasks))


def _member(one: Member) -> dict[str, object]:
    tasks = one.tasks
    return {
        "id": one.id,
        "client_id": one.client_id,
        "host": one.host,
        "process_id": one.process_id,
        "application_server": one.endpoint,
        "active": None if tasks is None else _names(tasks.active),
        "standby": None if tasks is None else _names(tasks.standby),
        "warmup": None if tasks is None else _names(tasks.warmup),
    }


def _names(tasks: Collection[TaskId]) -> list[str]:
    return [str(task) for task in sorted(tasks)]


def _served(one: Member) -> str:
    return f", application.server {one.endpoint}" if one.endpoint else ""
