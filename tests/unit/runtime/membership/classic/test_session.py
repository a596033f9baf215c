"""The life of one member in a classic group."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from threading import Event as Flag

import pytest
from confluent_kafka import KafkaError

from pykstreams.core.errors import ClusterError, ClusterUnavailableError, ConfigError, StreamsError
from pykstreams.runtime.clients.coordinators.coordinator_requests import MemberOf
from pykstreams.runtime.clients.coordinators.group_coordinator import Joined, NamedFirst
from pykstreams.runtime.membership.classic.session import ClassicSession, RejoinWanted, Synced
from pykstreams.runtime.membership.session_events import Expelled, Refused
from pykstreams.runtime.membership.session_times import SessionTimes
from pykstreams.testing.clock import MockClock
from tests.unit.runtime.membership.group_errors import group_error

ME = MemberOf(5, "me")


class Script:
    """Requests whose answers the test gives: an error code, or nothing for success."""

    def __init__(self) -> None:
        self.errors: dict[str, list[int]] = {}
        self.asked: list[tuple[str, str]] = []
        self.place = ME
        self.leads = False
        self.names_first = False
        """Whether it wants to know a member before this one makes others wait."""
        self.during: dict[str, Callable[[], None]] = {}
        self.closed = Flag()

    def join(self, member_id: str, subscription: bytes) -> Joined | NamedFirst:
        self._ask("join", member_id)
        if self.names_first and not member_id:
            return NamedFirst("me")
        return Joined(self.place, "me", {"me": subscription} if self.leads else None)

    def sync(self, member: MemberOf, assignments: Mapping[str, bytes]) -> bytes:
        self._ask("sync", member.member_id)
        return assignments.get("me", b"given")

    def heartbeat(self, member: MemberOf) -> None:
        self._ask("heartbeat", member.member_id)

    def leave(self, member_id: str, reason: str) -> None:
        self._ask("leave", member_id)

    def close(self) -> None:
        self.closed.set()

    def _ask(self, request: str, member_id: str) -> None:
        self.asked.append((request, member_id))
        if meanwhile := self.during.pop(request, None):
            meanwhile()
        if codes := self.errors.get(request):
            raise group_error(codes.pop(0))

    def count(self, request: str) -> int:
        return sum(name == request for name, _ in self.asked)


class Member:
    def __init__(self, *, is_static: bool = False) -> None:
        self.clock = MockClock()
        self.requests = Script()
        self.lead: Callable[[Mapping[str, bytes]], Mapping[str, bytes]] = dict
        self.session = ClassicSession(
            "member",
            self.requests,
            lambda subscriptions: self.lead(subscriptions),
            clock=self.clock,
            times=SessionTimes(3, 10),
            max_poll_s=30,
            is_static=is_static,
        )

    def joined(self) -> Member:
        self.session.join(b"said")
        self.session.step()
        assert self.session.poll(0) == Synced(ME, b"given")
        return self

    def beat(self, *codes: int) -> None:
        self.requests.errors["heartbeat"] = list(codes)
        self.clock.advance(3_000)
        self.session.step()


def test_nothing_is_asked_before_the_worker_joins() -> None:
    member = Member()
    assert member.session.step() > 0
    assert member.requests.asked == []


def test_a_member_whose_first_join_gets_lost_joins_under_the_id_that_it_was_given_and_is_no_second_member() -> None:
    member = Member()
    member.requests.names_first = True
    member.session.join(b"said")
    member.session.step()
    member.requests.errors["join"] = [KafkaError._TRANSPORT]
    for _ in range(2):
        member.session.step()

    assert member.requests.asked[:3] == [("join", ""), ("join", "me"), ("join", "me")]
    assert member.session.poll(0) == Synced(ME, b"given")


def test_a_leader_brings_what_it_decided() -> None:
    member = Member()
    member.requests.leads = True
    member.session.join(b"said")
    member.session.step()
    assert member.session.poll(0) == Synced(ME, b"said")


def test_the_group_is_told_at_each_interval_that_the_member_lives() -> None:
    member = Member().joined()
    assert member.session.step() == 3
    assert member.requests.count("heartbeat") == 0
    member.beat()
    assert member.requests.count("heartbeat") == 1
    assert member.session.poll(0) is None


@pytest.mark.parametrize("answer", [[], [KafkaError.REBALANCE_IN_PROGRESS]])
def test_the_group_has_been_silent_since_the_last_heartbeat_that_it_answered_was_sent(answer: list[int]) -> None:
    member = Member().joined()
    assert member.session.silent_s() == 0
    member.requests.during["heartbeat"] = lambda: member.clock.advance(500)
    member.beat(*answer)
    assert member.session.silent_s() == 0.5
    member.beat(KafkaError._TIMED_OUT)
    assert member.session.silent_s() == 3.5


def test_a_member_that_is_not_in_the_group_waits_for_no_word_of_it() -> None:
    member = Member()
    member.clock.advance(60_000)
    assert member.session.silent_s() == 0
    member.joined().beat(KafkaError.UNKNOWN_MEMBER_ID)
    assert isinstance(member.session.poll(0), Expelled)
    member.clock.advance(60_000)
    assert member.session.silent_s() == 0


def test_a_member_that_was_put_out_counts_no_more_before_the_worker_has_heard_of_it() -> None:
    member = Member().joined()
    member.beat(KafkaError.UNKNOWN_MEMBER_ID)
    assert member.session.silent_s() == math.inf


def test_a_leader_that_takes_long_to_share_out_tasks_is_in_doubt_like_any_member() -> None:
    """It says nothing meanwhile, and the coordinator keeps it for one session from its answer to the join on."""
    member = Member().joined()
    member.requests.leads = True
    silent: list[float | None] = []

    def slowly(subscriptions: Mapping[str, bytes]) -> Mapping[str, bytes]:
        member.clock.advance(7_000)
        silent.append(member.session.silent_s())
        return dict(subscriptions)

    member.lead = slowly
    member.session.join(b"again")
    member.clock.advance(60_000)
    silent.append(member.session.silent_s())
    member.session.step()

    assert silent == [None, 7]
    assert member.session.silent_s() == 0


def test_a_leader_that_could_not_share_out_tasks_is_in_doubt_since_its_generation_began() -> None:
    """It is told the same one when it joins again, and the coordinator does not begin its session anew."""
    member = Member().joined()
    member.requests.leads = True
    silent: list[float | None] = []

    def unseen(_: Mapping[str, bytes]) -> Mapping[str, bytes]:
        member.clock.advance(3_000)
        silent.append(member.session.silent_s())
        raise ClusterUnavailableError("not now")

    member.lead = unseen
    member.session.join(b"again")
    member.session.step()
    member.session.step()
    member.requests.place = MemberOf(6, "me")
    member.session.step()

    assert silent == [3, 6, 3]


def test_a_member_is_kept_while_the_group_waits_for_others_to_join() -> None:
    member = Member().joined()
    member.session.join(b"again")
    member.clock.advance(60_000)
    assert member.session.silent_s() is None
    member.session.step()
    assert member.session.silent_s() == 0


def test_a_member_whose_join_was_not_answered_may_not_be_kept() -> None:
    member = Member().joined()
    member.session.join(b"again")
    member.requests.errors["join"] = [KafkaError._TRANSPORT]
    member.clock.advance(7_000)
    member.session.step()
    assert member.session.silent_s() == 7


def test_a_member_whose_sync_was_not_answered_is_in_doubt_and_joins_again_under_its_id() -> None:
    member = Member().joined()
    member.session.join(b"again")
    member.requests.during["sync"] = lambda: member.clock.advance(11_000)
    member.requests.errors["sync"] = [KafkaError._TIMED_OUT]
    member.session.step()
    assert member.session.silent_s() == 11
    member.session.step()

    assert member.requests.asked[-4:] == [("join", "me"), ("sync", "me")] * 2
    assert member.session.poll(0) == Synced(ME, b"given")


def test_the_wish_of_the_group_is_reported_once() -> None:
    member = Member().joined()
    for _ in range(3):
        member.beat(KafkaError.REBALANCE_IN_PROGRESS)
    assert member.session.poll(0) == RejoinWanted()
    assert member.session.poll(0) is None


def test_a_wish_that_crossed_a_join_does_not_hide_the_next_one() -> None:
    member = Member().joined()
    member.requests.during["heartbeat"] = lambda: member.session.join(b"again")
    member.beat(KafkaError.REBALANCE_IN_PROGRESS)
    member.session.step()
    assert isinstance(member.session.poll(0), Synced)
    member.beat(KafkaError.REBALANCE_IN_PROGRESS)
    assert member.session.poll(0) == RejoinWanted()


@pytest.mark.parametrize(
    ("code", "id_of_next_join"), [(KafkaError.UNKNOWN_MEMBER_ID, ""), (KafkaError.ILLEGAL_GENERATION, "me")]
)
@pytest.mark.parametrize("request_", ["heartbeat", "join", "sync"])
def test_an_expelled_member_joins_when_the_worker_asks_for_it(code: int, id_of_next_join: str, request_: str) -> None:
    member = Member().joined()
    if request_ == "heartbeat":
        member.beat(code)
    else:
        member.session.join(b"again")
        member.requests.errors[request_] = [code]
        member.session.step()
    assert isinstance(member.session.poll(0), Expelled)
    joins = member.requests.count("join")
    for _ in range(3):
        member.beat()
    assert member.requests.count("join") == joins
    member.session.join(b"anew")
    member.session.step()
    assert ("join", id_of_next_join) in member.requests.asked[-2:]
    assert isinstance(member.session.poll(0), Synced)


def test_a_member_that_was_never_in_asks_for_another_id_by_itself() -> None:
    member = Member()
    member.requests.errors["sync"] = [KafkaError.UNKNOWN_MEMBER_ID]
    member.session.join(b"said")
    member.session.step()
    member.session.step()
    assert [one for one in member.requests.asked if one[0] == "join"] == [("join", ""), ("join", "")]
    assert isinstance(member.session.poll(0), Synced)


def test_a_rebalance_during_sync_is_joined_at_once() -> None:
    member = Member()
    member.requests.errors["sync"] = [KafkaError.REBALANCE_IN_PROGRESS]
    member.session.join(b"said")
    assert member.session.step() == 0
    member.session.step()
    assert ("join", "me") in member.requests.asked
    assert isinstance(member.session.poll(0), Synced)


@pytest.mark.parametrize("code", [KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError.NOT_COORDINATOR])
def test_what_passes_is_tried_again_ever_more_slowly(code: int) -> None:
    member = Member()
    member.requests.errors["join"] = [code] * 5
    member.session.join(b"said")
    assert [member.session.step() for _ in range(5)] == [0.1, 0.2, 0.5, 1.0, 1.0]
    assert member.session.poll(0) is None
    member.session.step()
    assert isinstance(member.session.poll(0), Synced)


def test_only_a_join_that_fails_again_is_worth_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Brokers that were started a moment ago refuse the first one."""
    member = Member()
    member.requests.errors["join"] = [KafkaError.NOT_COORDINATOR] * 2
    member.session.join(b"said")
    with caplog.at_level("INFO"):
        member.session.step()
        member.session.step()

    said = [(one.levelname, one.getMessage()) for one in caplog.records]
    assert [level for level, text in said if "joining the group failed, and is tried again" in text] == [
        "INFO",
        "WARNING",
    ]


