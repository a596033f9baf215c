"""One member's life in a classic group: it joins, leads when it is chosen, and says that it lives.

A thread of its own sends the requests, because an answer to a join may take as long as the slowest member needs, and
because a worker that is busy with one record for long is still alive. What happens comes to the worker as events, which
it takes when it polls; and the worker decides when to join, because only it can say what it owns.

Invariant: there is one join at a time, and after ``Expelled`` none before the worker has asked for it: a member that
silently joined again could commit what others have taken up.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterUnavailableError, ConfigError, StreamsError
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.clients.coordinators.coordinator_requests import MemberOf
from pykstreams.runtime.clients.coordinators.group_coordinator import Joined, NamedFirst
from pykstreams.runtime.clients.errors import INSTANCE_ID_TAKEN, OUT_OF_CLASSIC_GROUP, GroupError
from pykstreams.runtime.membership.refusals import (
    ASKED_AGAIN,
    JOINS_LATER,
    NOT_TOLD,
    SILENT_FOR_TOO_LONG,
    join_refused,
)
from pykstreams.runtime.membership.session_events import Expelled, Refused
from pykstreams.runtime.membership.session_thread import IDLE_S, LONGEST_BACKOFF_S, SessionThread, backoff_s
from pykstreams.runtime.membership.session_times import SessionTimes

log = logging.getLogger(__name__)

Lead: TypeAlias = Callable[[Mapping[str, bytes]], Mapping[str, bytes]]
"""Subscriptions of all members -> assignments of all members."""

_NO_ID: Final = ""

_OTHER_PROTOCOL: Final = (
    "the group has members that do not share out tasks as this worker does, so it waits until the last of them has "
    "left: those with group.protocol=streams (this one has classic), those of a release of pykstreams that had topics "
    "for its tasks, or another program with this application.id. In a "
    "rolling restart they go on with their tasks meanwhile; a program that was killed stays a member until its "
    "session.timeout.ms has passed"
)


class GroupRequests(Protocol):
    """The requests to the coordinator that a session makes (``GroupCoordinator``)."""

    def join(self, member_id: str, subscription: bytes) -> Joined | NamedFirst: ...

    def sync(self, member: MemberOf, assignments: Mapping[str, bytes]) -> bytes: ...

    def heartbeat(self, member: MemberOf) -> None: ...

    def leave(self, member_id: str, reason: str) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class RejoinWanted:
    """The group shares out tasks anew, and waits for this member to join."""


@dataclass(frozen=True, slots=True)
class Synced:
    """This member is in a new generation, with this assignment."""

    member: MemberOf
    assignment: bytes


Event: TypeAlias = RejoinWanted | Synced | Expelled | Refused


class ClassicSession:
    """The session of one member; ``step`` is for its thread, all else for the worker's.

    :param lead: makes the assignments, where this member is chosen; it runs on the session's thread.
    :param max_poll_s: after how long without ``poll`` the member leaves, so that others get its tasks
        (``max.poll.interval.ms``).
    :param is_static: whether it has a ``group.instance.id``, and so keeps its place when it is silent.
    """

    def __init__(
        self,
        name: str,
        requests: GroupRequests,
        lead: Lead,
        *,
        clock: Clock,
        times: SessionTimes,
        max_poll_s: float,
        is_static: bool,
    ) -> None:
        self._requests = requests
        self._lead = lead
        self._clock = clock
        self.times = times
        self._is_static = is_static
        self._warnings = RepeatedWarnings(log, clock)
        self._thread: SessionThread[Event] = SessionThread(
            name, self.step, refuse=self._refuse, close=requests.close, clock=clock, max_poll_s=max_poll_s
        )
        self._changed = self._thread.changed
        self._wish: bytes | None = None
        self._member: MemberOf | None = None
        self._member_id = _NO_ID
        self._knows_of_rejoin = False
        self._failures = 0
        self._heartbeat_at = 0.0
        self._answered_from = 0.0
        """When the last request was sent that the coordinator has answered; of a leader, when its generation began."""
        self._led: MemberOf | None = None
        """The place in which it has shared out tasks last, or has tried to."""
        self._leads = False
        """Whether it shares out tasks: it sends nothing meanwhile, and its session has begun anew."""
        self._was_put_out = False
        """Whether it is no member any more, and the worker does not know that yet."""

    @property
    def member_id(self) -> str:
        """The id that the coordinator has given; empty before that."""
        return self._member_id

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def join(self, subscription: bytes) -> None:
        """Joins, or joins again, with this subscription; ``Synced`` says when it is done."""
        with self._changed:
            self._wish = subscription
            self._knows_of_rejoin = False
            self._failures = 0
            self._thread.wake()

    def poll(self, timeout_s: float) -> Event | None:
        """Returns the next event, waits for it if need be; to be called at least every ``max.poll.interval.ms``."""
        event = self._thread.poll(timeout_s)
        if isinstance(event, Expelled):
            self._was_put_out = False
        return event

    def silent_s(self) -> float | None:
        """Seconds since the last request that the coordinator has answered was sent, 0 for one that is no member.

        ``None`` while a join is under way: the coordinator keeps a member whose join waits for those of others. One
        that had to be asked for again may not have reached it. Infinite from the end of the membership until ``poll``
        has returned it: others may have the tasks already.
        """
        with self._changed:
            if self._member is None:
                return math.inf if self._was_put_out else 0.0
            if self._wish is not None and not self._failures and not self._leads:
                return None
            return self._clock.monotonic() - self._answered_from

    def expel(self, error: GroupError) -> None:
        """Notes what a request of the worker's own has shown: the group goes on without this member.

        A member whose ``group.instance.id`` another one has taken is refused: if it joined, it would fence that one.
        """
        if error.name == INSTANCE_ID_TAKEN:
            self._refuse(_refusal(error, self.times.session_s))
            return
        with self._changed:
            self._expel(error)

    def stop(self) -> None:
        """Ends the thread, with a request that may be under way; the group is not told.

        A leader that is looking at topics which nobody shows is left behind after a while.
        """
        self._thread.stop()

    def step(self) -> float:
        """Does what is due; returns for how many seconds nothing else is."""
        wish, member = self._wish, self._member
        if wish is not None:
            try:
                return self._join(wish)
            finally:
                self._leads = False
        if member is None:
            return IDLE_S
        if self._thread.was_left_alone():
            self._leave_for_silence(member)
            return IDLE_S
        now = self._clock.monotonic()
        if now >= self._heartbeat_at:
            self._heartbeat_at = now + self.times.heartbeat_s
            self._heartbeat(member)
        return max(0.0, self._heartbeat_at - self._clock.monotonic())

    def _join(self, subscription: bytes) -> float:
        try:
            joined = self._requests.join(self._member_id, subscription)
            if isinstance(joined, NamedFirst):
                self._member_id = joined.member_id
                return 0.0
            self._member_id = joined.member.member_id
            assignments = {} if joined.subscriptions is None else self._share_out(joined.member, joined.subscriptions)
            sent_at = self._clock.monotonic()
            assignment = self._requests.sync(joined.member, assignments)
        except GroupError as error:
            return self._not_joined(error)
        except ClusterUnavailableError as error:  # the others wait for us, until our session is over
            self._warnings.warn("lead", "this worker leads the group and could not share out tasks yet: %s", error)
            return self._backoff()
        except StreamsError as error:
            self._refuse(error)
            return IDLE_S
        with self._changed:
            self._failures = 0
            self._member = joined.member
            self._answered_from = sent_at
            self._heartbeat_at = self._clock.monotonic() + self.times.heartbeat_s
            self._wish = None
            self._knows_of_rejoin = False
            self._thread.report(Synced(joined.member, assignment))
        return 0.0

    def _share_out(self, member: MemberOf, subscriptions: Mapping[str, bytes]) -> Mapping[str, bytes]:
        with self._changed:
            self._leads = True
            if member != self._led:  # a leader that joins again stays in its generation, and its session goes on
                self._led, self._answered_from = member, self._clock.monotonic()
        return self._lead(subscriptions)

    def _not_joined(self, error: GroupError) -> float:
        if self._thread.is_stopping:
            return IDLE_S
        match error.name:
            case "REBALANCE_IN_PROGRESS":
                return 0.0
            case name if name in OUT_OF_CLASSIC_GROUP:
                return self._start_anew(error)
            case "INCONSISTENT_GROUP_PROTOCOL":
                self._warnings.warn("protocol", "%s", _OTHER_PROTOCOL)
            case _ if error.may_pass and not self._failures:
                log.info(JOINS_LATER, error)  # brokers that were started a moment ago refuse the first request
            case _ if error.may_pass:
                self._warnings.warn(error.name, JOINS_LATER, error)
            case _:
                self._refuse(_refusal(error, self.times.session_s))
                return IDLE_S
        return self._backoff()

    def _backoff(self) -> float:
        self._failures += 1
        return backoff_s(self._failures)

    def _start_anew(self, error: GroupError) -> float:
        """A member that was in the group has lost its tasks; one that was not just asks for another id."""
        with self._changed:
            if self._member is None:
                if error.name == "UNKNOWN_MEMBER_ID":
                    self._member_id = _NO_ID
                return 0.0
            self._expel(error)
        return IDLE_S

    def _heartbeat(self, member: MemberOf) -> None:
        sent_at = self._clock.monotonic()
        try:
            self._requests.heartbeat(member)
        except GroupError as error:
            self._no_heartbeat(member, error, sent_at)
        else:
            self._answered_from = sent_at

    def _no_heartbeat(self, member: MemberOf, error: GroupError, sent_at: float) -> None:
        with self._changed:
            if self._thread.is_stopping or self._member is not member:
                return
            match error.name:
                case "REBALANCE_IN_PROGRESS":
                    self._answered_from = sent_at
                    if self._wish is None and not self._knows_of_rejoin:
                        self._knows_of_rejoin = True
                        self._thread.report(RejoinWanted())
                case name if name in OUT_OF_CLASSIC_GROUP:
                    self._expel(error)
                case _ if error.may_pass:
                    self._heartbeat_at = self._clock.monotonic() + min(self.times.heartbeat_s, LONGEST_BACKOFF_S)
                    self._warnings.warn(error.name, ASKED_AGAIN, error)
                case _:
                    self._refuse(_refusal(error, self.times.session_s))

    def _leave_for_silence(self, member: MemberOf) -> None:
        if not self._is_static:
            try:
                self._requests.leave(member.member_id, SILENT_FOR_TOO_LONG)
            except GroupError as error:
                log.info(NOT_TOLD, error)
        with self._changed:
            self._lose(SILENT_FOR_TOO_LONG, keeps_id=self._is_static)

    def _expel(self, error: GroupError) -> None:
        # of an older generation it is still a member; with another id it would wait for its own end
        self._lose(str(error), keeps_id=error.name == "ILLEGAL_GENERATION")

    def _lose(self, reason: str, *, keeps_id: bool) -> None:
        if self._member is None:
            return
        self._member = None
        self._was_put_out = True
        self._wish = None
        self._knows_of_rejoin = False
        if not keeps_id:
            self._member_id = _NO_ID
        self._thread.withdraw()
        self._thread.report(Expelled(reason))

    def _refuse(self, error: StreamsError) -> None:
        with self._changed:
            self._was_put_out |= self._member is not None
            self._member = None
            self._wish = None
            self._thread.report(Refused(error))


def _refusal(error: GroupError, session_s: float) -> StreamsError:
    match error.name:
        case name if name == INSTANCE_ID_TAKEN:
            return ConfigError(
                "another worker has joined the group with the group.instance.id of this one; give each worker that "
                "runs at the same time an id of its own"
            )
        case "INVALID_SESSION_TIMEOUT":
            return ConfigError(
                f"the brokers do not take a session.timeout.ms of {session_s * 1000:.0f} ms; set "
                "consumer.session.timeout.ms to a time between their group.min.session.timeout.ms and "
                "group.max.session.timeout.ms (6 s and 30 min by default)"
            )
    return join_refused(error, limit="group.max.size")
