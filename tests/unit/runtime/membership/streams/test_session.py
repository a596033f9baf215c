"""The life of one member in a streams group."""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Event as Flag

import pytest
from confluent_kafka import KafkaError

from pykstreams.core.errors import ClusterError, ConfigError, StreamsError, TopologyError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.clients.coordinators.streams_heartbeat import (
    LEAVING,
    NO_TASKS,
    Endpoint,
    Heartbeat,
    Heartbeaten,
    Joining,
    Tasks,
)
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.membership.session_events import Expelled, Refused
from pykstreams.runtime.membership.session_thread import IDLE_S
from pykstreams.runtime.membership.session_times import SessionTimes
from pykstreams.runtime.membership.streams.session import EndpointsChanged, StatusChanged, StreamsSession, Targeted
from pykstreams.testing.clock import MockClock
from tests.unit.runtime.membership.group_errors import NO_ANSWER, group_error

JOINING = Joining((), "process", 30_000)
ONE, TWO = Tasks(frozenset({TaskId(0, 1)})), Tasks(frozenset({TaskId(0, 1), TaskId(0, 2)}))


class Script:
    """Heartbeats whose answers the test gives: an answer, an error's code, or by default that nothing has changed."""

    def __init__(self) -> None:
        self.answers: list[Heartbeaten | GroupError] = []
        self.said: list[Heartbeat] = []
        self.during: Callable[[], None] | None = None
        self.epoch = 7
        self.assignments: list[Tasks | GroupError] = []

    def heartbeat(self, said: Heartbeat) -> Heartbeaten:
        self.said.append(said)
        if self.during is not None:
            self.during()
        answer = self.answers.pop(0) if self.answers else Heartbeaten(self.epoch, 1_000)
        if isinstance(answer, GroupError):
            raise answer
        return answer

    def assigned(self, member_id: str) -> Tasks:
        assert member_id == "me"
        found = self.assignments.pop(0)
        if isinstance(found, GroupError):
            raise found
        return found

    def close(self) -> None: ...


class Member:
    def __init__(self, *, shutdown: bool = False) -> None:
        self.clock = MockClock()
        self.requests = Script()
        self.session = StreamsSession(
            "member",
            self.requests,
            JOINING,
            member_id="me",
            clock=self.clock,
            max_poll_s=30,
            session_s=6,
            shutdown=shutdown,
        )

    def joined(self, tasks: Tasks = NO_TASKS) -> Member:
        self.session.join()
        self.beat(Heartbeaten(7, 1_000, tasks=tasks))
        assert self.session.poll(0) == Targeted(tasks)
        return self

    def beat(self, *answers: Heartbeaten | GroupError) -> Heartbeat:
        """Lets an interval pass, and a heartbeat be sent, which it returns."""
        self.requests.answers += answers
        self.clock.advance(1_000)
        self.session.step()
        return self.requests.said[-1]


def test_nothing_is_said_before_the_worker_joins() -> None:
    member = Member()
    assert member.session.step() > 0
    assert member.requests.said == []
    assert member.session.epoch is None


def test_a_member_that_joins_introduces_itself_and_has_no_tasks() -> None:
    member = Member()
    member.session.join()
    said = member.beat(Heartbeaten(7, 1_000))

    assert said == Heartbeat("me", 0, joining=JOINING, tasks=NO_TASKS)
    assert member.session.epoch == 7
    assert member.beat() == Heartbeat("me", 7)


def test_the_coordinator_may_have_a_member_from_its_wish_to_join_until_it_is_put_out() -> None:
    member = Member()
    assert not member.session.may_be_member
    member.session.join()
    member.beat(group_error(NO_ANSWER))
    assert member.session.may_be_member

    member.session.expel("others have its tasks")
    assert not member.session.may_be_member


def test_tasks_are_reported_when_the_worker_has_them_and_then_not_again() -> None:
    member = Member().joined(ONE)
    member.session.own(ONE)

    assert member.session.step() == 1
    assert member.requests.said[-1] == Heartbeat("me", 7, tasks=ONE)
    assert member.beat().tasks is None


def test_after_a_failure_everything_is_said_again() -> None:
    member = Member().joined(ONE)
    member.session.own(ONE)
    member.session.step()
    member.beat(group_error(NO_ANSWER))
    member.requests.assignments = [ONE]

    assert member.beat().tasks == ONE
    assert member.session.poll(0) is None


def test_tasks_that_the_worker_is_about_to_take_are_not_given_up_by_what_is_said_meanwhile() -> None:
    member = Member().joined(ONE)
    member.session.own(ONE)
    member.beat(Heartbeaten(8, 1_000, tasks=TWO))
    assert member.session.poll(0) == Targeted(TWO)
    member.beat(group_error(NO_ANSWER))
    member.requests.assignments = [TWO]

    assert member.beat().tasks == TWO


