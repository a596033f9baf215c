"""A session joins when its worker says so, and says of each answer what it means for the worker."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping

import pytest
from confluent_kafka import KafkaError

from pykstreams.core.errors import ClusterError, ClusterUnavailableError, ConfigError, StreamsError
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.clients.group_coordinator import Joined, MemberOf
from pykstreams.runtime.membership.classic.session import (
    ClassicSession,
    Event,
    Expelled,
    Refused,
    RejoinWanted,
    Synced,
)
from pykstreams.testing.clock import MockClock

ME = MemberOf(1, "me")
HEARTBEAT_S, MAX_POLL_S = 3.0, 300.0


class ScriptedRequests:
    """A coordinator whose next answers a test says; without one all goes well."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failures: dict[str, deque[int]] = {}
        self.leads: Mapping[str, bytes] | None = None
        self.generation = 0

    def join(self, member_id: str, subscription: bytes) -> Joined:
        self._ask("join", f"{member_id or 'nobody'} {subscription.decode()}")
        self.generation += 1
        return Joined(MemberOf(self.generation, "me"), "me" if self.leads else "other", self.leads)

    def sync(self, member: MemberOf, assignments: Mapping[str, bytes]) -> bytes:
        self._ask("sync", f"{member.generation} {sorted(assignments)}")
        return b"tasks"

    def heartbeat(self, member: MemberOf) -> None:
        self._ask("heartbeat", str(member.generation))

    def leave(self, member_id: str, reason: str) -> None:
        self._ask("leave", member_id)

    def close(self) -> None:
        self.asked.append("close")

    def fails(self, request: str, *codes: int) -> None:
        self.failures[request] = deque(codes)

    def _ask(self, request: str, details: str) -> None:
        self.asked.append(f"{request} {details}")
        if self.failures.get(request):
            raise GroupError(KafkaError(self.failures[request].popleft()))


class Bench:
    """A session whose steps a test goes through."""

    def __init__(self, *, is_static: bool = False) -> None:
        self.clock = MockClock(0)
        self.requests = ScriptedRequests()
        self.led: StreamsError | None = None
        self.session = ClassicSession(
            "session",
            self.requests,
            self.lead,
            clock=self.clock,
            heartbeat_s=HEARTBEAT_S,
            max_poll_s=MAX_POLL_S,
            is_static=is_static,
        )

    def lead(self, subscriptions: Mapping[str, bytes]) -> Mapping[str, bytes]:
        if self.led is not None:
            raise self.led
        return dict.fromkeys(subscriptions, b"tasks")

    def poll(self) -> Event | None:
        return self.session.poll(0)

    def join(self) -> None:
        self.session.join(b"word")
        self.session.step()

    def joined(self) -> None:
        self.join()
        assert isinstance(self.poll(), Synced)
        self.requests.asked.clear()

    def beat(self) -> float:
        self.clock.advance(3_000)
        return self.session.step()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_session_asks_for_nothing_before_its_worker_wants_to_join(bench: Bench) -> None:
    bench.session.step()
    bench.beat()

    assert bench.requests.asked == []
    assert bench.poll() is None


def test_a_member_that_has_joined_beats_at_its_interval(bench: Bench) -> None:
    bench.join()

    assert bench.poll() == Synced(ME, b"tasks")
    assert bench.session.member_id == "me"
    assert bench.session.step() == HEARTBEAT_S
    bench.beat()
    assert bench.requests.asked == ["join nobody word", "sync 1 []", "heartbeat 1"]


def test_a_leader_brings_the_assignments_of_all(bench: Bench) -> None:
    bench.requests.leads = {"me": b"word", "other": b"word"}
    bench.join()

    assert bench.requests.asked[-1] == "sync 1 ['me', 'other']"


def test_a_leader_that_cannot_see_the_topics_joins_again_and_sends_nothing(bench: Bench) -> None:
    bench.requests.leads = {"me": b"word"}
    bench.led = ClusterUnavailableError("no broker answers")
    bench.join()

    assert bench.poll() is None
    assert bench.requests.asked == ["join nobody word"]
    bench.led = None
    bench.session.step()
    assert bench.requests.asked[1:] == ["join me word", "sync 2 ['me']"]


def test_a_leader_that_finds_no_assignment_ends_and_leaves_the_group_to_others(bench: Bench) -> None:
    bench.requests.leads = {"me": b"word"}
    bench.led = StreamsError("a partition is there twice")
    bench.join()

    assert bench.poll() == Refused(bench.led)


def test_a_rebalance_is_reported_once_and_the_member_goes_on_beating_until_it_joins(bench: Bench) -> None:
    bench.joined()
    bench.requests.fails("heartbeat", KafkaError.REBALANCE_IN_PROGRESS, KafkaError.REBALANCE_IN_PROGRESS)
    bench.beat()
    bench.beat()

    assert (bench.poll(), bench.poll()) == (RejoinWanted(), None)
    bench.join()
    assert bench.poll() == Synced(MemberOf(2, "me"), b"tasks")


