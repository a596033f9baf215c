"""Leading a group: by what the cluster says, and what is done when it says nothing."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import pytest
from confluent_kafka import KafkaError

from pykstreams.assignment import (
    ApplicationState,
    AssignmentError,
    GroupAssignment,
    GroupSubscription,
    StickyTaskAssignor,
    TaskAssignment,
    TaskAssignor,
    TaskInfo,
)
from pykstreams.core.errors import ClusterUnavailableError, MissingSourceTopicError, StreamsError, TaskAssignmentError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.membership.assignment.configs import STRATEGY_MIN_TRAFFIC, AssignmentConfigs
from pykstreams.runtime.membership.assignment.group import Racks
from pykstreams.runtime.membership.classic import leadership
from pykstreams.runtime.membership.classic.leadership import Leadership
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignment_info import AssignmentInfo, decode_assignment
from pykstreams.runtime.membership.protocol.assignor_error import AssignorError
from pykstreams.runtime.membership.protocol.consumer_protocol import ConsumerSubscription, decode_consumer_assignment
from pykstreams.runtime.membership.protocol.subscription_info import RUNNING, SubscriptionInfo
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.topology.plan import InternalTopic, TopologyPlan
from tests.unit.runtime.cluster_fakes import FakeClock
from tests.unit.runtime.plans import part, plan, source

A, B = (ProcessId(uuid.UUID(int=number)) for number in (1, 2))
TASK = TaskId(0, 0)
IN, LOG = TopicPartition("in", 0), TopicPartition("log", 0)
LAYOUT = TopicLayout({"in": 1, "log": 1}, {TASK: frozenset({IN})})
ENDS_S = 2.0
LOGGED = plan(part(0, source("S", "in"), changelogs={"store": InternalTopic("log", "changelog", None)}))
_SUB = part(0, source("S", "in"))
REUSED = plan(
    replace(_SUB, changelogs={"store": "in"}, reused_changelogs={"in": InternalTopic("in", "changelog", None)})
)


@dataclass
class Cluster:
    """A cluster that says how far topics reach, or why it cannot."""

    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    offsets: Offsets = field(default_factory=dict)
    missing: Exception | None = None
    ends_fail: Exception | None = None
    racks_fail: Exception | None = None
    committed_fails: Exception | None = None
    asked_racks: list[frozenset[TopicPartition]] = field(default_factory=list)
    asked_ends: list[frozenset[TopicPartition]] = field(default_factory=list)
    asked_committed: list[frozenset[TopicPartition]] = field(default_factory=list)

    def prepare(self) -> TopicLayout:
        if self.missing:
            raise self.missing
        return LAYOUT

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> Mapping[TopicPartition, int]:
        assert timeout_s == ENDS_S, "nobody hears of the leader meanwhile"
        self.asked_ends.append(frozenset(partitions))
        if self.ends_fail:
            raise self.ends_fail
        return self.ends

    def racks(self, partitions: Collection[TopicPartition]) -> Racks:
        self.asked_racks.append(frozenset(partitions))
        if self.racks_fail:
            raise self.racks_fail
        return {}

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets:
        self.asked_committed.append(frozenset(partitions))
        if self.committed_fails:
            raise self.committed_fails
        return self.offsets


def led(
    cluster: Cluster,
    members: Mapping[str, bytes],
    topology: TopologyPlan = LOGGED,
    configs: AssignmentConfigs | None = None,
    assignor: TaskAssignor | None = None,
) -> dict[str, AssignmentInfo]:
    leader = Leadership(
        topology,
        prepare=cluster.prepare,
        cluster=cluster,
        committed=cluster.committed,
        ends_s=ENDS_S,
        configs=configs or AssignmentConfigs(),
        process_id=A,
        clock=FakeClock(),
        assignor=assignor,
    )
    read = {name: decode_consumer_assignment(data) for name, data in leader.assign(members).items()}
    infos = {name: decode_assignment(one.user_data) for name, one in read.items()}
    for name, one in read.items():
        assert len(one.partitions) == len(infos[name].active)
    return infos


def says(
    process: ProcessId,
    sums: Mapping[TaskId, int] | None = None,
    owned: frozenset[TopicPartition] = frozenset(),
    error: AssignorError = AssignorError.NONE,
) -> bytes:
    info = SubscriptionInfo(process, dict(sums or {}), None, error=error)
    return ConsumerSubscription(frozenset({"in"}), info.encode(), owned, 1).encode()


def working(infos: Mapping[str, AssignmentInfo]) -> dict[str, list[TaskId]]:
    return {name: list(info.active) for name, info in infos.items()}


def test_all_members_are_told_of_a_missing_source_topic() -> None:
    infos = led(Cluster(missing=MissingSourceTopicError("no topic in")), {"a": says(A), "b": says(B), "c": b"\x00"})
    assert {name: info.error for name, info in infos.items()} == dict.fromkeys(
        "abc", AssignorError.INCOMPLETE_SOURCE_TOPIC_METADATA
    )
    assert working(infos) == {"a": [], "b": [], "c": []}


@pytest.mark.parametrize("missing", [MissingSourceTopicError("no topic in"), ClusterUnavailableError("not now")])
def test_all_members_are_told_to_shut_down_whatever_became_of_the_topics(missing: StreamsError) -> None:
    wish = says(B, error=AssignorError.SHUTDOWN_REQUESTED)

    infos = led(Cluster(missing=missing), {"a": says(A), "b": wish, "c": b"\x00"})

    assert {name: info.error for name, info in infos.items()} == dict.fromkeys(
        ("a", "b", "c"), AssignorError.SHUTDOWN_REQUESTED
    )


def test_a_cluster_that_cannot_be_seen_is_told_to_the_session() -> None:
    with pytest.raises(ClusterUnavailableError, match="nobody answers"):
        led(Cluster(missing=ClusterUnavailableError("nobody answers")), {"a": says(A)})


@pytest.mark.parametrize(
    "unreadable", [b"", b"\x00\x03\x00", says(A)[:-3], ConsumerSubscription(frozenset(), b"?").encode()]
)
def test_an_unreadable_subscription_ends_only_its_sender(unreadable: bytes) -> None:
    infos = led(Cluster(ends={LOG: 10}), {"a": unreadable, "b": says(B)})
    assert infos["a"].error == AssignorError.ASSIGNMENT_ERROR
    assert infos["b"].error == AssignorError.NONE
    assert working(infos) == {"a": [], "b": [TASK]}


def test_a_task_goes_to_who_has_its_state() -> None:
    cluster = Cluster(ends={LOG: 100_000})
    assert working(led(cluster, {"a": says(A), "b": says(B, {TASK: 99_999})})) == {"a": [], "b": [TASK]}
    assert cluster.asked_ends == [{LOG}]
    assert cluster.asked_committed == []


@pytest.mark.parametrize("has_state", ["a", "b"])
def test_a_source_topic_that_serves_as_changelog_reaches_to_what_was_committed(has_state: str) -> None:
    """By the end of the topic nobody would be caught up; by the committed offset one is, and is given the task."""
    cluster = Cluster(ends={IN: 10**9}, offsets={IN: (50_000, "")})
    sums = {name: {TASK: 50_000 if name == has_state else 0} for name in "ab"}
    infos = led(cluster, {"a": says(A, sums["a"]), "b": says(B, sums["b"])}, REUSED)
    assert [name for name, tasks in working(infos).items() if tasks] == [has_state]
    assert cluster.asked_ends == []
    assert cluster.asked_committed == [{IN}]


@pytest.mark.parametrize(
    "cluster",
    [
        Cluster(ends_fail=ClusterUnavailableError("nobody answers")),
        Cluster(committed_fails=GroupError(KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT))),
    ],
)
@pytest.mark.parametrize("owner", ["a", "b"])
def test_tasks_stay_where_they_were_while_the_ends_are_unknown(cluster: Cluster, owner: str) -> None:
    topology = LOGGED if cluster.ends_fail else REUSED
    has = {TASK: RUNNING}, frozenset({IN})
    members = {"a": says(A, *(has if owner == "a" else ())), "b": says(B, *(has if owner == "b" else ()))}
    assert [name for name, tasks in working(led(cluster, members, topology)).items() if tasks] == [owner]


def test_racks_are_asked_for_only_with_a_strategy() -> None:
    cluster = Cluster(ends={LOG: 0})
    led(cluster, {"a": says(A)})
    assert cluster.asked_racks == []
    led(cluster, {"a": says(A)}, configs=AssignmentConfigs(rack_aware_assignment_strategy=STRATEGY_MIN_TRAFFIC))
    assert cluster.asked_racks == [{IN, LOG}]


class ByTurns(StickyTaskAssignor):
    """Notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.subscriptions: list[GroupSubscription] = []
        self.tasks: list[dict[TaskId, TaskInfo]] = []

    def assign(self, application_state: ApplicationState) -> TaskAssignment:
        self.tasks.append(application_state.all_tasks)
        return super().assign(application_state)

    def on_assignment_computed(
        self, assignment: GroupAssignment, subscription: GroupSubscription, error: AssignmentError
    ) -> None:
        self.subscriptions.append(subscription)