def test_of_several_assignments_the_worker_gets_the_last() -> None:
    member = Member().joined()
    member.beat(Heartbeaten(8, 1_000, tasks=TWO))
    member.beat(Heartbeaten(8, 1_000, tasks=ONE))

    assert member.session.poll(0) == Targeted(ONE)
    assert member.session.poll(0) is None


@pytest.mark.parametrize("epoch", [7, 8])
def test_a_member_whose_answer_was_lost_asks_which_tasks_it_has(epoch: int) -> None:
    member = Member().joined(ONE)
    member.beat(group_error(NO_ANSWER))
    member.requests.assignments = [TWO]
    member.beat(Heartbeaten(epoch, 1_000))

    assert member.session.poll(0) == Targeted(TWO)
    assert member.session.epoch == epoch
    member.beat()  # it asks no more
    assert member.session.poll(0) is None


def test_a_member_that_could_not_ask_which_tasks_it_has_begins_again() -> None:
    member = Member().joined(ONE)
    member.beat(group_error(NO_ANSWER))
    member.requests.assignments = [group_error(NO_ANSWER), TWO]
    member.beat(Heartbeaten(8, 1_000))
    assert member.session.epoch == 7
    member.beat(Heartbeaten(8, 1_000))

    assert member.session.epoch == 8
    assert member.session.poll(0) == Targeted(TWO)


def test_a_member_whose_tasks_come_with_the_next_answer_does_not_ask_for_them() -> None:
    member = Member().joined(ONE)
    member.beat(group_error(NO_ANSWER))
    member.beat(Heartbeaten(8, 1_000, tasks=TWO))

    assert member.session.poll(0) == Targeted(TWO)


def test_tasks_that_the_worker_has_not_taken_before_an_answer_was_lost_are_asked_for_again() -> None:
    member = Member().joined()
    member.beat(Heartbeaten(8, 1_000, tasks=TWO))
    member.beat(group_error(NO_ANSWER))
    assert member.session.poll(0) is None
    member.requests.assignments = [TWO]
    assert member.beat(Heartbeaten(8, 1_000)).tasks == NO_TASKS

    assert member.session.poll(0) == Targeted(TWO)


def test_a_member_of_which_the_coordinator_knows_nothing_when_asked_is_out() -> None:
    member = Member().joined(ONE)
    member.beat(group_error(NO_ANSWER))
    member.requests.assignments = [group_error(KafkaError.UNKNOWN_MEMBER_ID)]
    member.beat(Heartbeaten(8, 1_000))

    assert isinstance(member.session.poll(0), Expelled)


@pytest.mark.parametrize(
    "code", [KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_MEMBER_EPOCH, KafkaError.GROUP_ID_NOT_FOUND]
)
def test_a_member_that_is_out_does_not_join_by_itself(code: int) -> None:
    member = Member().joined(ONE)
    member.beat(group_error(code))

    assert isinstance(member.session.poll(0), Expelled)
    said = len(member.requests.said)
    member.beat()
    assert len(member.requests.said) == said
    member.session.join()
    assert member.beat().epoch == 0


def test_a_failure_that_may_pass_is_said_once_and_tried_again_sooner(caplog: pytest.LogCaptureFixture) -> None:
    member = Member().joined()
    for _ in range(3):
        member.beat(group_error(NO_ANSWER))

    assert 0 < member.session.step() <= 0.5
    assert member.session.poll(0) is None
    assert caplog.text.count("the coordinator of the group does not answer, and is asked again") == 1


