"""Heartbeats to the coordinator of a streams group: what goes over the wire, and what comes back."""

from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import KafkaError

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.coordinators.coordinator_requests import GroupSettings
from pykstreams.runtime.clients.coordinators.streams_coordinator import (
    StreamsCoordinator,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from pykstreams.runtime.clients.coordinators.streams_heartbeat import (
    NO_TASKS,
    CopartitionGroup,
    Endpoint,
    Heartbeat,
    Heartbeaten,
    Joining,
    SubtopologyOfGroup,
    Tasks,
    TopicOfGroup,
)
from pykstreams.runtime.clients.coordinators.wire_settings import wire_settings
from pykstreams.runtime.clients.errors import GroupError

GROUP = GroupSettings("app", None, 6_000, 10_000)
RESPONSE = cast("Any", StreamsGroupHeartbeatResponse)
DESCRIBED = cast("Any", StreamsGroupDescribeResponse)


class Wire:
    """Connections that take the bytes of a request, and give the bytes of an answer."""

    def __init__(self, **answer: Any) -> None:
        fields = {"error_code": 0, "member_id": "me", "member_epoch": 7, "heartbeat_interval_ms": 5_000, **answer}
        fields = {"endpoint_information_epoch": 0, "status": None, "error_message": None, **fields}
        fields = {"throttle_time_ms": 0, "acceptable_recovery_lag": 0, "task_offset_interval_ms": 0, **fields}
        self._answer = RESPONSE(version=0, **fields)
        self.heard: Any = None

    def ask(self, group: str, request: Any, timeout_s: float) -> Any:
        self.heard = StreamsGroupHeartbeatRequest.decode(bytes(request.encode(version=0)), version=0)
        return StreamsGroupHeartbeatResponse.decode(bytes(self._answer.encode(version=0)), version=0)

    def forget_coordinator(self) -> None: ...

    def close(self) -> None: ...


def over(wire: Wire | Descriptions) -> StreamsCoordinator:
    settings = wire_settings({"bootstrap.servers": "127.0.0.1:1", "client.id": "test"}, embedded=False)
    coordinator = StreamsCoordinator(settings, GROUP, 1)
    coordinator._connections = cast("Any", wire)
    return coordinator


def test_a_member_that_joins_says_everything_of_itself() -> None:
    wire = Wire()
    topic = TopicOfGroup("app-x-repartition", 4, -1, (("cleanup.policy", "delete"),))
    changelog = TopicOfGroup("app-x-changelog", 0, -1, ())
    part = SubtopologyOfGroup(3, ("in",), ("out",), (topic,), (changelog,), (CopartitionGroup((0,), (0,)),))
    over(wire).heartbeat(
        Heartbeat("me", 0, -1, Joining((part,), "process", 9_000, ("shop-1", 7070), "r1", {"zone": "a"}), NO_TASKS)
    )
    heard = wire.heard
    [told] = heard.topology.subtopologies

    assert (heard.group_id, heard.member_id, heard.member_epoch, heard.instance_id) == ("app", "me", 0, None)
    assert (heard.rebalance_timeout_ms, heard.process_id, heard.rack_id) == (9_000, "process", "r1")
    assert (heard.user_endpoint.host, heard.user_endpoint.port) == ("shop-1", 7070)
    assert [(tag.key, tag.value) for tag in heard.client_tags] == [("zone", "a")]
    assert (heard.active_tasks, heard.standby_tasks, heard.warmup_tasks) == ([], [], [])
    assert (told.subtopology_id, told.source_topics, told.repartition_sink_topics) == ("3", ["in"], ["out"])
    assert [(one.name, one.partitions) for one in told.repartition_source_topics] == [("app-x-repartition", 4)]
    assert [one.name for one in told.state_changelog_topics] == ["app-x-changelog"]
    assert [(one.source_topics, one.repartition_source_topics) for one in told.copartition_groups] == [([0], [0])]


def test_a_member_that_goes_on_says_what_has_changed() -> None:
    wire = Wire()
    coordinator = over(wire)
    coordinator.heartbeat(Heartbeat("me", 7, 3))
    assert (wire.heard.topology, wire.heard.active_tasks, wire.heard.endpoint_information_epoch) == (None, None, 3)
    coordinator.heartbeat(Heartbeat("me", 7, tasks=Tasks(frozenset({TaskId(1, 0), TaskId(1, 2), TaskId(0, 5)}))))
    told = {one.subtopology_id: one.partitions for one in wire.heard.active_tasks}

    assert told == {"0": [5], "1": [0, 2]}
    assert wire.heard.standby_tasks == []
    assert not wire.heard.shutdown_application


def test_an_answer_tells_of_tasks_instances_and_the_group() -> None:
    ids, endpoint = RESPONSE.TaskIds, RESPONSE.EndpointToPartitions
    wire = Wire(
        status=[RESPONSE.Status(status_code=1, status_detail="no topic a")],
        active_tasks=[ids(subtopology_id="0", partitions=[1, 2])],
        standby_tasks=[ids(subtopology_id="1", partitions=[3])],
        warmup_tasks=[],
        endpoint_information_epoch=4,
        partitions_by_user_endpoint=[
            endpoint(
                user_endpoint=endpoint.Endpoint(host="shop-1", port=7070),
                active_partitions=[endpoint.TopicPartition(topic="in", partitions=[1])],
                standby_partitions=[],
            )
        ],
    )

    assert over(wire).heartbeat(Heartbeat("me", 7)) == Heartbeaten(
        7,
        5_000,
        4,
        {1: "no topic a"},
        Tasks(frozenset({TaskId(0, 1), TaskId(0, 2)}), frozenset({TaskId(1, 3)})),
        (Endpoint("shop-1", 7070, frozenset({TopicPartition("in", 1)}), frozenset()),),
    )


def test_an_answer_without_changes_tells_of_none() -> None:
    assert over(Wire()).heartbeat(Heartbeat("me", 7)) == Heartbeaten(7, 5_000, 0)


def test_an_error_says_what_the_coordinator_says_of_it() -> None:
    wire = Wire(error_code=42, error_message="Topology updates are not supported yet.")
    with pytest.raises(GroupError, match="Topology updates are not supported yet") as raised:
        over(wire).heartbeat(Heartbeat("me", 0))

    assert raised.value.name == "INVALID_REQUEST"


class Descriptions:
    """Connections that answer what a group is."""

    def __init__(self, code: int = 0) -> None:
        self._code = code
        self.heard: Any = None

    def ask(self, group: str, request: Any, timeout_s: float) -> Any:
        self.heard = StreamsGroupDescribeRequest.decode(bytes(request.encode(version=0)), version=0)
        described = DESCRIBED.DescribedGroup
        member, assignment = described.Member, described.Member.Assignment
        ids = assignment.TaskIds
        tasks = assignment(
            active_tasks=[ids(subtopology_id="1", partitions=[0, 2])],
            standby_tasks=[ids(subtopology_id="0", partitions=[3])],
            warmup_tasks=[],
        )
        none = assignment(active_tasks=[], standby_tasks=[], warmup_tasks=[])
        texts = {"instance_id": None, "rack_id": None, "client_id": "c", "client_host": "/", "process_id": "p"}
        places: dict[str, Any] = {"topology_epoch": 0, "user_endpoint": None, "client_tags": [], "task_offsets": []}
        fields = {**texts, **places, "task_end_offsets": [], "is_classic": False}
        members = [
            member(member_id="you", member_epoch=7, assignment=none, target_assignment=none, **fields),
            member(member_id="me", member_epoch=7, assignment=tasks, target_assignment=none, **fields),
        ]
        found = described(
            error_code=self._code,
            error_message=None,
            group_id=group,
            group_state="Stable",
            group_epoch=7,
            assignment_epoch=7,
            topology=None,
            members=[] if self._code else members,
            authorized_operations=0,
        )
        answer = DESCRIBED(version=0, throttle_time_ms=0, groups=[found])
        return StreamsGroupDescribeResponse.decode(bytes(answer.encode(version=0)), version=0)

    def forget_coordinator(self) -> None: ...

    def close(self) -> None: ...


def test_the_tasks_of_a_member_are_those_that_the_coordinator_has_assigned_to_it() -> None:
    wire = Descriptions()
    coordinator = over(wire)

    assert coordinator.assigned("me") == Tasks(frozenset({TaskId(1, 0), TaskId(1, 2)}), frozenset({TaskId(0, 3)}))
    assert coordinator.assigned("you") == NO_TASKS
    assert wire.heard.group_ids == ["app"]


def test_a_member_that_the_coordinator_does_not_know_is_an_error() -> None:
    with pytest.raises(GroupError) as raised:
        over(Descriptions()).assigned("nobody")
    assert raised.value.name == "UNKNOWN_MEMBER_ID"


def test_a_group_that_is_not_there_is_an_error() -> None:
    with pytest.raises(GroupError) as raised:
        over(Descriptions(KafkaError.GROUP_ID_NOT_FOUND)).assigned("me")
    assert raised.value.name == "GROUP_ID_NOT_FOUND"