def test_a_heartbeat_without_answer_is_sent_again_soon() -> None:
    member = Member().joined()
    member.beat(KafkaError._TIMED_OUT)
    assert member.session.step() == 1
    assert member.session.poll(0) is None


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (KafkaError.FENCED_INSTANCE_ID, ConfigError, "group.instance.id"),
        (KafkaError.INVALID_SESSION_TIMEOUT, ConfigError, r"of \d+ ms; set consumer\.session\.timeout\.ms to"),
        (KafkaError.GROUP_MAX_SIZE_REACHED, ClusterError, "group.max.size"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, ClusterError, "joining the group failed"),
    ],
)
def test_a_member_that_is_refused_says_why_and_asks_no_more(code: int, kind: type[Exception], words: str) -> None:
    member = Member()
    member.requests.errors["join"] = [code]
    member.session.join(b"said")
    member.session.step()
    event = member.session.poll(0)
    assert isinstance(event, Refused)
    with pytest.raises(kind, match=words):
        raise event.error
    member.session.step()
    assert member.requests.count("join") == 1


def test_a_static_member_that_a_commit_shows_to_be_fenced_does_not_fence_the_other_in_turn() -> None:
    member = Member(is_static=True).joined()
    member.session.expel(group_error(KafkaError.FENCED_INSTANCE_ID))
    event = member.session.poll(0)
    assert isinstance(event, Refused)
    assert "group.instance.id" in str(event.error)


