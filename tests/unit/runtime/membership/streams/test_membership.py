"""The place of a worker in a streams group."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
from confluent_kafka import Consumer, KafkaError

from pykstreams.core.errors import (
    ClusterError,
    ClusterUnavailableError,
    MissingSourceTopicError,
    TaskMigratedError,
    TopologyError,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.coordinators.coordinator_requests import GroupSettings, MemberOf
from pykstreams.runtime.clients.coordinators.streams_heartbeat import (
    LEAVING,
    NO_TASKS,
    Endpoint,
    GroupStatus,
    Heartbeat,
    Heartbeaten,
    Tasks,
)
from pykstreams.runtime.clients.positions import CommittedOffsets, Offsets
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.membership.membership import Assignment, Lost, ShutdownRequestedError
from pykstreams.runtime.membership.session_events import Expelled, Refused
from pykstreams.runtime.membership.session_times import SessionTimes
from pykstreams.runtime.membership.streams.membership import StreamsMembership
from pykstreams.runtime.membership.streams.session import EndpointsChanged, Event, StatusChanged, Targeted
from pykstreams.runtime.topics.topic_admin import TopicLayout
from tests.unit.runtime.membership.adjusted_clock import AdjustedClock
from tests.unit.runtime.membership.group_errors import group_error

OFFSETS: Offsets = {TopicPartition("a", 0): (7, "")}


def layout(count: int) -> TopicLayout:
    return TopicLayout({"a": count}, {TaskId(0, n): frozenset({TopicPartition("a", n)}) for n in range(count)})


def tasks(*partitions: int) -> frozenset[TaskId]:
    return frozenset(TaskId(0, n) for n in partitions)


class Group:
    """A membership between a session and requests that the test answers; ``log`` has what it did, in order."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.events: list[Event] = []
        self.error: int | None = None
        self.is_visible = True
        self.member_id = "me"
        self.times = SessionTimes(2, 6)
        self.epoch: int | None = 5
        self.may_be_member = True
        self.silent = 0.0
        self.group = GroupSettings("app", None, 10_000, 30_000)
        self.seen = layout(2)
        self.standby: Mapping[TaskId, frozenset[TopicPartition]] = {}
        self.hosts = GroupHosts()
        self.clock = AdjustedClock(60_000)
        self.membership = StreamsMembership(
            self, self, prepare=self.prepare, state=self, hosts=self.hosts, clock=self.clock
        )
        self.membership.start(layout(2), self.on_revoked)

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

    def offset_sums(self) -> Mapping[TaskId, int]:
        return {}

    def assigned(self, standby: Mapping[TaskId, frozenset[TopicPartition]], active: Collection[TaskId]) -> None:
        self.log.append(f"standby {sorted(map(str, standby))}")
        self.standby = standby

    def join(self) -> None:
        self.log.append("join")

    def own(self, owned: Tasks) -> None:
        self.log.append(f"own {sorted(map(str, owned.active))}")

    def poll(self, timeout_s: float) -> Event | None:
        return self.events.pop(0) if self.events else None

    def silent_s(self) -> float:
        return self.silent

    def expel(self, reason: str) -> None:
        self.epoch, self.may_be_member = None, False
        self.events.append(Expelled(reason))

    def stop(self) -> None:
        self.log.append("stop")

    def commit(self, member: MemberOf, offsets: Offsets) -> None:
        self._ask(f"commit in {member.generation}")

    def settled(self, partitions: Collection[TopicPartition]) -> CommittedOffsets:
        self._ask("committed")
        return CommittedOffsets(dict.fromkeys(partitions, (1, "")))

    def heartbeat(self, said: Heartbeat) -> Heartbeaten:
        self._ask("leave" if said.epoch == LEAVING else "heartbeat")
        return Heartbeaten(said.epoch, 1_000)

    def close(self) -> None:
        self.log.append("close")

    def _ask(self, request: str) -> None:
        self.log.append(request)
        if self.error is not None:
            raise group_error(self.error)

    def on_revoked(self, gone: frozenset[TaskId]) -> None:
        self.log.append(f"revoked {sorted(map(str, gone))}")

    def told(self, *events: Event) -> Assignment | Lost | None:
        self.events += events
        found = None
        for _ in events:
            found = self.membership.poll()
        return found

    def given(self, *partitions: int) -> Assignment:
        change = self.told(Targeted(Tasks(tasks(*partitions))))
        assert isinstance(change, Assignment)
        self.membership.ack(change)
        self.log.clear()
        return change


@pytest.fixture
def group() -> Group:
    return Group()


def test_tasks_are_reported_when_the_worker_acts_on_them(group: Group) -> None:
    change = group.told(Targeted(Tasks(tasks(0, 1))))

    assert isinstance(change, Assignment)
    assert change.active == tasks(0, 1)
    assert "own ['0_0', '0_1']" not in group.log
    group.membership.ack(change)
    assert group.log[-1] == "own ['0_0', '0_1']"