@pytest.mark.parametrize("racks_fail", [None, ClusterUnavailableError("nobody answers")])
def test_the_assignor_of_the_user_shares_out_the_tasks(racks_fail: Exception | None) -> None:
    assignor, cluster = ByTurns(), Cluster(ends={LOG: 5}, racks_fail=racks_fail)
    members = {"a": says(A), "b": says(B, {TASK: RUNNING}, frozenset({IN})), "c": b"\x00"}
    infos = led(cluster, members, assignor=assignor)
    assert working(infos) == {"a": [], "b": [TASK], "c": []}
    assert cluster.asked_racks == [{IN, LOG}]
    [tasks] = assignor.tasks
    assert tasks[TASK].state_store_names == frozenset(LOGGED.subtopologies[0].stores)
    [said] = assignor.subscriptions
    assert said.keys() == {"a", "b"}
    assert said["b"].topics == {"in"}
    assert said["b"].owned_partitions == {IN}
    assert said["b"].generation_id == 1


def test_a_mistake_of_the_assignor_ends_this_worker_and_is_told_to_nobody() -> None:
    class Forgets(ByTurns):
        def assign(self, application_state: ApplicationState) -> TaskAssignment:
            return TaskAssignment([])

    with pytest.raises(StreamsError, match=r"Forgets.* made a mistake, MISSING_PROCESS_ID"):
        led(Cluster(ends={LOG: 5}), {"a": says(A)}, assignor=Forgets())


