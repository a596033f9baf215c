"""The place of a worker in a classic group."""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Collection, Mapping

import pytest
from confluent_kafka import Consumer, KafkaError

from pykstreams.core.errors import (
    ClusterUnavailableError,
    MissingSourceTopicError,
    StreamsError,
    TaskAssignmentError,
    TaskMigratedError,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.coordinators.coordinator_requests import GroupSettings, MemberOf
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.clients.positions import CommittedOffsets, Offsets
from pykstreams.runtime.membership.assignment.check import WrongAssignmentError
from pykstreams.runtime.membership.classic.membership import ClassicMembership
from pykstreams.runtime.membership.classic.session import Event, RejoinWanted, Synced
from pykstreams.runtime.membership.classic.subscriptions import Introduction
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.membership import Assignment, Lost
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignment_info import AT_ONCE, NEVER, AssignmentInfo
from pykstreams.runtime.membership.protocol.consumer_protocol import (
    ConsumerAssignment,
    ConsumerSubscription,
    decode_consumer_subscription,
)
from pykstreams.runtime.membership.protocol.subscription_info import SubscriptionInfo, decode_subscription
from pykstreams.runtime.membership.session_events import Expelled
from pykstreams.runtime.membership.session_times import SessionTimes
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.testing.clock import MockClock
from tests.unit.runtime.membership.group_errors import group_error


def layout(count: int) -> TopicLayout:
    return TopicLayout({"a": count}, {TaskId(0, n): frozenset({TopicPartition("a", n)}) for n in range(count)})


class Group:
    """A membership between a session and requests that the test answers; ``log`` has what it did, in order."""

    def __init__(self, instance_id: str | None = None) -> None:
        self.log: list[str] = []
        self.events: list[Event] = []
        self.said: list[ConsumerSubscription] = []
        self.error: int | None = None
        self.revoked: list[frozenset[TaskId]] = []
        self.clock = MockClock()
        self.member_id = "me"
        self.named_while_it_stops: str | None = None
        self.times = SessionTimes(2, 6)
        self.silent: float | None = 0.0
        self.group = GroupSettings("app", instance_id, 10_000, 30_000)
        self.seen = layout(2)
        self.is_visible = True
        self.membership = ClassicMembership(
            self,
            self,
            Introduction(ProcessId(uuid.UUID(int=1))),
            stateful=frozenset({0}),
            prepare=self.prepare,
            state=self,
            hosts=GroupHosts(),
            clock=self.clock,
        )

    def prepare(self) -> TopicLayout:
        self.log.append("prepare")
        if not self.is_visible:
            raise ClusterUnavailableError("not now")
        return self.seen

    def start(self) -> None: ...

    def begin(self) -> None: ...

    def lost(self) -> None:
        self.log.append("lost")

    def end(self) -> None:
        self.log.append("end")

    def assigned(self, *_: object, **__: object) -> None: ...

    def offset_sums(self) -> Mapping[TaskId, int]:
        return {}

    def join(self, subscription: bytes) -> None:
        self.log.append("join")
        self.said.append(decode_consumer_subscription(subscription))

    def poll(self, timeout_s: float) -> Event | None:
        return self.events.pop(0) if self.events else None

    def expel(self, error: GroupError) -> None:
        self.events.append(Expelled(str(error)))

    def stop(self) -> None:
        self.log.append("stop")
        self.member_id = self.named_while_it_stops or self.member_id

    def commit(self, member: MemberOf, offsets: Offsets) -> None:
        self._ask(f"commit in {member.generation}")

    def settled(self, partitions: Collection[TopicPartition]) -> CommittedOffsets:
        self._ask("committed")
        return CommittedOffsets(dict.fromkeys(partitions, (1, "")))

    def silent_s(self) -> float | None:
        return self.silent

    def leave(self, member_id: str, reason: str) -> None:
        self._ask(f"leave {member_id}")

    def close(self) -> None:
        self.log.append("close")

    def _ask(self, request: str) -> None:
        self.log.append(request)
        if self.error is not None:
            raise group_error(self.error)

    def on_revoked(self, tasks: frozenset[TaskId]) -> None:
        self.revoked.append(tasks)
        self.membership.commit(OFFSETS)

    def synced(self, generation: int, *partitions: int, **info: int) -> Assignment | Lost | None:
        """Has the group give tasks of topic a in a new generation; returns what the worker is told."""
        active = tuple(TaskId(0, n) for n in partitions)
        data = AssignmentInfo(active=active, **info).encode()  # type: ignore[arg-type]
        places = frozenset(TopicPartition("a", n) for n in partitions)
        self.events.append(Synced(MemberOf(generation, "me"), ConsumerAssignment(places, data).encode()))
        change = self.membership.poll()
        self.membership.poll()
        return change

    @property
    def last(self) -> SubscriptionInfo:
        found = decode_subscription(self.said[-1].user_data)
        assert isinstance(found, SubscriptionInfo)
        return found


OFFSETS = {TopicPartition("a", 0): (7, "")}


@pytest.fixture
def group() -> Group:
    found = Group()
    found.membership.start(layout(2), found.on_revoked)
    return found


def tasks(change: Assignment | Lost | None) -> set[TaskId]:
    assert isinstance(change, Assignment)
    return set(change.active)


def test_tasks_that_move_are_committed_in_the_new_generation_before_the_next_join(group: Group) -> None:
    assert tasks(group.synced(1, 0, 1)) == {TaskId(0, 0), TaskId(0, 1)}
    group.events.append(RejoinWanted())
    group.membership.poll()
    assert group.said[-1].owned == {TopicPartition("a", 0), TopicPartition("a", 1)}
    assert group.said[-1].generation == 1
    group.log.clear()
    assert tasks(group.synced(2, 1)) == {TaskId(0, 1)}
    assert group.log == ["commit in 2", "join"]
    assert group.revoked == [{TaskId(0, 0)}]
    assert group.said[-1].owned == {TopicPartition("a", 1)}
    assert group.said[-1].generation == 2


def test_nothing_is_committed_while_a_join_is_under_way(group: Group) -> None:
    assert not group.membership.may_commit()
    group.synced(1, 0)
    assert group.membership.may_commit()
    assert group.membership.commit(OFFSETS)
    group.events.append(RejoinWanted())
    group.membership.poll()
    assert not group.membership.may_commit()
    assert not group.membership.commit(OFFSETS)
    with pytest.raises(TaskMigratedError, match="not in the group at the moment"):
        group.membership.transaction_metadata()
    assert group.log.count("commit in 1") == 1


@pytest.mark.parametrize("silent", [None, 3.5])
def test_the_session_knows_how_long_the_group_has_been_silent(group: Group, silent: float | None) -> None:
    group.synced(1, 0)
    group.silent = silent
    assert group.membership.silent_s() == silent


def test_topics_that_change_during_a_join_are_said_after_it(group: Group) -> None:
    group.membership.follow(layout(3))
    assert group.log == ["join"]
    group.synced(1, 0)
    assert group.log == ["join", "join"]
    group.synced(2, 0)
    assert group.log == ["join", "join"]


def test_a_task_whose_topic_has_gone_is_owned_no_more(group: Group) -> None:
    group.synced(1, 0, 1)
    group.membership.follow(layout(1))
    assert group.said[-1].owned == {TopicPartition("a", 0)}


@pytest.mark.parametrize(("error", "kind"), [(1, MissingSourceTopicError), (3, TaskAssignmentError), (4, StreamsError)])
def test_the_errors_of_a_leader_end_the_member(group: Group, error: int, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        group.synced(1, error=error)


def test_topics_are_looked_at_again_before_an_assignment_is_refused(group: Group) -> None:
    group.seen = layout(3)

    assert tasks(group.synced(1, 2)) == {TaskId(0, 2)}
    assert group.log == ["join", "prepare"]


def test_the_group_is_asked_again_while_an_assignment_does_not_fit_the_topics(group: Group) -> None:
    """The broker that this worker asks, or the one that the leader asks, may just not know the new partitions yet."""
    assert group.synced(1, 2) is None
    assert group.log == ["join", "prepare"]
    group.clock.advance(1_000)
    group.membership.poll()
    assert group.log == ["join", "prepare", "join"]
    group.seen = layout(3)

    assert tasks(group.synced(2, 2)) == {TaskId(0, 2)}


def test_an_assignment_that_does_not_fit_for_ten_seconds_is_refused(group: Group) -> None:
    for generation in range(1, 11):
        assert group.synced(generation, 2) is None
        group.clock.advance(1_000)
        group.membership.poll()

    with pytest.raises(WrongAssignmentError, match="does not fit the topology"):
        group.synced(11, 2)


def test_an_assignment_that_fits_ends_the_doubt_about_those_before(group: Group) -> None:
    assert group.synced(1, 2) is None
    group.synced(2, 0)
    group.clock.advance(60_000)

    assert group.synced(3, 2) is None


def test_an_assignment_waits_for_topics_that_cannot_be_looked_at(group: Group) -> None:
    group.is_visible = False
    assert group.synced(1, 2) is None
    assert group.log == ["join", "prepare"]
    group.clock.advance(1_000)
    group.membership.poll()
    assert group.log == ["join", "prepare", "join"]


def test_the_member_joins_when_the_leader_wants_it(group: Group) -> None:
    group.synced(1, 0, next_rebalance_ms=5_000)
    group.clock.advance(4_999)
    group.membership.poll()
    assert group.log == ["join"]
    group.clock.advance(1)
    group.membership.poll()
    assert group.log == ["join", "join"]
    group.synced(2, 0, next_rebalance_ms=AT_ONCE)
    assert group.log == ["join", "join", "join"]
    group.synced(3, 0, next_rebalance_ms=NEVER)
    assert group.log == ["join", "join", "join"]


def test_another_version_is_taken_up(group: Group) -> None:
    group.synced(1, 0, version=9, common_version=9)
    assert group.last.version == 9


@pytest.mark.parametrize(
    "code", [KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.GROUP_ID_NOT_FOUND]
)
def test_a_fenced_commit_says_so_until_the_loss_is_taken(group: Group, code: int) -> None:
    group.synced(1, 0)
    group.error = code
    with pytest.raises(TaskMigratedError):
        group.membership.commit(OFFSETS)
    with pytest.raises(TaskMigratedError):
        group.membership.commit(OFFSETS)
    assert isinstance(group.membership.poll(), Lost)
    lost = group.membership.poll()
    assert isinstance(lost, Lost)
    with pytest.raises(TaskMigratedError):
        group.membership.commit(OFFSETS)
    assert group.log.count("join") == 1
    assert group.log.count("lost") == 1
    group.membership.ack(lost)
    assert group.said[-1].owned == frozenset()
    assert group.said[-1].generation == -1
    assert group.log.count("join") == 2


@pytest.mark.parametrize("code", [KafkaError.REBALANCE_IN_PROGRESS, KafkaError._TIMED_OUT])
def test_a_commit_that_cannot_be_made_now_is_made_later(group: Group, code: int) -> None:
    group.synced(1, 0)
    group.error = code
    assert not group.membership.commit(OFFSETS)
    group.error = None
    assert group.membership.commit(OFFSETS)


@pytest.mark.parametrize("instance_id", [None, "worker-1"])
def test_metadata_of_transactions_has_the_layout_of_librdkafka(instance_id: str | None) -> None:
    group = Group(instance_id)
    group.membership.start(layout(2), group.on_revoked)
    group.synced(1, 0)
    settings = {"group.id": "app"} | ({"group.instance.id": instance_id} if instance_id else {})
    consumer = Consumer(settings)
    of_nobody = consumer.consumer_group_metadata()
    consumer.close()
    no_generation, generation = ((n).to_bytes(4, sys.byteorder, signed=True) for n in (-1, 1))
    expected = of_nobody.replace(no_generation + b"app\0\0", generation + b"app\0me\0")
    assert group.membership.transaction_metadata() == expected
    end = b"\0worker-1\0" if instance_id else b"\x01"
    assert expected == b"CGMDv2:" + generation + b"app\0me\0" + end


@pytest.mark.parametrize("instance_id", [None, "worker-1"])
@pytest.mark.parametrize(("leave", "left"), [(True, ["leave me"]), (False, [])])
def test_a_member_leaves_when_it_is_told_to_and_a_static_one_too(
    instance_id: str | None, leave: bool, left: list[str]
) -> None:
    group = Group(instance_id)
    group.membership.start(layout(2), group.on_revoked)
    group.synced(1, 0)
    group.log.clear()
    group.membership.close(leave=leave)
    assert group.log == ["stop", *left, "close", "end"]


@pytest.mark.parametrize(("instance_id", "left"), [(None, []), ("worker-1", ["leave "])])
def test_a_member_without_an_id_can_leave_by_its_instance_id_only(instance_id: str | None, left: list[str]) -> None:
    group = Group(instance_id)
    group.member_id = ""
    group.membership.start(layout(2), group.on_revoked)
    group.log.clear()
    group.membership.close(leave=True)
    assert group.log == ["stop", *left, "close", "end"]


def test_a_member_that_is_given_its_id_while_it_stops_leaves_under_it(group: Group) -> None:
    """The group would wait for it, as for any member that was named and has not joined, until its session is over."""
    group.member_id = ""
    group.named_while_it_stops = "me"
    group.log.clear()
    group.membership.close(leave=True)

    assert group.log == ["stop", "leave me", "close", "end"]


@pytest.mark.parametrize(
    ("error", "said"), [(KafkaError.UNKNOWN_MEMBER_ID, False), (KafkaError.COORDINATOR_NOT_AVAILABLE, True)]
)
def test_a_group_that_was_not_told_is_worth_a_warning_unless_it_has_put_the_member_out(
    group: Group, caplog: pytest.LogCaptureFixture, error: int, said: bool
) -> None:
    group.synced(1, 0)
    group.error = error
    with caplog.at_level(logging.WARNING):
        group.membership.close(leave=True)
    assert ("the group was not told that this worker has left" in caplog.text) is said
    assert group.log[-2:] == ["close", "end"]