def test_a_member_whose_group_a_commit_shows_to_be_gone_joins_as_a_new_one() -> None:
    member = Member().joined()
    member.session.expel(group_error(KafkaError.GROUP_ID_NOT_FOUND))
    assert isinstance(member.session.poll(0), Expelled)
    member.session.join(b"anew")
    member.session.step()

    assert ("join", "") in member.requests.asked[-2:]


def test_members_of_another_kind_are_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    member = Member()
    member.requests.errors["join"] = [KafkaError.INCONSISTENT_GROUP_PROTOCOL] * 3
    member.session.join(b"said")
    for _ in range(3):
        member.session.step()
    assert len([one for one in caplog.records if "do not share out tasks" in one.getMessage()]) == 1
    member.session.step()
    assert isinstance(member.session.poll(0), Synced)


def test_a_leader_that_cannot_see_the_cluster_tries_again() -> None:
    member = Member()
    member.requests.leads = True

    def unseen(_: Mapping[str, bytes]) -> Mapping[str, bytes]:
        raise ClusterUnavailableError("not now")

    member.lead = unseen
    member.session.join(b"said")
    assert member.session.step() == 0.1
    assert member.requests.count("sync") == 0
    member.lead = dict
    member.session.step()
    assert isinstance(member.session.poll(0), Synced)


