"""A member asks all others to shut down: how long it stays, and what it learns."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.coordinators.coordinator_requests import GroupSettings
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.classic.leadership import Leadership
from pykstreams.runtime.membership.classic.membership import ClassicMembership
from pykstreams.runtime.membership.classic.session import ClassicSession, Event
from pykstreams.runtime.membership.classic.subscriptions import Introduction
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.member_state import NoState
from pykstreams.runtime.membership.membership import ShutdownRequestedError
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignor_error import AssignorError
from pykstreams.runtime.membership.session_times import SessionTimes
from pykstreams.runtime.membership.shutdown import ask_all_to_shut_down
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.testing.clock import MockClock
from tests.unit.runtime.membership.classic.fake_coordinator import FakeCoordinator, FakeRequests, GroupState
from tests.unit.runtime.plans import part, plan, source

LAYOUT = TopicLayout({"in": 2}, {TaskId(0, n): frozenset({TopicPartition("in", n)}) for n in range(2)})
PLAN = plan(part(0, source("S", "in")))
HEARTBEAT_S, SESSION_S, PATIENCE_S = 2, 6, 30
TURN_MS = 200


class SteppedSession(ClassicSession):
    """A session that goes on whenever its worker polls; ``meanwhile`` is what others do then."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def start(self) -> None:
        pass

    def poll(self, timeout_s: float) -> Event | None:
        self.step()
        self.meanwhile()
        return super().poll(0)


class Member:
    """A member of the group, which leaves with the turn after that in which it is told to shut down."""

    def __init__(
        self, number: int, coordinator: FakeCoordinator, clock: MockClock, error: AssignorError = AssignorError.NONE
    ) -> None:
        process_id = ProcessId(uuid.UUID(int=number))
        settings = GroupSettings("app", None, SESSION_S * 1000, 300_000)
        requests = FakeRequests(coordinator, settings)
        leadership = Leadership(
            PLAN,
            prepare=lambda: LAYOUT,
            cluster=NoCluster(),
            committed=requests.committed,
            ends_s=1,
            configs=AssignmentConfigs(),
            process_id=process_id,
            clock=clock,
        )
        self.session = SteppedSession(
            f"member-{number}",
            requests,
            leadership.assign,
            clock=clock,
            times=SessionTimes(HEARTBEAT_S, SESSION_S),
            max_poll_s=300,
            is_static=False,
        )
        self.membership = ClassicMembership(
            self.session,
            FakeRequests(coordinator, settings),
            Introduction(process_id, error=error),
            stateful=frozenset(),
            prepare=lambda: LAYOUT,
            state=NoState(),
            hosts=GroupHosts(),
            clock=clock,
        )
        self.was_told = False
        self._has_left = False

    def turn(self) -> None:
        if self._has_left:
            return
        if self.was_told:
            self._has_left = True
            self.membership.close(leave=True)
            return
        try:
            self.membership.poll()
        except ShutdownRequestedError:
            self.was_told = True


class NoCluster:
    def end_offsets(self, partitions: object, *, timeout_s: float | None = None) -> dict[TopicPartition, int]:
        return {}

    def racks(self, partitions: object) -> dict[TopicPartition, frozenset[str]]:
        return {}


class AskedGroup:
    """Two members, of which the second stands still from the moment that ``stands_still`` names, for a second."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.coordinator = FakeCoordinator(self.clock)
        self.leader, self.follower = (Member(number, self.coordinator, self.clock) for number in (1, 2))
        self.stands_still: Callable[[], bool] = lambda: False
        self.is_busy = False
        """Whether the second is busy with a record: its session goes on, and it does not poll."""
        self._goes_on_at: float | None = None
        for member in (self.leader, self.follower):
            member.membership.start(LAYOUT, lambda tasks: None)
        self.go_on(60)
        assert self.coordinator.state is GroupState.STABLE

    def go_on(self, turns: int = 1) -> None:
        for _ in range(turns):
            self.clock.advance(TURN_MS)
            self.coordinator.pass_time()
            if self._goes_on_at is None and self.stands_still():
                self._goes_on_at = self.clock.monotonic() + 1
            self.leader.turn()
            if self.is_busy:
                self.follower.session.step()
            elif self._goes_on_at is None or self.clock.monotonic() >= self._goes_on_at:
                self.follower.turn()

    def ask(self) -> str | None:
        asking = Member(3, self.coordinator, self.clock, AssignorError.SHUTDOWN_REQUESTED)
        asking.session.meanwhile = self.go_on
        error = ask_all_to_shut_down(asking.membership, LAYOUT, self.clock, PATIENCE_S)
        return None if error is None else str(error)


@pytest.fixture
def group() -> AskedGroup:
    return AskedGroup()


def test_all_members_are_told_and_who_has_asked_leaves(group: AskedGroup) -> None:
    assert group.ask() is None
    assert (group.leader.was_told, group.follower.was_told) == (True, True)
    assert group.coordinator.members == {}


def test_a_member_that_takes_up_its_assignment_after_another_one_has_left_is_told_too(group: AskedGroup) -> None:
    group.stands_still = lambda: group.coordinator.state is GroupState.COMPLETING

    told = group.ask()
    group.go_on(60)

    assert (told, group.leader.was_told, group.follower.was_told) == (None, True, True)


def test_a_member_that_does_not_join_in_time_is_why_nobody_knows_whether_all_were_told(group: AskedGroup) -> None:
    group.is_busy = True

    assert group.ask() == f"the leader of the group has not answered within {PATIENCE_S} s"
    assert not group.leader.was_told