def test_a_task_that_goes_is_committed_before_the_group_hears_of_it(group: Group) -> None:
    group.given(0, 1)
    change = group.told(Targeted(Tasks(tasks(1), standby=tasks(0))))
    assert isinstance(change, Assignment)
    group.membership.ack(change)

    assert group.log == ["standby ['0_0']", "revoked ['0_0']", "own ['0_1']"]


def test_warm_up_tasks_are_kept_as_standby_tasks(group: Group) -> None:
    group.told(Targeted(Tasks(tasks(0), warmup=tasks(1))))

    assert group.standby == {TaskId(0, 1): frozenset({TopicPartition("a", 1)})}


def test_a_task_whose_partitions_cannot_be_seen_yet_is_waited_for(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    assert group.told(Targeted(Tasks(tasks(0, 2)))) is None
    assert "tasks 0_2 were assigned, whose partitions cannot be seen yet" in caplog.text
    group.log.clear()
    assert group.membership.poll() is None
    assert group.log == []
    group.seen = layout(3)
    group.clock.advance(1_000)
    change = group.membership.poll()

    assert isinstance(change, Assignment)
    assert change.layout == layout(3)
    assert change.active == tasks(0, 2)


def test_topics_are_looked_at_again_also_when_the_clock_is_set_back(group: Group) -> None:
    assert group.told(Targeted(Tasks(tasks(2)))) is None
    group.seen = layout(3)
    group.clock.set_back(50_000)
    group.clock.advance(1_000)

    assert isinstance(group.membership.poll(), Assignment)


def test_an_assignment_waits_while_the_topics_cannot_be_looked_at(group: Group) -> None:
    group.is_visible = False
    assert group.told(Targeted(Tasks(tasks(2)))) is None
    group.is_visible, group.seen = True, layout(3)
    group.clock.advance(1_000)

    assert isinstance(group.membership.poll(), Assignment)


def test_who_is_put_out_owns_nothing_and_joins_when_the_worker_says_so(group: Group) -> None:
    group.given(0)
    group.epoch = None
    lost = group.told(Expelled("unknown"))

    assert isinstance(lost, Lost)
    with pytest.raises(TaskMigratedError, match="lost its tasks"):
        group.membership.commit(OFFSETS)
    with pytest.raises(TaskMigratedError, match="lost its tasks"):
        group.membership.transaction_metadata()
    assert isinstance(group.membership.poll(), Lost)
    assert group.log == ["lost"]
    group.membership.ack(lost)
    assert group.log == ["lost", "join"]
    assert group.membership.poll() is None


def test_offsets_are_committed_in_the_epoch_of_the_member(group: Group) -> None:
    group.given(0)
    assert group.membership.may_commit()
    assert group.membership.commit(OFFSETS)
    group.epoch = 6
    assert group.membership.commit(OFFSETS)
    assert group.membership.commit({})

    assert group.log == ["commit in 5", "commit in 6"]


@pytest.mark.parametrize("code", [KafkaError.STALE_MEMBER_EPOCH, KafkaError._TIMED_OUT, KafkaError.NOT_COORDINATOR])
def test_a_commit_that_comes_too_early_is_made_later(group: Group, code: int) -> None:
    group.given(0)
    group.error = code

    assert not group.membership.commit(OFFSETS)


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_MEMBER_ID, KafkaError.GROUP_ID_NOT_FOUND])
def test_a_commit_that_shows_that_others_have_the_tasks_gives_them_up(group: Group, code: int) -> None:
    group.given(0)
    group.error = code
    with pytest.raises(TaskMigratedError, match="no longer in the group"):
        group.membership.commit(OFFSETS)

    assert isinstance(group.membership.poll(), Lost)


def test_a_commit_that_is_refused_for_good_is_an_error(group: Group) -> None:
    group.given(0)
    group.error = KafkaError.GROUP_AUTHORIZATION_FAILED
    with pytest.raises(ClusterError, match="committing offsets failed"):
        group.membership.commit(OFFSETS)


def test_nothing_is_committed_before_the_member_is_in_the_group(group: Group) -> None:
    group.epoch = None

    assert not group.membership.may_commit()
    assert not group.membership.commit(OFFSETS)
    with pytest.raises(TaskMigratedError, match="not in the group at the moment"):
        group.membership.transaction_metadata()


def test_committed_offsets_are_asked_for_again_when_nobody_answers(group: Group) -> None:
    place = TopicPartition("a", 0)
    assert group.membership.committed([]) == CommittedOffsets({})
    assert group.membership.committed([place]) == CommittedOffsets({place: (1, "")})
    group.error = KafkaError._TIMED_OUT
    assert group.membership.committed([place]) is None
    group.error = KafkaError.GROUP_AUTHORIZATION_FAILED
    with pytest.raises(ClusterError, match="reading committed offsets failed"):
        group.membership.committed([place])