@pytest.mark.parametrize(
    ("code", "comes_back_as"), [(KafkaError.UNKNOWN_MEMBER_ID, "nobody"), (KafkaError.ILLEGAL_GENERATION, "me")]
)
@pytest.mark.parametrize("request_", ["heartbeat", "join", "sync"])
def test_a_member_that_was_put_out_does_not_join_before_its_worker_asks_for_it(
    bench: Bench, request_: str, code: int, comes_back_as: str
) -> None:
    bench.joined()
    bench.requests.fails(request_, code)
    if request_ == "heartbeat":
        bench.beat()
    else:
        bench.join()
    assert isinstance(bench.poll(), Expelled)
    bench.requests.asked.clear()

    for _ in range(3):
        bench.beat()
    assert bench.requests.asked == []
    bench.join()
    assert bench.requests.asked[0] == f"join {comes_back_as} word"


def test_a_new_member_whose_id_is_forgotten_asks_for_another_one(bench: Bench) -> None:
    bench.requests.fails("sync", KafkaError.UNKNOWN_MEMBER_ID)
    bench.join()
    assert bench.poll() is None

    bench.session.step()

    assert bench.requests.asked[2] == "join nobody word"
    assert isinstance(bench.poll(), Synced)


def test_a_sync_that_comes_into_the_next_rebalance_joins_again_at_once(bench: Bench) -> None:
    bench.requests.fails("sync", KafkaError.REBALANCE_IN_PROGRESS)
    bench.session.join(b"word")

    assert bench.session.step() == 0.0
    bench.session.step()
    assert bench.poll() == Synced(MemberOf(2, "me"), b"tasks")


@pytest.mark.parametrize(
    "code", [KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError._TRANSPORT]
)
def test_a_coordinator_that_is_away_is_asked_again_with_a_back_off_and_nothing_is_given_up(
    bench: Bench, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    bench.joined()
    bench.requests.fails("join", code, code, code)
    bench.session.join(b"word")

    with caplog.at_level(logging.WARNING):
        waits = [bench.session.step() for _ in range(3)]
    bench.session.step()

    assert waits == sorted(waits) and waits[0] > 0
    assert isinstance(bench.poll(), Synced)
    assert caplog.text.count("joining the group failed, and is tried again") == 1


def test_heartbeats_that_get_no_answer_are_tried_again_soon_and_nothing_is_given_up(bench: Bench) -> None:
    bench.joined()
    bench.requests.fails("heartbeat", KafkaError._TIMED_OUT, KafkaError._TRANSPORT)

    assert 0 < bench.beat() <= 1
    bench.clock.advance(1_000)
    bench.session.step()
    bench.clock.advance(1_000)
    assert bench.session.step() == HEARTBEAT_S
    assert bench.poll() is None


def test_members_of_another_protocol_are_waited_for_with_a_message_once_per_interval(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.requests.fails("join", *[KafkaError.INCONSISTENT_GROUP_PROTOCOL] * 5)
    bench.session.join(b"word")

    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            bench.session.step()
    bench.session.step()

    assert caplog.text.count("this worker waits until the last of them has left") == 1
    assert isinstance(bench.poll(), Synced)


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (KafkaError.FENCED_INSTANCE_ID, ConfigError, "group.instance.id of this one"),
        (KafkaError.INVALID_SESSION_TIMEOUT, ConfigError, "group.min.session.timeout.ms"),
        (KafkaError.GROUP_MAX_SIZE_REACHED, ClusterError, "group.max.size"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, ClusterError, "joining the group failed"),
    ],
)
def test_what_will_not_change_by_asking_again_ends_the_worker(
    bench: Bench, code: int, kind: type[Exception], text: str
) -> None:
    bench.requests.fails("join", code)
    bench.join()

    refused = bench.poll()
    assert isinstance(refused, Refused)
    assert type(refused.error) is kind
    assert text in str(refused.error)


def test_a_fenced_static_member_hears_of_it_by_its_heartbeat(bench: Bench) -> None:
    bench.joined()
    bench.requests.fails("heartbeat", KafkaError.FENCED_INSTANCE_ID)
    bench.beat()

    refused = bench.poll()
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, ConfigError)


@pytest.mark.parametrize(("is_static", "asked"), [(False, ["leave me"]), (True, [])])
def test_a_worker_that_does_not_poll_for_too_long_leaves_so_that_others_do_its_work(
    is_static: bool, asked: list[str]
) -> None:
    bench = Bench(is_static=is_static)
    bench.joined()
    bench.clock.advance(301_000)
    bench.session.step()

    assert bench.requests.asked == asked
    assert bench.poll() == Expelled("max.poll.interval.ms has passed")
    bench.join()
    assert bench.requests.asked[len(asked)] == f"join {'me' if is_static else 'nobody'} word"


def test_what_a_request_of_the_worker_has_shown_counts_once(bench: Bench) -> None:
    bench.joined()

    bench.session.expel(GroupError(KafkaError(KafkaError.UNKNOWN_MEMBER_ID)))
    bench.session.expel(GroupError(KafkaError(KafkaError.UNKNOWN_MEMBER_ID)))

    assert isinstance(bench.poll(), Expelled)
    assert bench.poll() is None


def test_a_session_that_is_stopped_ends_its_thread_and_what_it_asks(bench: Bench) -> None:
    bench.session.start()

    bench.session.stop()

    assert bench.requests.asked == ["close"]