def test_only_a_join_that_fails_again_is_worth_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Brokers that were started a moment ago refuse the first one."""
    member = Member()
    member.session.join()
    with caplog.at_level("INFO"):
        member.beat(group_error(KafkaError.NOT_COORDINATOR))
        member.beat(group_error(KafkaError.NOT_COORDINATOR))

    said = [(one.levelname, one.getMessage().partition(":")[0]) for one in caplog.records]
    assert said == [
        ("INFO", "joining the group failed, and is tried again"),
        ("WARNING", "joining the group failed, and is tried again"),
    ]


def test_a_group_of_another_protocol_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    member = Member()
    member.session.join()
    for _ in range(3):
        member.beat(group_error(KafkaError.GROUP_ID_NOT_FOUND))
    assert member.session.poll(0) is None
    assert caplog.text.count("the group has members of another protocol") == 1
    member.beat(Heartbeaten(3, 1_000))
    assert member.session.epoch == 3


@pytest.mark.parametrize(
    ("code", "kind", "cure"),
    [
        (KafkaError.INVALID_REQUEST, TopologyError, "delete the group .* or use group.protocol=classic"),
        (KafkaError.UNSUPPORTED_VERSION, ConfigError, "feature streams.version=1"),
        (KafkaError.GROUP_MAX_SIZE_REACHED, ClusterError, "group.streams.max.size"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, ClusterError, "GROUP_AUTHORIZATION_FAILED"),
    ],
)
def test_a_refusal_names_the_way_out(code: int, kind: type[StreamsError], cure: str) -> None:
    member = Member()
    member.session.join()
    member.beat(group_error(code))
    event = member.session.poll(0)

    assert isinstance(event, Refused)
    assert isinstance(event.error, kind)
    with pytest.raises(StreamsError, match=cure):
        raise event.error


def test_the_matters_of_the_group_are_reported_when_they_change() -> None:
    member = Member().joined()
    told = Heartbeaten(7, 1_000, statuses={1: "no topic a"})
    member.beat(told)
    member.beat(told)

    assert member.session.poll(0) == StatusChanged({1: "no topic a"}, 1)
    assert member.session.poll(0) is None
    member.beat(Heartbeaten(7, 1_000, statuses={}))
    assert member.session.poll(0) == StatusChanged({}, 1)


def test_instances_are_reported_with_the_epoch_under_which_they_are_known() -> None:
    member = Member().joined()
    there = (Endpoint("shop-1", 7070, frozenset(), frozenset()),)
    member.beat(Heartbeaten(7, 1_000, endpoints_epoch=3, endpoints=there))

    assert member.session.poll(0) == EndpointsChanged(there)
    assert member.beat().endpoints_epoch == 3


def test_a_worker_that_does_not_poll_leaves_so_that_others_do_its_work(caplog: pytest.LogCaptureFixture) -> None:
    member = Member().joined(ONE)
    member.clock.advance(31_000)
    member.session.step()

    assert member.requests.said[-1] == Heartbeat("me", LEAVING)
    assert "raise consumer.max.poll.interval.ms" in caplog.text
    assert member.session.poll(0) == Expelled("max.poll.interval.ms has passed")


def test_a_member_can_ask_all_to_shut_down() -> None:
    member = Member(shutdown=True)
    member.session.join()

    assert member.beat(Heartbeaten(7, 1_000)).shutdown


def test_the_group_has_been_silent_since_the_last_heartbeat_that_it_answered_was_sent() -> None:
    member = Member().joined()
    assert member.session.silent_s() == 0
    member.requests.during = lambda: member.clock.advance(500)
    member.beat()
    assert member.session.silent_s() == 0.5
    member.requests.during = None
    member.beat(group_error(NO_ANSWER))
    assert member.session.silent_s() == 1.5
    member.requests.assignments = [NO_TASKS]
    member.beat()
    assert member.session.silent_s() == 0


def test_a_member_that_was_put_out_counts_no_more_before_the_worker_has_heard_of_it() -> None:
    member = Member().joined()
    member.beat(group_error(KafkaError.UNKNOWN_MEMBER_ID))
    before = member.session.silent_s()
    while not isinstance(member.session.poll(0), Expelled):
        pass

    assert (before, member.session.silent_s()) == (math.inf, 0)


def test_the_session_is_taken_for_three_of_the_heartbeats_that_the_coordinator_wants_at_least() -> None:
    member = Member().joined()
    assert member.session.times == SessionTimes(1, 6)
    member.beat(Heartbeaten(7, 5_000))
    assert member.session.times == SessionTimes(5, 15)
    assert member.session.times.patience_s > 5


def test_a_member_that_is_not_in_the_group_waits_for_no_word_of_it() -> None:
    member = Member()
    member.clock.advance(20_000)
    assert member.session.silent_s() == 0
    member.session.join()
    member.beat(group_error(NO_ANSWER))
    assert member.session.silent_s() == 0


def test_what_a_request_of_the_worker_has_shown_puts_the_member_out() -> None:
    member = Member().joined(ONE)
    member.session.expel("refused")

    assert member.session.poll(0) == Expelled("refused")
    assert member.session.silent_s() == 0


def test_the_answer_to_a_member_that_was_put_out_meanwhile_is_of_no_account() -> None:
    member = Member().joined()
    member.requests.during = lambda: member.session.expel("refused")
    member.beat(Heartbeaten(9, 1_000, tasks=TWO))

    assert member.session.poll(0) == Expelled("refused")
    assert member.session.poll(0) is None
    assert member.session.epoch is None


def test_a_member_that_is_put_out_while_a_heartbeat_is_under_way_can_join_again() -> None:
    member = Member().joined(ONE)
    member.requests.during = lambda: member.session.expel("refused")
    member.requests.answers = [Heartbeaten(7, 1_000)]
    member.clock.advance(1_000)

    assert member.session.step() == IDLE_S
    member.requests.during = None
    member.session.join()
    assert member.beat().epoch == 0


def test_the_thread_sends_heartbeats_until_it_is_stopped() -> None:
    member = Member()
    heard = Flag()
    member.requests.during = heard.set
    member.session.start()
    member.session.join()
    assert heard.wait(30)
    member.session.stop()
    said = len(member.requests.said)
    member.session.own(ONE)

    assert len(member.requests.said) == said
