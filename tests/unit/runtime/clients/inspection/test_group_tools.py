"""Requests of tools for a group: what passes is tried again in time, and what is refused says why."""

from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import KafkaError
from kafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse
from kafka.protocol.consumer import OffsetFetchResponse

from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import ClusterError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.coordinators.coordinator_requests import GroupSettings
from pykstreams.runtime.clients.coordinators.streams_coordinator import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from pykstreams.runtime.clients.coordinators.streams_heartbeat import Tasks
from pykstreams.runtime.clients.coordinators.wire_settings import wire_settings
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.clients.inspection.group_tools import (
    GroupMember,
    GroupRequests,
    GroupTools,
    GroupView,
    StreamsMember,
)

DESCRIBED = cast("Any", StreamsGroupDescribeResponse)
CLASSIC = cast("Any", DescribeGroupsResponse)
NOT_FOUND = 69


class Requests:
    """A coordinator that fails with some errors first."""

    group = GroupSettings("shop", None, 1, 1)

    def __init__(self, *errors: int) -> None:
        self.errors = list(errors)

    def view(self) -> GroupView:
        if self.errors:
            raise GroupError(KafkaError(self.errors.pop(0)))
        return GroupView("classic", ())

    def commit(self, *_: Any) -> None:
        self.view()


def tools(*errors: int, patience_s: float = 60) -> GroupTools:
    return GroupTools(cast("GroupRequests", Requests(*errors)), SystemClock(), patience_s)


def test_coordinator_that_loads_is_asked_again() -> None:
    assert tools(KafkaError.COORDINATOR_LOAD_IN_PROGRESS).view() == GroupView("classic", ())


def test_patience_with_a_coordinator_ends() -> None:
    with pytest.raises(ClusterError, match=r"asking for the members of group 'shop' failed: .*COORDINATOR_LOAD"):
        tools(*[KafkaError.COORDINATOR_LOAD_IN_PROGRESS] * 2, patience_s=0).view()


def test_worker_that_has_started_meanwhile_is_told() -> None:
    with pytest.raises(ClusterError, match="the group has members again: stop all workers"):
        tools(KafkaError.UNKNOWN_MEMBER_ID).set_offsets({})


class Wire:
    """Connections that answer what a group is, in the bytes of both protocols."""

    def __init__(self, streams: Any, classic: Any = None) -> None:
        self._streams = streams
        self._classic = classic

    def ask(self, group: str, request: Any, timeout_s: float) -> Any:
        if isinstance(request, StreamsGroupDescribeRequest):
            answer = DESCRIBED(version=0, throttle_time_ms=0, groups=[self._streams])
            return DESCRIBED.decode(bytes(answer.encode(version=0)), version=0)
        assert isinstance(request, DescribeGroupsRequest)
        answer = CLASSIC(version=5, throttle_time_ms=0, groups=[self._classic])
        return CLASSIC.decode(bytes(answer.encode(version=5)), version=5)

    def forget_coordinator(self) -> None: ...

    def close(self) -> None: ...


def view(wire: Wire) -> GroupView:
    settings = wire_settings({"bootstrap.servers": "127.0.0.1:1", "client.id": "test"}, embedded=False)
    requests = GroupRequests(settings, GroupSettings("shop", None, 1, 1), 1)
    requests._connections = cast("Any", wire)
    return requests.view()


def streams_group(code: int = 0, state: str = "Stable", members: Any = ()) -> Any:
    return DESCRIBED.DescribedGroup(
        error_code=code,
        error_message=None,
        group_id="shop",
        group_state=state,
        group_epoch=1,
        assignment_epoch=1,
        topology=None,
        members=list(members),
        authorized_operations=0,
    )


def test_streams_group_is_seen_with_its_state_and_the_tasks_of_its_members() -> None:
    member = DESCRIBED.DescribedGroup.Member
    ids, endpoint = member.Assignment.TaskIds, member.Endpoint
    none = member.Assignment(active_tasks=[], standby_tasks=[], warmup_tasks=[])
    tasks = member.Assignment(
        active_tasks=[ids(subtopology_id="1", partitions=[0, 2])], standby_tasks=[], warmup_tasks=[]
    )
    one = member(
        member_id="m-1",
        member_epoch=1,
        instance_id=None,
        rack_id=None,
        client_id="c-1",
        client_host="/10.0.0.1",
        topology_epoch=0,
        process_id="p",
        user_endpoint=endpoint(host="shop-1", port=8080),
        client_tags=[],
        task_offsets=[],
        task_end_offsets=[],
        assignment=tasks,
        target_assignment=none,
        is_classic=False,
    )
    known = StreamsMember("p", "shop-1:8080", Tasks(frozenset({TaskId(1, 0), TaskId(1, 2)})))

    assert view(Wire(streams_group(state="Reconciling", members=[one]))) == GroupView(
        "streams", (GroupMember("m-1", "c-1", "/10.0.0.1", of_streams=known),), "Reconciling"
    )


@pytest.mark.parametrize(("code", "state"), [(0, "Stable"), (NOT_FOUND, "Dead")])
def test_classic_group_is_seen_with_its_state_and_what_members_said_and_were_given(code: int, state: str) -> None:
    group = CLASSIC.DescribedGroup
    member = group.DescribedGroupMember(
        member_id="m-1",
        group_instance_id=None,
        client_id="c-1",
        client_host="/10.0.0.1",
        member_metadata=b"said",
        member_assignment=b"given",
    )
    found = group(
        error_code=code,
        group_id="shop",
        group_state=state,
        protocol_type="consumer",
        protocol_data="stream",
        members=[] if code else [member],
        authorized_operations=[],
    )

    assert view(Wire(streams_group(NOT_FOUND), found)) == GroupView(
        "classic", () if code else (GroupMember("m-1", "c-1", "/10.0.0.1", b"said", b"given"),), state
    )


@pytest.mark.parametrize("stable", [True, False])
def test_offsets_of_open_transactions_are_waited_for_only_where_that_is_asked_for(stable: bool) -> None:
    heard: list[bool] = []

    class Offsets(Wire):
        def ask(self, group: str, request: Any, timeout_s: float) -> Any:
            heard.append(request.require_stable)
            return OffsetFetchResponse(throttle_time_ms=0, error_code=0, topics=[], groups=[])

    settings = wire_settings({"bootstrap.servers": "127.0.0.1:1", "client.id": "test"}, embedded=False)
    requests = GroupRequests(settings, GroupSettings("shop", None, 1, 1), 1)
    requests._connections = cast("Any", Offsets(None))
    found = GroupTools(requests, SystemClock(), 1).committed([TopicPartition("orders", 0)], stable=stable)

    assert (heard, found) == ([stable], {})
