"""The place of a worker in a classic group that Java's members may share (``StreamsPartitionAssignor``, 4.3.1).

How a task moves: the leader leaves it out of its owner's assignment; the owner commits, closes and joins again without
it; in the generation that begins then, its next owner gets it. All other tasks go on meanwhile.

Invariant: a task runs only after ``paired_tasks`` has found its partitions to be those of this topology; and nothing is
committed while a join is under way, for its generation might be over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterUnavailableError, MissingSourceTopicError, TaskAssignmentError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.clients.coordinators.coordinator_requests import MemberOf
from pykstreams.runtime.clients.coordinators.group_metadata import group_metadata
from pykstreams.runtime.clients.errors import INSTANCE_ID_TAKEN, OUT_OF_CLASSIC_GROUP, GroupError
from pykstreams.runtime.clients.positions import CommittedOffsets, Offsets
from pykstreams.runtime.membership.assignment.check import (
    MemberAssignment,
    SubtopologyInputs,
    WrongAssignmentError,
    paired_tasks,
)
from pykstreams.runtime.membership.classic.joins import Joins
from pykstreams.runtime.membership.classic.session import Event, RejoinWanted, Synced
from pykstreams.runtime.membership.classic.subscriptions import Introduction, Subscriptions
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.member_offsets import OffsetRequests, committed_by_now, put_off
from pykstreams.runtime.membership.member_state import State
from pykstreams.runtime.membership.membership import Assignment, Lost
from pykstreams.runtime.membership.protocol.assignment_info import AT_ONCE, NEVER, AssignmentInfo, decode_assignment
from pykstreams.runtime.membership.protocol.assignor_error import AssignorError
from pykstreams.runtime.membership.protocol.consumer_protocol import (
    NO_GENERATION,
    decode_consumer_assignment,
)
from pykstreams.runtime.membership.refusals import (
    NOT_TOLD_OF_CLOSE,
    no_member_now,
    put_out,
    shutdown_requested,
    tasks_lost,
)
from pykstreams.runtime.membership.session_events import Expelled, Refused
from pykstreams.runtime.membership.session_times import SessionTimes
from pykstreams.runtime.membership.task_names import task_names, warn_of_lost
from pykstreams.runtime.topics.topic_admin import TopicLayout

log = logging.getLogger(__name__)

_LOOK_AGAIN_MS: Final = 1_000
_MISFIT_S: Final = 10.0
"""For how long assignments may not fit the topics: brokers learn of new partitions at different times."""
_LONG_JOIN_S: Final = 10.0
"""Longer than the first members of a group are kept waiting for others: 3 s, and 3 s more for each that comes meanwhile
(``group.initial.rebalance.delay.ms`` of the brokers)."""
_LONG_JOIN: Final = (
    "joining the group has taken %d s: it waits for members that do not answer. One that was killed is a member until "
    "its session.timeout.ms has passed, and one of Java (45 s by default) also after KafkaStreams.close(), unless it "
    "was closed with CloseOptions.timeout(...).withGroupMembershipOperation(LEAVE_GROUP); one that is busy with "
    "records has until its max.poll.interval.ms"
)

_NOT_NOW: Final = frozenset(
    {
        "REBALANCE_IN_PROGRESS",
        # a broker that has just started does not know of all topics; the topic watch reports one that was deleted
        "UNKNOWN_TOPIC_OR_PART",
    }
)


class Session(Protocol):
    """The methods of a session that a membership calls (``ClassicSession``)."""

    @property
    def member_id(self) -> str: ...

    def start(self) -> None: ...

    def join(self, subscription: bytes) -> None: ...

    def poll(self, timeout_s: float) -> Event | None: ...

    @property
    def times(self) -> SessionTimes: ...

    def silent_s(self) -> float | None: ...

    def expel(self, error: GroupError) -> None: ...

    def stop(self) -> None: ...


class Requests(OffsetRequests, Protocol):
    """The requests that a worker makes by itself, on a connection beside that of the session."""

    def leave(self, member_id: str, reason: str) -> None: ...


class ClassicMembership:
    """The back end; see ``Membership`` for what each method promises.

    :param stateful: the sub-topologies with state.
    :param prepare: looks at the topics again, when an assignment names partitions that were not there.
    :param state: the state that this member reports, and is given standby tasks of.
    :param hosts: takes what assignments say of other instances.
    """

    def __init__(
        self,
        session: Session,
        requests: Requests,
        introduction: Introduction,
        *,
        stateful: frozenset[int],
        prepare: Callable[[], TopicLayout],
        state: State,
        hosts: GroupHosts,
        clock: Clock,
    ) -> None:
        self._session = session
        self._requests = requests
        self._subscriptions = Subscriptions(introduction)
        self._stateful = stateful
        self._prepare = prepare
        self._state = state
        self._hosts = hosts
        self._on_revoked: Callable[[frozenset[TaskId]], None] = lambda _: None
        self._layout = TopicLayout({}, {})
        self._member: MemberOf | None = None
        self._generation = NO_GENERATION
        self._owned: frozenset[TaskId] = frozenset()
        self._warnings = RepeatedWarnings(log, clock)
        self._joins = Joins(clock)
        self._clock = clock
        self._misfit_since: float | None = None
        """When the first assignment came of those that do not fit the topics, if the last one does not."""
        self._changed = False
        self._lost = False

    def start(self, layout: TopicLayout, on_revoked: Callable[[frozenset[TaskId]], None]) -> None:
        self._layout = layout
        self._on_revoked = on_revoked
        self._state.begin()
        self._session.start()
        self._join()

    def follow(self, layout: TopicLayout) -> None:
        has_changed = layout.inputs != self._layout.inputs
        self._layout = layout
        if has_changed:
            self._joins.soon = "the topics have changed"  # where a join is under way, it does not say so
            self._rejoin(self._joins.soon)

    def poll(self, timeout: float = 0) -> Assignment | Lost | None:
        if self._lost:
            return Lost()
        match self._session.poll(timeout):
            case None:
                if self._joins.under_way:
                    self._report_long_join()
                elif self._joins.soon is not None:
                    self._rejoin(self._joins.soon)
                elif self._joins.is_due:
                    self._rejoin("the leader wants to see whether tasks can move")
            case RejoinWanted():
                self._rejoin("the group shares out tasks anew")
            case Synced(member, assignment):
                self._synced(member, assignment)
            case Expelled(reason):
                self._all_lost(reason)
                return Lost()
            case Refused(error):
                raise error
        if self._changed:
            self._changed = False
            return Assignment(self._owned, self._layout)
        return None

    def ack(self, change: Assignment | Lost) -> None:
        if isinstance(change, Lost):
            self._lost = False
            self._join()

    def may_commit(self) -> bool:
        return self._member is not None and not self._joins.under_way

    @property
    def times(self) -> SessionTimes:
        return self._session.times

    def silent_s(self) -> float | None:
        return self._session.silent_s()

    def commit(self, offsets: Offsets) -> bool:
        self._refuse_when_lost()
        if not offsets:
            return True
        if self._member is None or self._joins.under_way:
            return False
        try:
            self._requests.commit(self._member, offsets)
        except GroupError as error:
            self._check_standing(error)
            put_off(error, _NOT_NOW)
            return False
        return True

    def committed(self, partitions: Collection[TopicPartition]) -> CommittedOffsets | None:
        return committed_by_now(self._requests, partitions)

    def transaction_metadata(self) -> bytes:
        self._refuse_when_lost()
        if self._member is None or self._joins.under_way:
            raise no_member_now()
        return group_metadata(self._requests.group, self._member)

    def close(self, leave: bool) -> None:
        self._session.stop()
        member_id = self._session.member_id  # not before: the coordinator may name it until then
        if leave and (member_id or self._requests.group.instance_id is not None):  # a static one is known by its name
            try:
                self._requests.leave(member_id, "the worker was closed")
            except GroupError as error:
                if error.name != "UNKNOWN_MEMBER_ID":  # then it is out of the group already
                    log.warning(NOT_TOLD_OF_CLOSE, "session.timeout.ms has passed", error)
        self._requests.close()
        self._state.end()

    def _join(self) -> None:
        self._joins.begin()
        self._session.join(
            self._subscriptions.next(self._layout, self._owned, self._generation, self._state.offset_sums())
        )

    def _report_long_join(self) -> None:
        waited_s = self._joins.waited_s
        if waited_s > _LONG_JOIN_S:
            self._warnings.warn("join", _LONG_JOIN, waited_s)

    def _rejoin(self, why: str) -> None:
        if self._member is None or self._joins.under_way:
            return
        log.info("joins the group again: %s", why)
        self._join()

    def _synced(self, member: MemberOf, data: bytes) -> None:
        self._member, self._generation = member, member.generation
        self._joins.end()
        found = decode_consumer_assignment(data)
        info = decode_assignment(found.user_data) if found.user_data else AssignmentInfo()
        self._obey_error(info.error)
        active = self._checked(MemberAssignment(tuple(sorted(found.partitions)), info))
        if active is None:
            return
        log.info(
            "in generation %d: active tasks %s; standby tasks %s",
            member.generation,
            task_names(active),
            task_names(info.standby),
        )
        # before tasks are revoked: one that is to be a standby here goes on with its stores open
        self._state.assigned(info.standby, active)
        gone = self._owned.difference(active)
        if gone:
            self._on_revoked(gone)
        self._owned = frozenset(active)
        self._changed = True
        self._hosts.update(info.hosts, info.standby_hosts)
        self._follow_up(info, gave_up=bool(gone))

    def _checked(self, assignment: MemberAssignment) -> frozenset[TaskId] | None:
        """The active tasks, which fit the topology; ``None``: not yet, or not known; the group is asked again soon.

        ``WrongAssignmentError``: what the group says has not fitted for a while.
        """
        try:
            active = frozenset(self._paired(assignment))
        except WrongAssignmentError as error:
            log.info("looks at the topics again: %s", error)
            try:
                self._layout = self._prepare()
                active = frozenset(self._paired(assignment))
            except ClusterUnavailableError as unavailable:
                log.warning("the assignment waits until the topics can be looked at: %s", unavailable)
                self._joins.again_in(_LOOK_AGAIN_MS)
                return None
            except WrongAssignmentError as misfit:
                self._doubt(misfit)
                return None
        self._misfit_since = None
        return active

    def _doubt(self, misfit: WrongAssignmentError) -> None:
        """Asks again what the leader sees, or raises the error where it has been asked for long enough."""
        now = self._clock.monotonic()
        if self._misfit_since is None:
            self._misfit_since = now
        if now - self._misfit_since >= _MISFIT_S:
            raise misfit
        self._warnings.warn("misfit", "the group is asked again, for %g s: %s", _MISFIT_S, misfit)
        self._joins.again_in(_LOOK_AGAIN_MS)

    def _paired(self, assignment: MemberAssignment) -> Mapping[TaskId, frozenset[TopicPartition]]:
        topics: dict[int, set[str]] = {}
        for task, places in self._layout.inputs.items():
            topics.setdefault(task.subtopology, set()).update(place.topic for place in places)
        subtopologies = {
            number: SubtopologyInputs(frozenset(names), number in self._stateful) for number, names in topics.items()
        }
        return paired_tasks(assignment, subtopologies, self._layout.partitions)

    def _obey_error(self, error: int) -> None:
        match error:
            case AssignorError.NONE:
                return
            case AssignorError.INCOMPLETE_SOURCE_TOPIC_METADATA:
                raise MissingSourceTopicError(
                    "the leader of the group misses source topics of this application; its log names them. Create "
                    "them, and start again"
                )
            case AssignorError.ASSIGNMENT_ERROR:
                raise TaskAssignmentError(
                    "the leader of the group could not share out the tasks; its log says why. If instances run "
                    "different versions of the topology, stop those of one of them"
                )
            case AssignorError.SHUTDOWN_REQUESTED:
                raise shutdown_requested()
            case _:
                raise TaskAssignmentError(
                    f"the leader of the group answered with error {error}, which this release does not know; look at "
                    "the log of the leader"
                )

    def _follow_up(self, info: AssignmentInfo, *, gave_up: bool) -> None:
        if self._member is None:  # giving up tasks has shown that the group goes on without us
            return
        at_ms = self._subscriptions.answered(info)
        self._joins.again_at(NEVER)
        if gave_up:
            self._joins.soon = "tasks were given up for others"
        elif at_ms == AT_ONCE:
            self._joins.soon = "tasks are to follow that others give up"
        else:
            self._joins.again_at(at_ms)

    def _check_standing(self, error: GroupError) -> None:
        if error.name in OUT_OF_CLASSIC_GROUP or error.name == INSTANCE_ID_TAKEN:
            self._member = None
            self._session.expel(error)
            raise put_out(error) from error

    def _all_lost(self, reason: str) -> None:
        warn_of_lost(self._owned, reason)
        self._state.lost()
        self._member = None
        self._generation = NO_GENERATION
        self._owned = frozenset()
        self._misfit_since = None
        self._changed = False
        self._joins.end()
        self._lost = True

    def _refuse_when_lost(self) -> None:
        if self._lost or (self._member is None and self._owned):
            raise tasks_lost()
