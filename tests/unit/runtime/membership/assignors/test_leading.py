"""Leading a group by the assignor of a user: what it may answer, and what its mistakes lead to."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from pykstreams.assignment import (
    ApplicationState,
    AssignmentConfigs,
    AssignmentError,
    GroupAssignment,
    GroupSubscription,
    KafkaStreamsAssignment,
    ProcessId,
    StickyTaskAssignor,
    TaskAssignment,
    TaskAssignor,
    TaskTopicPartition,
)
from pykstreams.core.errors import StreamsError, TaskAssignmentError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.check import MemberAssignment, WrongAssignmentError
from pykstreams.runtime.membership.assignment.group import Task
from pykstreams.runtime.membership.assignment.joined_group import Member, Topics, join
from pykstreams.runtime.membership.assignors.leading import UserLead
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.membership.protocol.assignment_info import AT_ONCE, NEVER
from pykstreams.runtime.membership.protocol.assignor_error import AssignorError
from pykstreams.runtime.membership.protocol.subscription_info import RUNNING, SubscriptionInfo
from tests.unit.runtime.membership.assignors.applications import given

A, B, C = (ProcessId(uuid.UUID(int=number)) for number in (1, 2, 3))
COUNTS, FORWARDS = TaskId(0, 0), TaskId(1, 0)
IN, LOG, PLAIN = TopicPartition("in", 0), TopicPartition("log", 0), TopicPartition("plain", 0)
TASKS = (
    Task(COUNTS, frozenset({IN}), frozenset({LOG}), frozenset({"store"})),
    Task(FORWARDS, frozenset({PLAIN})),
)
TOPICS = Topics(TASKS, {COUNTS: 1_000}, {IN: frozenset({"east"})})
NOW, INTERVAL = 1_000, 600_000
BOTH = {"a": (A, {COUNTS: RUNNING}), "b": (B, {COUNTS: 900})}
SPLIT = [given(A, (COUNTS,)), given(B, (FORWARDS,), (COUNTS,))]

Said = Mapping[str, tuple[ProcessId, Mapping[TaskId, int]]]


class Recorded(TaskAssignor):
    """Answers what it is told to, and notes what it is told."""

    def __init__(self, answer: Callable[[ApplicationState], object]) -> None:
        self._answer = answer
        self.seen: list[ApplicationState] = []
        self.computed: list[tuple[GroupAssignment, AssignmentError]] = []

    def assign(self, application_state: ApplicationState) -> TaskAssignment:
        self.seen.append(application_state)
        return cast(TaskAssignment, self._answer(application_state))

    def on_assignment_computed(
        self, assignment: GroupAssignment, subscription: GroupSubscription, error: AssignmentError
    ) -> None:
        self.computed.append((assignment, error))


def answers(*assignments: KafkaStreamsAssignment) -> Recorded:
    return Recorded(lambda state: TaskAssignment(assignments))


def raises(error: Exception) -> Recorded:
    def answer(state: ApplicationState) -> object:
        raise error

    return Recorded(answer)


def led(assignor: TaskAssignor, members: Said = BOTH, topics: Topics = TOPICS) -> dict[str, MemberAssignment]:
    said = {
        name: Member(
            SubscriptionInfo(process, dict(sums), f"{name}:80" if name == "a" else None, tags={"zone": name}).encode(),
            frozenset({IN} if RUNNING in sums.values() else ()),
            f"rack-{name}",
        )
        for name, (process, sums) in members.items()
    }
    said["unreadable"] = Member(b"?")
    joined = join(said, topics, AssignmentConfigs(probing_rebalance_interval_ms=INTERVAL))
    return UserLead(assignor, A).lead(joined, {}, now_ms=NOW)


def test_the_members_are_told_what_the_assignor_decides() -> None:
    assignor = answers(*SPLIT)
    told = led(assignor)
    assert told["a"].info.active == (COUNTS,)
    assert told["b"].info.active == (FORWARDS,)
    assert list(told["b"].info.standby) == [COUNTS]
    assert told["a"].info.next_rebalance_ms == told["b"].info.next_rebalance_ms == NEVER
    assert told["unreadable"].info.error == AssignorError.ASSIGNMENT_ERROR
    [(computed, error)] = assignor.computed
    assert error is AssignmentError.NONE
    assert computed.keys() == told.keys()
    assert computed["b"].partitions == (PLAIN,)
    assert computed["b"].user_data == told["b"].info.encode()


def test_the_assignor_sees_the_instances_and_tasks_of_the_group() -> None:
    assignor = answers(*SPLIT)
    led(assignor)
    [state] = assignor.seen
    assert state.assignment_configs.probing_rebalance_interval_ms == INTERVAL
    assert state.all_tasks[COUNTS].state_store_names == {"store"}
    assert not state.all_tasks[FORWARDS].is_stateful
    places = {place: place.rack_ids for place in state.all_tasks[COUNTS].topic_partitions}
    assert places == {TaskTopicPartition(IN, True, False): {"east"}, TaskTopicPartition(LOG, False, True): None}
    states = state.kafka_streams_states(compute_task_lags=True)
    assert [one.lag_for(COUNTS) for one in states.values()] == [RUNNING, 100]
    assert states[A].previous_active_tasks == (COUNTS,)
    assert states[B].previous_standby_tasks == (COUNTS,)
    assert (states[A].host_info, states[B].host_info) == (HostInfo("a", 80), None)
    assert (states[B].client_tags, states[B].rack_id) == ({"zone": "b"}, "rack-b")
    assert states[B].consumer_client_ids == ("b",)


def test_a_follow_up_is_told_to_one_member_of_its_instance() -> None:
    later = given(B, (FORWARDS,)).with_followup_rebalance(77_000)
    told = led(answers(given(A, (COUNTS,)), later), {**BOTH, "c": (B, {})})
    assert told["a"].info.next_rebalance_ms == NEVER
    assert sorted(told[name].info.next_rebalance_ms for name in "bc") == sorted([77_000, NEVER])


def test_a_task_that_moves_waits_until_it_is_given_up() -> None:
    told = led(answers(given(A, (FORWARDS,)), given(B, (COUNTS,))))
    assert told["b"].info.active == ()
    assert list(told["b"].info.standby) == [COUNTS]
    assert told["b"].info.next_rebalance_ms == AT_ONCE


@pytest.mark.parametrize(
    ("assignments", "mistake"),
    [
        ([given(A, (COUNTS, TaskId(9, 9))), given(B)], AssignmentError.UNKNOWN_TASK_ID),
        ([given(A), given(B), given(C)], AssignmentError.UNKNOWN_PROCESS_ID),
    ],
)
def test_what_cannot_be_sent_ends_the_leader_after_the_assignor_was_told_of_it(
    assignments: list[KafkaStreamsAssignment], mistake: AssignmentError
) -> None:
    assignor = answers(*assignments)
    with pytest.raises(StreamsError, match=rf"test_leading.Recorded made a mistake, {mistake.name}") as raised:
        led(assignor)
    assert not isinstance(raised.value, TaskAssignmentError)
    assert assignor.computed == [({}, mistake)]


@pytest.mark.parametrize(
    ("assignments", "mistake"),
    [
        (
            [given(A, (FORWARDS,)), given(B, (FORWARDS,))],
            AssignmentError.ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES,
        ),
        ([given(A, (FORWARDS,)), given(B, (), (FORWARDS,))], AssignmentError.INVALID_STANDBY_TASK),
        ([given(A, (COUNTS, FORWARDS))], AssignmentError.MISSING_PROCESS_ID),
    ],
)
def test_any_other_mistake_ends_the_leader_after_the_assignor_has_seen_what_would_have_been_sent(
    assignments: list[KafkaStreamsAssignment], mistake: AssignmentError
) -> None:
    assignor = answers(*assignments)
    with pytest.raises(StreamsError, match=f"made a mistake, {mistake.name}: {mistake.value}"):
        led(assignor)
    [(computed, error)] = assignor.computed
    assert error is mistake
    assert computed.keys() == {"a", "b", "unreadable"}


def test_an_exception_of_the_assignor_ends_the_leader_with_its_class() -> None:
    with pytest.raises(
        StreamsError,
        match=r"assign of the task assignor .*test_leading.Recorded.* raised KeyError\('x'\) while this worker led",
    ) as raised:
        led(raises(KeyError("x")))
    assert isinstance(raised.value.__cause__, KeyError)
    assert not isinstance(raised.value, TaskAssignmentError)


def test_an_exception_of_the_callback_ends_the_leader_with_its_class() -> None:
    class Fails(StickyTaskAssignor):
        def on_assignment_computed(self, *told: Any) -> None:
            raise RuntimeError("no")

    with pytest.raises(StreamsError, match=r"on_assignment_computed of the task assignor .*Fails.* raised Run"):
        led(Fails())


def test_an_answer_of_another_type_ends_the_leader() -> None:
    with pytest.raises(StreamsError, match=r"Recorded.* returned None; assign returns a TaskAssignment"):
        led(Recorded(lambda state: None))


def test_tasks_stay_where_they_are_when_the_assignor_cannot_decide(caplog: pytest.LogCaptureFixture) -> None:
    assignor = raises(TaskAssignmentError("the oracle is silent"))
    told = led(assignor)
    assert COUNTS in told["a"].info.active
    assert told["a"].info.next_rebalance_ms == NOW + INTERVAL
    assert assignor.computed == []
    assert "could not decide: the oracle is silent" in caplog.text


def test_tasks_stay_where_they_are_when_the_assignor_needs_lags_that_are_unknown() -> None:
    def by_lags(state: ApplicationState) -> object:
        return state.kafka_streams_states(compute_task_lags=True)

    told = led(Recorded(by_lags), topics=Topics(TASKS, None, {}))
    assert COUNTS in told["a"].info.active


def test_an_assignor_that_needs_no_lags_decides_without_them() -> None:
    told = led(answers(*SPLIT), topics=Topics(TASKS, None, {}))
    assert told["b"].info.active == (FORWARDS,)


def test_a_standby_task_without_changelog_is_not_sent() -> None:
    """``validate_task_assignment`` lets it pass, as in Java: a store without changelog is one."""
    local = (TASKS[0], Task(FORWARDS, frozenset({PLAIN}), stores=frozenset({"local"})))
    assignor = answers(given(A, (COUNTS, FORWARDS)), given(B, (), (FORWARDS,)))
    with pytest.raises(WrongAssignmentError, match="b is given standby task 1_0, which is active there, or has no st"):
        led(assignor, topics=Topics(local, {COUNTS: 1_000}, {}))
    assert assignor.computed == []


def test_tasks_that_nobody_gets_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    led(answers(given(A), given(B, (FORWARDS,))))
    assert "gives nobody the active tasks 0_0: their records wait" in caplog.text


def test_the_assignor_is_not_asked_when_all_are_to_shut_down() -> None:
    assignor = answers()
    info = SubscriptionInfo(A, {}, None, error=AssignorError.SHUTDOWN_REQUESTED)
    joined = join({"a": Member(info.encode())}, TOPICS, AssignmentConfigs())
    told = UserLead(assignor, A).lead(joined, {}, now_ms=NOW)
    assert told["a"].info.error == AssignorError.SHUTDOWN_REQUESTED
    assert assignor.seen == []
