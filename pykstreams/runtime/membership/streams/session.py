"""One member's life in a streams group: it joins, hears which tasks it is to have, and says which ones it has.

A thread of its own sends the heartbeats, because a worker that is busy with one record for long is still alive. What
happens comes to the worker as events, which it takes when it polls (``StreamsMembershipManager``,
``StreamsGroupHeartbeatRequestManager``, 4.3.1).

Invariant: tasks are reported as owned after the worker has said so, and as given up after it has committed them; and
after ``Expelled`` the member does not join before the worker has asked for it: one that silently joined again could
commit what others have taken up.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ConfigError, StreamsError, TopologyError
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.clients.coordinators.streams_heartbeat import (
    JOINING,
    LEAVING,
    NO_ENDPOINTS,
    NO_TASKS,
    Endpoint,
    Heartbeat,
    Heartbeaten,
    Joining,
    Tasks,
)
from pykstreams.runtime.clients.errors import OUT_OF_STREAMS_GROUP, GroupError
from pykstreams.runtime.membership.refusals import (
    ASKED_AGAIN,
    JOINS_LATER,
    NOT_TOLD,
    SILENT_FOR_TOO_LONG,
    join_refused,
)
from pykstreams.runtime.membership.session_events import Expelled, Refused
from pykstreams.runtime.membership.session_thread import IDLE_S, SessionThread, backoff_s
from pykstreams.runtime.membership.session_times import SessionTimes

log = logging.getLogger(__name__)

_OTHER_PROTOCOL: Final = (
    "the group has members of another protocol, so this worker waits until the last of them has left: a group moves "
    "to group.protocol=streams when all workers were stopped; one that was killed stays a member until its "
    "session.timeout.ms has passed"
)


class Heartbeats(Protocol):
    """The requests to the coordinator that a session makes (``StreamsCoordinator``)."""

    def heartbeat(self, said: Heartbeat) -> Heartbeaten: ...

    def assigned(self, member_id: str) -> Tasks: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Targeted:
    """The tasks that this member is to have."""

    tasks: Tasks


@dataclass(frozen=True, slots=True)
class StatusChanged:
    """The matters of the group: status codes with details; none: all is well."""

    statuses: Mapping[int, str]
    heartbeat_s: float


@dataclass(frozen=True, slots=True)
class EndpointsChanged:
    """The instances of the group that have an address."""

    endpoints: tuple[Endpoint, ...]


Event: TypeAlias = Targeted | StatusChanged | EndpointsChanged | Expelled | Refused


class StreamsSession:
    """The session of one member; ``step`` is for its thread, all else for the worker's.

    :param member_id: for the whole life of the worker.
    :param max_poll_s: after how long without ``poll`` the member leaves, so that others get its tasks
        (``max.poll.interval.ms``).
    :param session_s: the session that it reckons with at least; the coordinator tells only how often it wants to hear.
    :param shutdown: whether the member asks all of the group to shut down.
    """

    def __init__(
        self,
        name: str,
        requests: Heartbeats,
        joining: Joining,
        *,
        member_id: str,
        clock: Clock,
        max_poll_s: float,
        session_s: float,
        shutdown: bool = False,
    ) -> None:
        self.member_id = member_id
        self.times = SessionTimes.of_brokers(0, session_s)
        self._requests = requests
        self._joining = joining
        self._session_s = session_s
        self._clock = clock
        self._shutdown = shutdown
        self._warnings = RepeatedWarnings(log, clock)
        self._thread: SessionThread[Event] = SessionThread(
            name, self.step, refuse=self._refuse, close=requests.close, clock=clock, max_poll_s=max_poll_s
        )
        self._changed = self._thread.changed
        self._place: _Place | None = None
        self._was_put_out = False
        """Whether it is no member any more, and the worker does not know that yet."""

    @property
    def epoch(self) -> int | None:
        """The epoch of the member; ``None`` while it is not in the group."""
        place = self._place
        return None if place is None or place.epoch == JOINING else place.epoch

    @property
    def may_be_member(self) -> bool:
        """Whether the coordinator may have it as a member: it has joined, or is about to, and may have been heard."""
        return self._place is not None

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def join(self) -> None:
        """Joins, or joins again, without any task."""
        with self._changed:
            self._place = _Place()
            self._thread.wake()

    def own(self, tasks: Tasks) -> None:
        """Reports the tasks that the worker has from now on."""
        with self._changed:
            if self._place is not None:
                self._place.owned = tasks
                self._place.due_at = 0.0
                self._thread.wake()

    def poll(self, timeout_s: float) -> Event | None:
        """Returns the next event, waits for it if need be; to be called at least every ``max.poll.interval.ms``."""
        with self._changed:
            event = self._thread.poll(timeout_s)
            if isinstance(event, Targeted) and self._place is not None:
                # what the worker is about to take is not given up by a heartbeat that repeats what it had before
                self._place.owned = self._place.owned.together(event.tasks)
            if isinstance(event, Expelled):
                self._was_put_out = False
            return event

    def silent_s(self) -> float:
        """Seconds since the last heartbeat that the coordinator has answered was sent, 0 for one that is no member.

        Infinite from the end of the membership until ``poll`` has returned it: others may have the tasks already.
        """
        with self._changed:
            if self._was_put_out:
                return math.inf
            place = self._place
            if place is None or place.epoch == JOINING:
                return 0.0
            return self._clock.monotonic() - place.answered_from

    def expel(self, reason: str) -> None:
        """Notes what a request of the worker's own has shown: the group goes on without this member."""
        with self._changed:
            self._lose(reason)

    def stop(self) -> None:
        """Ends the thread, with a request that may be under way; the group is not told."""
        self._thread.stop()

    def step(self) -> float:
        """Does what is due; returns for how many seconds nothing else is."""
        place = self._place
        if place is None:
            return IDLE_S
        if self._thread.was_left_alone():
            self._leave_for_silence(place)
            return IDLE_S
        if self._clock.monotonic() >= place.due_at:
            self._beat(place)
        if self._place is not place:  # the member was put out meanwhile, or has joined again
            return IDLE_S
        return max(0.0, place.due_at - self._clock.monotonic())

    def _beat(self, place: _Place) -> None:
        with self._changed:
            said = place.next(self.member_id, self._joining, shutdown=self._shutdown)
            sent_at = self._clock.monotonic()
        try:
            answer = self._requests.heartbeat(said)
            if place.may_have_missed_tasks(said, answer):
                answer = replace(answer, tasks=self._requests.assigned(self.member_id))
        except GroupError as error:
            with self._changed:
                if self._place is place and not self._thread.is_stopping:
                    self._no_answer(place, error)
            return
        with self._changed:
            if self._place is place:
                self._answered(place, answer, sent_at)

    def _answered(self, place: _Place, answer: Heartbeaten, sent_at: float) -> None:
        place.answered_from = sent_at
        place.answered(answer, self._clock.monotonic())
        heartbeat_s = answer.interval_ms / 1000
        if heartbeat_s != self.times.heartbeat_s:
            self.times = SessionTimes.of_brokers(heartbeat_s, self._session_s)
        if answer.endpoints is not None:
            self._thread.report(EndpointsChanged(answer.endpoints))
        statuses = answer.statuses
        if statuses is not None and statuses != place.statuses:
            place.statuses = statuses
            self._thread.report(StatusChanged(statuses, answer.interval_ms / 1000))
        if answer.tasks is not None and answer.tasks != place.target:
            place.target = answer.tasks
            # of several, only the last counts: a task that was taken back in between must not be begun
            self._thread.withdraw(Targeted)
            self._thread.report(Targeted(answer.tasks))

    def _no_answer(self, place: _Place, error: GroupError) -> None:
        place.failed(self._clock.monotonic())
        if self._thread.withdraw(Targeted):
            # the next heartbeat says that the member does not have them, so they might be given to another
            place.target = None
        match error.name:
            case name if name in OUT_OF_STREAMS_GROUP and place.epoch != JOINING:
                self._lose(str(error))
            case name if name in OUT_OF_STREAMS_GROUP:
                self._warnings.warn(name, JOINS_LATER, error)
            case "GROUP_ID_NOT_FOUND" | "INCONSISTENT_GROUP_PROTOCOL":
                if place.epoch != JOINING:
                    self._lose(f"the group is not there any more: {error}")
                else:
                    self._warnings.warn("protocol", "%s", _OTHER_PROTOCOL)
            case _ if error.may_pass and place.epoch == JOINING and place.failures == 1:
                log.info(JOINS_LATER, error)  # brokers that were started a moment ago refuse the first request
            case name if error.may_pass:
                self._warnings.warn(name, JOINS_LATER if place.epoch == JOINING else ASKED_AGAIN, error)
            case _:
                self._refuse(_refusal(error))

    def _leave_for_silence(self, place: _Place) -> None:
        try:
            if place.epoch != JOINING:
                self._requests.heartbeat(Heartbeat(self.member_id, LEAVING))
        except GroupError as error:
            log.info(NOT_TOLD, error)
        with self._changed:
            if self._place is place:
                self._lose(SILENT_FOR_TOO_LONG)

    def _lose(self, reason: str) -> None:
        if self._place is not None:
            self._place = None
            self._was_put_out = True
            self._thread.withdraw()
            self._thread.report(Expelled(reason))

    def _refuse(self, error: StreamsError) -> None:
        self._was_put_out |= self._place is not None
        self._place = None
        self._thread.report(Refused(error))