def test_brokers_fence_transactions_by_what_the_client_library_writes_itself(group: Group) -> None:
    """With the layout of the library's own metadata, of a consumer that is in no group."""
    group.given(0)
    consumer = Consumer({"group.id": "app", "bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    own = bytes(consumer.consumer_group_metadata())
    consumer.close()
    built = group.membership.transaction_metadata()

    assert built == own[:7] + (5).to_bytes(4, "little") + b"app\0me\0\x01"
    assert own[7:].startswith(b"\xff\xff\xff\xffapp\0")


def test_the_session_knows_how_long_the_group_has_been_silent(group: Group) -> None:
    group.given(0)
    group.silent = 3.5
    assert group.membership.silent_s() == 3.5


def test_a_shutdown_that_a_member_asks_for_reaches_all(group: Group) -> None:
    with pytest.raises(ShutdownRequestedError, match=r"asked all of them to shut down.*member x"):
        group.told(StatusChanged({GroupStatus.SHUTDOWN_APPLICATION: "member x"}, 1))


def test_wrong_numbers_of_partitions_are_an_error(group: Group) -> None:
    with pytest.raises(TopologyError, match="wrong number of partitions: a has 2"):
        group.told(StatusChanged({GroupStatus.INCORRECTLY_PARTITIONED_TOPICS: "a has 2"}, 1))


def test_missing_sources_are_an_error_after_two_heartbeats(group: Group) -> None:
    missing = StatusChanged({GroupStatus.MISSING_SOURCE_TOPICS: "a"}, 1)
    assert group.told(missing) is None
    group.clock.advance(1_999)
    assert group.membership.poll() is None
    assert group.told(StatusChanged({}, 1)) is None
    group.clock.advance(1)
    assert group.membership.poll() is None
    assert group.told(missing) is None
    group.clock.advance(2_000)
    with pytest.raises(MissingSourceTopicError, match="are missing: a"):
        group.membership.poll()


def test_a_member_of_a_group_that_waits_for_more_members_is_not_told_that_it_has_no_task(group: Group) -> None:
    delayed = StatusChanged({GroupStatus.ASSIGNMENT_DELAYED: "3000 ms"}, 1)
    assert group.told(delayed, Targeted(NO_TASKS)) is None
    assert group.membership.poll() is None
    change = group.told(StatusChanged({}, 1), Targeted(Tasks(tasks(0))))

    assert isinstance(change, Assignment)
    assert change.active == tasks(0)


def test_a_member_for_which_there_is_no_task_is_told_so_when_the_group_waits_no_more(group: Group) -> None:
    delayed = StatusChanged({GroupStatus.ASSIGNMENT_DELAYED: "3000 ms"}, 1)
    group.told(delayed, Targeted(NO_TASKS))
    change = group.told(StatusChanged({}, 1))

    assert isinstance(change, Assignment)
    assert change.active == frozenset()


def test_a_member_that_was_put_out_forgets_that_the_group_waited_for_more_members(group: Group) -> None:
    group.told(StatusChanged({GroupStatus.ASSIGNMENT_DELAYED: "3000 ms"}, 1))
    lost = group.told(Expelled("the session has ended"))
    assert isinstance(lost, Lost)
    group.membership.ack(lost)

    change = group.told(Targeted(NO_TASKS))  # of a group with which nothing is the matter, no status is told

    assert isinstance(change, Assignment)
    assert change.active == frozenset()


def test_the_instances_of_the_group_are_known(group: Group) -> None:
    active = frozenset({TopicPartition("a", 0)})
    group.told(EndpointsChanged((Endpoint("shop-1", 7070, active, frozenset()),)))

    assert group.hosts.known()[HostInfo("shop-1", 7070)].active == active


def test_a_refusal_ends_the_worker(group: Group) -> None:
    with pytest.raises(TopologyError, match="not this one"):
        group.told(Refused(TopologyError("not this one")))


@pytest.mark.parametrize("leave", [True, False])
def test_a_worker_that_closes_leaves_in_any_case(group: Group, leave: bool) -> None:
    group.membership.close(leave)

    assert group.log[-4:] == ["stop", "leave", "close", "end"]


def test_a_worker_that_closes_while_its_join_is_not_answered_leaves_since_the_group_may_have_it(group: Group) -> None:
    group.epoch = None
    group.membership.close(leave=True)

    assert group.log[-4:] == ["stop", "leave", "close", "end"]


@pytest.mark.parametrize("error", [KafkaError.UNKNOWN_MEMBER_ID, KafkaError.GROUP_ID_NOT_FOUND])
def test_a_group_that_never_had_a_member_need_not_be_told_that_it_leaves(
    group: Group, caplog: pytest.LogCaptureFixture, error: int
) -> None:
    group.epoch, group.error = None, error
    group.membership.close(leave=True)

    assert group.log[-4:] == ["stop", "leave", "close", "end"]
    assert "the group was not told" not in caplog.text


def test_a_worker_that_was_put_out_has_nothing_to_leave(group: Group) -> None:
    group.expel("others have its tasks")
    group.membership.close(leave=True)

    assert group.log[-3:] == ["stop", "close", "end"]


def test_a_worker_that_cannot_say_that_it_leaves_tells_when_its_tasks_go_on(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    group.error = KafkaError._TIMED_OUT
    group.membership.close(leave=True)

    assert "group.streams.session.timeout.ms" in caplog.text
