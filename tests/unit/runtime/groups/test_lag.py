"""The lag of an application by task: what is committed against the ends, for all kinds of beginnings."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from pykstreams.core.errors import MissingSourceTopicError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.coordinators.streams_heartbeat import Tasks
from pykstreams.runtime.clients.inspection.group_tools import GroupMember, GroupView, StreamsMember
from pykstreams.runtime.groups.lag_report import LagReport
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignment_info import AssignmentInfo
from pykstreams.runtime.membership.protocol.consumer_protocol import ConsumerAssignment, ConsumerSubscription
from pykstreams.runtime.membership.protocol.subscription_info import RUNNING, SubscriptionInfo
from pykstreams.topology.offset_reset import AutoOffsetReset
from tests.unit.runtime.groups.group_bench import COUNTS, FakeCluster, FakeGroup, X, inspection
from tests.unit.runtime.plans import part, plan, source

ORDERS = [TopicPartition("orders", number) for number in range(2)]
REPARTITIONED = [TopicPartition(X, number) for number in range(2)]
ALL = dict.fromkeys([*ORDERS, *REPARTITIONED], 100)
COUNTING = TaskId(1, 0)


def lags(found: LagReport) -> dict[str, int]:
    return {str(one.task): one.lag() for one in found.tasks}


def classic(name: str, process: int, sums: dict[TaskId, int], *, standby: tuple[TaskId, ...] = ()) -> GroupMember:
    """A member as the coordinator of a classic group shows it."""
    said = SubscriptionInfo(ProcessId(uuid.UUID(int=process)), sums)
    given = AssignmentInfo((), {task: frozenset({TopicPartition(X, task.partition)}) for task in standby})
    return GroupMember(
        name,
        name,
        "/10.0.0.1",
        ConsumerSubscription(frozenset({X}), said.encode()).encode(),
        ConsumerAssignment(frozenset(), given.encode()).encode(),
    )


def test_each_task_has_the_lag_of_its_inputs_and_repartition_topics() -> None:
    group = FakeGroup({**ALL, ORDERS[1]: 60, REPARTITIONED[0]: 99})

    found = inspection(FakeCluster(), group).lag()

    assert lags(found) == {"0_0": 0, "0_1": 40, "1_0": 1, "1_1": 0}
    assert (found.lag(), found.lag("input"), found.lag("repartition")) == (41, 40, 1)


@pytest.mark.parametrize(
    ("guarantee", "end"), [("at_least_once", "read_uncommitted"), ("exactly_once_v2", "read_committed")]
)
def test_end_is_the_one_that_consumers_of_the_guarantee_can_read_to(guarantee: str, end: str) -> None:
    group = FakeGroup(dict.fromkeys(ALL, 85))

    found = inspection(FakeCluster(), group, processing_guarantee=guarantee).lag()

    assert found.isolation == end
    assert set(lags(found).values()) == {5 if end == "read_committed" else 15}


@pytest.mark.parametrize(
    ("default", "reset", "expected"),
    [
        ("earliest", None, 90),
        ("latest", None, 0),
        ("none", None, 90),
        ("latest", AutoOffsetReset.EARLIEST, 90),
        ("earliest", AutoOffsetReset.by_duration(60_000), 5),
    ],
)
def test_partition_without_an_offset_counts_by_the_reset_policy(default: str, reset: Any, expected: int) -> None:
    topology = plan(part(0, source("A", "orders", reset=reset)))

    [partition, _] = [
        place
        for task in inspection(FakeCluster(), FakeGroup(), topology, consumer_auto_offset_reset=default).lag().tasks
        for place in task.partitions
    ]

    assert (partition.committed, partition.lag) == (None, expected)


def test_nothing_younger_than_the_duration_is_no_lag() -> None:
    topology = plan(part(0, source("A", "orders", reset=AutoOffsetReset.by_duration(60_000))))

    assert inspection(FakeCluster(young=-1), FakeGroup(), topology).lag().lag() == 0


def test_repartition_topic_without_an_offset_counts_whole_whatever_the_policy() -> None:
    found = inspection(FakeCluster(), FakeGroup(), consumer_auto_offset_reset="latest").lag()

    assert (found.lag("input"), found.lag("repartition")) == (0, 180)


@pytest.mark.parametrize(("committed", "expected"), [(3, 90), (120, 0)], ids=["deleted records", "topic made anew"])
def test_offset_outside_its_partition_counts_what_can_be_read(committed: int, expected: int) -> None:
    found = inspection(FakeCluster(), FakeGroup({**ALL, ORDERS[0]: committed})).lag()

    assert lags(found)["0_0"] == expected


def test_topics_that_no_worker_has_made_yet_hold_nothing() -> None:
    found = inspection(FakeCluster({"orders": 2}), FakeGroup(ALL | {ORDERS[0]: 50})).lag()

    assert lags(found) == {"0_0": 50, "0_1": 0, "1_0": 0, "1_1": 0}


def test_topics_that_match_a_pattern_count() -> None:
    topology = plan(part(0, source("A", pattern="orders-.*")))
    cluster = FakeCluster({"orders-eu": 1, "orders-us": 2, "bills": 1})

    assert lags(inspection(cluster, FakeGroup(), topology).lag()) == {"0_0": 180, "0_1": 90}


def test_missing_source_topic_is_an_error_of_the_user() -> None:
    with pytest.raises(MissingSourceTopicError, match="orders"):
        inspection(FakeCluster({}), FakeGroup()).lag()


@pytest.mark.parametrize(
    ("sums", "others", "expected"),
    [
        ({COUNTING: 70}, {}, 30),
        ({}, {COUNTING: 95}, 5),
        ({}, {}, 90),
        ({COUNTING: RUNNING}, {}, None),
        ({}, {COUNTING: RUNNING}, None),
    ],
    ids=["said by itself", "said by its process", "without state", "ran it", "its process ran it"],
)
def test_standby_of_a_classic_group_lacks_at_most_what_came_since_its_process_joined(
    sums: dict[TaskId, int], others: dict[TaskId, int], expected: int | None
) -> None:
    members = (
        classic("m-1", 1, sums, standby=(COUNTING,)),
        classic("m-2", 1, others),
        classic("m-3", 2, {COUNTING: 99}),
    )
    group = FakeGroup(ALL, GroupView("classic", members, "Stable"))

    found = {one.task: one.standbys for one in inspection(FakeCluster(), group).lag().tasks}

    assert [(one.member, one.at_most) for one in found.pop(COUNTING)] == [("m-1", expected)]
    assert set(found.values()) == {()}


def test_standby_of_a_streams_group_is_named_without_a_lag() -> None:
    known = StreamsMember("p", None, Tasks(standby=frozenset({COUNTING})))
    group = FakeGroup(ALL, GroupView("streams", (GroupMember("m", "c", "/h", of_streams=known),), "Stable"))

    [standby] = [one for task in inspection(FakeCluster(), group).lag().tasks for one in task.standbys]

    assert (standby.member, standby.at_most) == ("m", None)


def test_shape_for_programs_is_kept() -> None:
    members = (classic("m-1", 1, {TaskId(0, 0): 70}, standby=(COUNTING,)),)
    group = FakeGroup({ORDERS[0]: 60}, GroupView("classic", members, "Stable"))

    found = inspection(FakeCluster(dict.fromkeys(["orders", X, COUNTS.name], 1)), group).lag().as_dict()

    assert found == {
        "application_id": "shop",
        "protocol": "classic",
        "state": "Stable",
        "isolation_level": "read_uncommitted",
        "total": 130,
        "input": 40,
        "repartition": 90,
        "tasks": [
            {
                "task": "0_0",
                "lag": 40,
                "partitions": [
                    {"topic": "orders", "partition": 0, "kind": "input", "committed": 60, "end": 100, "lag": 40}
                ],
                "standbys": [],
            },
            {
                "task": "1_0",
                "lag": 90,
                "partitions": [
                    {"topic": X, "partition": 0, "kind": "repartition", "committed": None, "end": 100, "lag": 90}
                ],
                "standbys": [{"member": "m-1", "host": "/10.0.0.1", "lag_at_most": 90}],
            },
        ],
    }


def test_text_says_what_was_committed_and_which_end_counted() -> None:
    group = FakeGroup({ORDERS[0]: 60}, GroupView("classic", (classic("m-1", 1, {}, standby=(COUNTING,)),), "Stable"))

    found = inspection(FakeCluster(dict.fromkeys(["orders", X, COUNTS.name], 1)), group).lag()

    assert list(found.lines()) == [
        "group shop (classic): Stable; ends are read_uncommitted",
        "task 0_0: 40",
        "  input orders-0: 40 (60 committed, end 100)",
        "task 1_0: 90",
        f"  repartition {X}-0: 90 (nothing is committed, end 100)",
        "  standby of m-1 (/10.0.0.1): at most 90 behind",
        "total: 130 (input 40, repartition 90)",
    ]
