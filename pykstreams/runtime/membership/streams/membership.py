"""The place of a worker in a streams group: the brokers assign tasks, of Java's members and ours alike (KIP-1071).

How a task moves: the coordinator leaves it out of its owner's tasks; the owner commits and closes it, and says with its
next heartbeat which tasks it has; then the coordinator gives it to its next owner. All other tasks go on meanwhile.

Invariant: a task runs only when the topics that this worker sees have its partitions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterUnavailableError, MissingSourceTopicError, TopologyError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.clients.coordinators.coordinator_requests import MemberOf
from pykstreams.runtime.clients.coordinators.group_metadata import group_metadata
from pykstreams.runtime.clients.coordinators.streams_heartbeat import (
    LEAVING,
    NO_TASKS,
    Endpoint,
    GroupStatus,
    Heartbeat,
    Heartbeaten,
    Tasks,
)
from pykstreams.runtime.clients.errors import GROUP_IS_GONE, OUT_OF_STREAMS_GROUP, GroupError
from pykstreams.runtime.clients.positions import CommittedOffsets, Offsets
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.membership.member_offsets import OffsetRequests, committed_by_now, put_off
from pykstreams.runtime.membership.member_state import State
from pykstreams.runtime.membership.membership import Assignment, Lost
from pykstreams.runtime.membership.refusals import (
    NOT_TOLD_OF_CLOSE,
    no_member_now,
    put_out,
    shutdown_requested,
    tasks_lost,
)
from pykstreams.runtime.membership.session_events import Expelled, Refused
from pykstreams.runtime.membership.session_times import SessionTimes
from pykstreams.runtime.membership.streams.session import EndpointsChanged, Event, StatusChanged, Targeted
from pykstreams.runtime.membership.task_names import task_names, warn_of_lost
from pykstreams.runtime.topics.topic_admin import TopicLayout

log = logging.getLogger(__name__)

_LOOK_AGAIN_S: Final = 1.0
_HEARTBEATS_BEFORE_ENDING: Final = 2
"""How long source topics may be missing (``StreamThread.handleMissingSourceTopicsWithTimeout``, 4.3.1)."""
_NOT_NOW: Final = frozenset(
    {
        "STALE_MEMBER_EPOCH",  # the epoch has moved; if the member is out, its heartbeat is told
        "ILLEGAL_GENERATION",
        "UNKNOWN_TOPIC_OR_PART",
    }
)
_NEVER_IN: Final = frozenset({"UNKNOWN_MEMBER_ID", GROUP_IS_GONE, "INCONSISTENT_GROUP_PROTOCOL"})
"""Answers to a member that leaves, none of whose attempts to join has come to the coordinator."""


class Session(Protocol):
    """The methods of a session that a membership calls (``StreamsSession``)."""

    @property
    def member_id(self) -> str: ...

    @property
    def epoch(self) -> int | None: ...

    @property
    def may_be_member(self) -> bool: ...

    def start(self) -> None: ...

    def join(self) -> None: ...

    def own(self, tasks: Tasks) -> None: ...

    def poll(self, timeout_s: float) -> Event | None: ...

    @property
    def times(self) -> SessionTimes: ...

    def silent_s(self) -> float: ...

    def expel(self, reason: str) -> None: ...

    def stop(self) -> None: ...


class Requests(OffsetRequests, Protocol):
    """The requests that a worker makes by itself, on a connection beside that of the session."""

    def heartbeat(self, said: Heartbeat) -> Heartbeaten: ...


class StreamsMembership:
    """The back end; see ``Membership`` for what each method promises.

    :param prepare: looks at the topics again, when tasks are assigned whose partitions were not there.
    :param state: is given the standby tasks.
    :param hosts: takes what the coordinator says of other instances.
    """

    def __init__(
        self,
        session: Session,
        requests: Requests,
        *,
        prepare: Callable[[], TopicLayout],
        state: State,
        hosts: GroupHosts,
        clock: Clock,
    ) -> None:
        self._session = session
        self._requests = requests
        self._prepare = prepare
        self._state = state
        self._hosts = hosts
        self._clock = clock
        self._warnings = RepeatedWarnings(log, clock)
        self._on_revoked: Callable[[frozenset[TaskId]], None] = lambda _: None
        self._layout = TopicLayout({}, {})
        self._owned: frozenset[TaskId] = frozenset()
        self._target: Tasks | None = None
        """Tasks that wait until the topics can be looked at."""
        self._look_at = 0.0
        self._taken: Tasks | None = None
        """Tasks to report as owned, when the worker acts on them."""
        self._sources_missing: _MissingSources | None = None
        self._is_delayed = False
        """Whether the group waits for more members before it shares out tasks (``group.streams.initial...delay``)."""
        self._changed = False
        self._lost = False

    def start(self, layout: TopicLayout, on_revoked: Callable[[frozenset[TaskId]], None]) -> None:
        self._layout = layout
        self._on_revoked = on_revoked
        self._state.begin()
        self._session.start()
        self._session.join()

    def follow(self, layout: TopicLayout) -> None:
        self._layout = layout  # the coordinator looks at the topics by itself

    def poll(self, timeout: float = 0) -> Assignment | Lost | None:
        if self._lost:
            return Lost()
        match self._session.poll(timeout):
            case None:
                pass
            case Targeted(tasks):
                self._target, self._look_at = tasks, 0.0
            case EndpointsChanged(endpoints):
                self._hosts.update(
                    {_host(one): one.active for one in endpoints}, {_host(one): one.standby for one in endpoints}
                )
            case StatusChanged(statuses, heartbeat_s):
                self._obey(statuses, heartbeat_s)
            case Expelled(reason):
                self._all_lost(reason)
                return Lost()
            case Refused(error):
                raise error
        if self._sources_missing is not None:
            self._sources_missing.check(self._clock.monotonic())
        if self._target is not None and not self._is_premature(self._target) and self._can_be_seen(self._target):
            self._reconcile(self._target)
        if self._changed:
            self._changed = False
            return Assignment(self._owned, self._layout)
        return None

    def ack(self, change: Assignment | Lost) -> None:
        if isinstance(change, Lost):
            self._lost = False
            self._session.join()
        elif self._taken is not None:
            self._session.own(self._taken)
            self._taken = None

    def may_commit(self) -> bool:
        return self._session.epoch is not None

    @property
    def times(self) -> SessionTimes:
        return self._session.times

    def silent_s(self) -> float:
        return self._session.silent_s()

    def commit(self, offsets: Offsets) -> bool:
        self._refuse_when_lost()
        if not offsets:
            return True
        member = self._member()
        if member is None:
            return False
        try:
            self._requests.commit(member, offsets)
        except GroupError as error:
            if error.name in OUT_OF_STREAMS_GROUP or error.name == GROUP_IS_GONE:
                self._session.expel(str(error))
                raise put_out(error) from error
            put_off(error, _NOT_NOW)
            return False
        return True

    def committed(self, partitions: Collection[TopicPartition]) -> CommittedOffsets | None:
        return committed_by_now(self._requests, partitions)

    def transaction_metadata(self) -> bytes:
        self._refuse_when_lost()
        member = self._member()
        if member is None:
            raise no_member_now()
        return group_metadata(self._requests.group, member)

    def close(self, leave: bool) -> None:
        """Leaves the group in any case, as Kafka Streams does: a member that is silent has no place to keep."""
        self._session.stop()
        if self._session.may_be_member:
            try:
                self._requests.heartbeat(Heartbeat(self._session.member_id, LEAVING))
            except GroupError as error:
                if self._session.epoch is not None or error.name not in _NEVER_IN:
                    log.warning(
                        NOT_TOLD_OF_CLOSE,
                        "its session has ended (group.streams.session.timeout.ms of the brokers)",
                        error,
                    )
        self._requests.close()
        self._state.end()

    def _member(self) -> MemberOf | None:
        epoch = self._session.epoch
        return None if epoch is None else MemberOf(epoch, self._session.member_id)

    def _is_premature(self, tasks: Tasks) -> bool:
        """Whether a member that has no task yet has only not been given one."""
        return self._is_delayed and not self._owned and tasks == NO_TASKS

    def _can_be_seen(self, tasks: Tasks) -> bool:
        """Whether the partitions of tasks can be seen; looks at the topics again, now and then, where they cannot."""
        if self._clock.monotonic() < self._look_at:
            return False
        wanted = tasks.active | tasks.standby | tasks.warmup
        if wanted <= self._layout.inputs.keys():
            return True
        try:
            self._layout = self._prepare()
        except ClusterUnavailableError as error:
            self._warnings.warn("look", "the assignment waits until the topics can be looked at: %s", error)
        if unknown := wanted.difference(self._layout.inputs):
            self._look_at = self._clock.monotonic() + _LOOK_AGAIN_S
            self._warnings.warn(
                "unknown",
                "tasks %s were assigned, whose partitions cannot be seen yet; if this stays so, the topology of the "
                "group is another than that of this worker",
                task_names(unknown),
            )
            return False
        return True

    def _reconcile(self, tasks: Tasks) -> None:
        self._target = None
        log.info(
            "in epoch %s: active tasks %s; standby tasks %s",
            self._session.epoch,
            task_names(tasks.active),
            task_names(tasks.standby | tasks.warmup),
        )
        standby = {task: self._layout.inputs[task] for task in tasks.standby | tasks.warmup}
        # before tasks are revoked: one that is to be a standby here goes on with its stores open
        self._state.assigned(standby, tasks.active)
        if gone := self._owned - tasks.active:
            self._on_revoked(gone)
        self._owned = tasks.active
        self._taken = tasks
        self._changed = True

    def _obey(self, statuses: Mapping[int, str], heartbeat_s: float) -> None:
        if GroupStatus.SHUTDOWN_APPLICATION in statuses:
            raise shutdown_requested(statuses[GroupStatus.SHUTDOWN_APPLICATION])
        if (wrong := statuses.get(GroupStatus.INCORRECTLY_PARTITIONED_TOPICS)) is not None:
            raise TopologyError(
                f"the brokers give nobody a task, because topics have the wrong number of partitions: {wrong}"
            )
        self._is_delayed = GroupStatus.ASSIGNMENT_DELAYED in statuses
        missing = statuses.get(GroupStatus.MISSING_SOURCE_TOPICS)
        self._sources_missing = None
        if missing is not None:
            patience_s = _HEARTBEATS_BEFORE_ENDING * heartbeat_s
            self._sources_missing = _MissingSources(missing, self._clock.monotonic() + patience_s)
            log.warning("source topics are missing, and are waited for %g s: %s", patience_s, missing)
        for status in (GroupStatus.MISSING_INTERNAL_TOPICS, GroupStatus.ASSIGNMENT_DELAYED, GroupStatus.STALE_TOPOLOGY):
            if status in statuses:
                log.info("the group is %s: %s", status.name, statuses[status])

    def _all_lost(self, reason: str) -> None:
        warn_of_lost(self._owned, reason)
        self._state.lost()
        self._owned = frozenset()
        self._target = self._taken = None
        self._sources_missing = None
        self._is_delayed = False
        self._changed = False
        self._lost = True

    def _refuse_when_lost(self) -> None:
        if self._lost or (self._session.epoch is None and self._owned):
            raise tasks_lost()


class _MissingSources:
    """Source topics that the coordinator misses, and until when they are waited for."""

    def __init__(self, detail: str, until: float) -> None:
        self._detail = detail
        self._until = until

    def check(self, now: float) -> None:
        if now >= self._until:
            raise MissingSourceTopicError(f"source topics of this application are missing: {self._detail}")


def _host(endpoint: Endpoint) -> HostInfo:
    return HostInfo(endpoint.host, endpoint.port)