def test_a_leader_whose_assignor_makes_a_mistake_ends_and_tells_the_others_nothing() -> None:
    member = Member()
    member.requests.leads = True

    def mistaken(_: Mapping[str, bytes]) -> Mapping[str, bytes]:
        raise StreamsError("the task assignor made a mistake")

    member.lead = mistaken
    member.session.join(b"said")
    member.session.step()
    assert member.requests.count("sync") == 0
    event = member.session.poll(0)
    assert isinstance(event, Refused)
    assert str(event.error) == "the task assignor made a mistake"


@pytest.mark.parametrize(("is_static", "left", "next_id"), [(False, 1, ""), (True, 0, "me")])
def test_a_worker_that_is_busy_for_too_long_loses_its_tasks(is_static: bool, left: int, next_id: str) -> None:
    member = Member(is_static=is_static).joined()
    member.clock.advance(30_001)
    member.session.step()
    assert member.requests.count("leave") == left
    assert member.session.poll(0) == Expelled("max.poll.interval.ms has passed")
    member.session.join(b"again")
    member.session.step()
    assert ("join", next_id) in member.requests.asked[-2:]


def test_stopping_ends_a_join_that_is_under_way() -> None:
    member = Member()
    asked = Flag()
    member.requests.errors["join"] = [KafkaError._DESTROY]

    def wait() -> None:
        asked.set()
        assert member.requests.closed.wait(30)

    member.requests.during["join"] = wait
    member.session.start()
    member.session.join(b"said")
    assert asked.wait(30)
    member.session.stop()
    assert member.session.poll(0) is None
