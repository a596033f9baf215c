"""The state that a member reports, and is assigned, goes with the tasks of its process."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.member_state import MemberState
from pykstreams.runtime.membership.offset_sums import OffsetSums
from pykstreams.runtime.membership.protocol.subscription_info import RUNNING

ONE, TWO = TaskId(0, 0), TaskId(0, 1)
PLACES = {ONE: frozenset({TopicPartition("in", 0)}), TWO: frozenset({TopicPartition("in", 1)})}


class FakeStandbys:
    """Standby tasks whose sums a test sets."""

    def __init__(self) -> None:
        self.sums: dict[TaskId, int] = {}
        self.assignments: list[tuple[str, set[TaskId], set[TaskId]]] = []

    def assigned(
        self, member: str, tasks: Mapping[TaskId, frozenset[TopicPartition]], active: Collection[TaskId] = ()
    ) -> None:
        self.assignments.append((member, set(tasks), set(active)))

    def offset_sums(self) -> Mapping[TaskId, int]:
        return self.sums

    def member_of(self, task_id: TaskId) -> str | None:
        return "member"


class NoFolders:
    def free_checkpoints(self) -> Mapping[TaskId, Mapping[str, int]]:
        return {}


class State:
    """The state of a member, with what its worker has."""

    def __init__(self) -> None:
        self.standbys = FakeStandbys()
        self.running: set[TaskId] = set()
        self.opened: dict[TaskId, int] = {}
        self.member = MemberState(
            "member",
            OffsetSums({0: ["counts"]}, NoFolders(), self.standbys),
            self.standbys,
            running=lambda: self.running,
            opened=lambda: self.opened,
        )
        self.member.begin()


def test_a_standby_that_is_about_to_become_the_task_is_as_far_as_it_was() -> None:
    """Or else the leader takes its state for lost, gives the task to another member, and back, for ever."""
    state = State()
    state.standbys.sums = {ONE: 70}
    assert state.member.offset_sums() == {ONE: 70}

    state.member.assigned({}, [ONE])
    state.standbys.sums = {}
    assert state.member.offset_sums() == {ONE: 70}

    state.opened = {ONE: 75}
    assert state.member.offset_sums() == {ONE: 75}
    state.running = {ONE}
    assert state.member.offset_sums() == {ONE: RUNNING}


def test_state_that_is_no_task_s_any_more_is_not_reported() -> None:
    state = State()
    state.standbys.sums = {ONE: 70}
    state.member.offset_sums()

    state.member.assigned({TWO: PLACES[TWO]}, [])
    state.standbys.sums = {}

    assert state.member.offset_sums() == {}


def test_a_task_that_runs_no_more_and_is_not_open_does_not_count_as_running() -> None:
    state = State()
    state.member.assigned({}, [ONE])
    state.running = {ONE}
    assert state.member.offset_sums() == {ONE: RUNNING}

    state.running = set()

    assert state.member.offset_sums() == {}


def test_what_a_member_has_lost_is_not_on_its_way_any_more() -> None:
    """Another worker of the process may run the task by now, which the leader would take for one that lags."""
    state = State()
    state.standbys.sums = {ONE: 70}
    state.member.offset_sums()
    state.member.assigned({}, [ONE])
    state.standbys.sums = {}

    state.member.lost()

    assert state.member.offset_sums() == {}


def test_a_member_that_does_not_come_back_is_assigned_nothing() -> None:
    state = State()
    state.member.assigned({TWO: PLACES[TWO]}, [ONE])

    state.member.end()

    assert state.standbys.assignments == [("member", {TWO}, {ONE}), ("member", set(), set())]
