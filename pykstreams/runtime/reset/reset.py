"""Carries out a reset: offsets first, which the coordinator refuses for a group with members, then topics and state."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError, LockError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.inspection.group_tools import GroupMember, GroupView
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.reset.reset_plan import (
    OffsetChange,
    ResetPlan,
    input_partitions,
    topics_to_delete,
    unread_topics,
)
from pykstreams.runtime.reset.targets import OffsetClient, Target, offsets_for
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.topology.plan import TopologyPlan


class ResetClient(OffsetClient, Protocol):
    """The methods of an administrative client that this module calls."""

    def partition_counts(self) -> dict[str, int]: ...

    def delete_topics(self, topics: Collection[str]) -> None: ...


class ResetGroup(Protocol):
    """A group that this module looks at and commits for."""

    def view(self) -> GroupView: ...

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets: ...

    def set_offsets(self, offsets: Offsets) -> None: ...

    def remove(self, members: Collection[GroupMember]) -> None: ...


class Reset:
    """The reset of one application."""

    def __init__(
        self, plan: TopologyPlan, config: StreamsConfig, *, client: ResetClient, group: ResetGroup, clock: Clock
    ) -> None:
        self._plan = plan
        self._config = config
        self._client = client
        self._group = group
        self._state = LocalState(config, clock)

    def check_members(self, *, force: bool) -> tuple[GroupMember, ...]:
        """Returns the members to remove, none without ``force``; ``ClusterError`` names those that are in the way."""
        view = self._group.view()
        if not view.members or (force and view.protocol == "classic"):
            return view.members
        listed = "".join(f"\n- {one.member_id} (client {one.client_id}, {one.host})" for one in view.members)
        cure = "stop all workers, and wait until session.timeout.ms is over for those that were killed"
        if not force:
            cure += ", or remove them with --force (one that lives joins again)"
        else:
            cure += "; members of a streams group cannot be removed by a tool"
        raise ClusterError(
            f"group {self._config.application_id!r} ({view.protocol}) has {len(view.members)} members, so it is not "
            f"reset; {cure}:{listed}"
        )

    def plan(self, target: Target, *, internal_topics: Collection[str] = (), keep_state: bool = False) -> ResetPlan:
        """Reads everything that a reset would change; changes nothing."""
        existing = self._client.partition_counts()
        places = input_partitions(self._plan, existing)
        committed = {place: offset for place, (offset, _) in self._group.committed(places).items()} if places else {}
        wanted = offsets_for(target, places, committed, self._client)
        topics, left_alone = topics_to_delete(self._plan, existing, internal_topics)
        folder, tasks = (None, ()) if keep_state else self._state.found()
        is_known = bool(committed or topics or left_alone or folder) or self._group.view().exists
        return ResetPlan(
            self._config.application_id,
            tuple(OffsetChange(place, committed.get(place), offset) for place, offset in wanted.items()),
            topics,
            left_alone,
            unread_topics(self._plan, existing),
            folder,
            tasks,
            looked_in=None if keep_state or folder is not None or not self._has_stores() else str(self._state.path),
            absent_from=None if is_known else ",".join(self._config.bootstrap_servers),
        )

    def _has_stores(self) -> bool:
        return bool(self._plan.global_stores) or any(part.stores for part in self._plan.subtopologies)

    def carry_out(self, plan: ResetPlan, members: Collection[GroupMember] = ()) -> None:
        """Does what a plan says, with the state locked from the start: ``LockError`` where a process works on it."""
        with ExitStack() as stack:
            if plan.folder is not None:
                stack.enter_context(self._state)
            if members:
                self._group.remove(members)
            if plan.offsets:  # without metadata: partition times and notes of the past go, too
                self._group.set_offsets({change.place: (change.after, "") for change in plan.offsets})
            else:  # no coordinator refuses it for members that have come since they were looked for
                self.check_members(force=False)
            self._client.delete_topics(plan.topics)
            if plan.folder is not None:
                self._state.delete()


class LocalState:
    """The state of an application on this machine; as a context it is locked."""

    def __init__(self, config: StreamsConfig, clock: Clock) -> None:
        self._directory = StateDirectory.of(config, clock=clock)
        self.path = self._directory.path

    def found(self) -> tuple[str | None, tuple[str, ...]]:
        """The folder, if there is state in it, and the tasks whose state that is."""
        tasks = tuple(map(str, self._directory.tasks()))
        has_any = bool(tasks) or any(self._directory.path.glob("global-*"))
        return (str(self._directory.path) if has_any else None), tasks

    def __enter__(self) -> LocalState:
        try:
            for task_id in self._directory.tasks():
                self._directory.lock(task_id)
            _check_unused(self._directory.global_in_use())
        except BaseException:
            self._directory.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._directory.close()

    def delete(self) -> None:
        """Deletes the stores of all tasks, which are locked, and the global stores that nobody uses."""
        for task_id in self._directory.tasks():
            self._directory.wipe(task_id)
        self._directory.clean_up_global()
        _check_unused(self._directory.global_in_use())


def _check_unused(in_use: Collection[Path]) -> None:
    if in_use:
        raise LockError(
            f"global stores {[str(path) for path in in_use]} are in use by another process; stop it, and reset again"
        )