def test_all_members_are_told_when_the_tasks_cannot_be_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise TaskAssignmentError("task 0_0 is given to a and to b")

    monkeypatch.setattr(leadership, "lead", fail)

    infos = led(Cluster(ends={LOG: 10}), {"a": says(A), "b": says(B)})

    assert {name: info.error for name, info in infos.items()} == dict.fromkeys("ab", AssignorError.ASSIGNMENT_ERROR)


def test_the_log_says_which_member_is_of_this_process(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger=leadership.__name__)
    elsewhere = SubscriptionInfo(B, {}, "host:8080")
    led(Cluster(), {"0x7f01": says(A), "0x7f02": ConsumerSubscription(frozenset({"in"}), elsewhere.encode()).encode()})

    texts = [record.getMessage() for record in caplog.records]
    assert texts[0].startswith("as the leader, gives a worker of this process (member 0x7f01) the tasks ")
    assert texts[1].startswith(f"as the leader, gives a worker of process {B} at host:8080 (member 0x7f02) the tasks ")


def test_the_log_says_of_a_member_that_it_cannot_be_read(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger=leadership.__name__)
    led(Cluster(), {"a": says(A), "b": ConsumerSubscription(frozenset({"in"}), b"?").encode(), "c": b"?"})

    assert [text for text in caplog.messages if "gives a worker that cannot be read (member b) the tasks" in text]
    assert [text for text in caplog.messages if "gives a worker that cannot be read (member c) the tasks" in text]