class _Place:
    """The place of the member in its group, from one join to its end."""

    def __init__(self) -> None:
        self.epoch = JOINING
        self.owned = NO_TASKS
        self.target: Tasks | None = None
        self.statuses: Mapping[int, str] = {}
        self.due_at = 0.0
        self.answered_from = 0.0
        """When the last heartbeat was sent that the coordinator has answered."""
        self.failures = 0
        """How many heartbeats in a row had no answer."""
        self._told: Tasks | None = None
        self._endpoints_epoch = NO_ENDPOINTS
        self._missed_an_answer = False

    def next(self, member_id: str, joining: Joining, *, shutdown: bool) -> Heartbeat:
        joins = self.epoch == JOINING
        owned = NO_TASKS if joins else self.owned
        tasks = None if owned == self._told and not joins else owned
        self._told = owned
        self.due_at = float("inf")
        return Heartbeat(
            member_id, self.epoch, self._endpoints_epoch, joining if joins else None, tasks, shutdown=shutdown
        )

    def answered(self, answer: Heartbeaten, now: float) -> None:
        self.epoch = answer.epoch
        self._endpoints_epoch = answer.endpoints_epoch
        self.failures = 0
        self._missed_an_answer = False
        self.due_at = min(self.due_at, now + answer.interval_ms / 1000)

    def may_have_missed_tasks(self, said: Heartbeat, answer: Heartbeaten) -> bool:
        """Whether an answer was lost that may have told of other tasks: it would not be repeated."""
        return self._missed_an_answer and said.joining is None and answer.tasks is None

    def failed(self, now: float) -> None:
        """Nobody knows what the coordinator has heard: it is told everything again."""
        self._told = None
        self._missed_an_answer = True
        self.failures += 1
        self.due_at = min(self.due_at, now + backoff_s(self.failures))


def _refusal(error: GroupError) -> StreamsError:
    match error.name:
        case "INVALID_REQUEST" | "STREAMS_INVALID_TOPOLOGY" | "STREAMS_INVALID_TOPOLOGY_EPOCH":
            return TopologyError(
                f"the group does not take the topology of this worker: {error}. A streams group keeps the topology "
                "that it began with: stop all workers, note its offsets (kafka-streams-groups.sh --describe "
                "--offsets), delete the group (--delete), and set the offsets again (--reset-offsets) before the new "
                "one starts; or use group.protocol=classic, which takes changes"
            )
        case "UNSUPPORTED_VERSION" | "_UNSUPPORTED_FEATURE":
            return ConfigError(
                "the brokers do not offer the streams group protocol; it needs Kafka 4.2 or newer with the feature "
                "streams.version=1 (kafka-features.sh upgrade --feature streams.version=1). Or use "
                "group.protocol=classic"
            )
    return join_refused(error, limit="group.streams.max.size")
