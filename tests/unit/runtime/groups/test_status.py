"""The status of a group: members with their tasks, by what each protocol tells, and the tasks that nobody has."""

from __future__ import annotations

import logging
import uuid

import pytest

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.coordinators.streams_heartbeat import Tasks
from pykstreams.runtime.clients.inspection.group_tools import GroupMember, GroupView, StreamsMember
from pykstreams.runtime.groups.status import GroupStatus
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignment_info import AssignmentInfo
from pykstreams.runtime.membership.protocol.consumer_protocol import ConsumerAssignment, ConsumerSubscription
from pykstreams.runtime.membership.protocol.subscription_info import SubscriptionInfo
from tests.unit.runtime.groups.group_bench import FakeCluster, FakeGroup, X, inspection

PROCESS = ProcessId(uuid.UUID(int=7))
ORDERS = [TopicPartition("orders", number) for number in range(2)]
SAID = ConsumerSubscription(frozenset({"orders"}), SubscriptionInfo(PROCESS, {}, "shop-1:8080").encode()).encode()
INFO = AssignmentInfo((TaskId(0, 0), TaskId(0, 1)), {TaskId(1, 0): frozenset({TopicPartition(X, 0)})})
GIVEN = ConsumerAssignment(frozenset(ORDERS), INFO.encode()).encode()


def status(view: GroupView) -> GroupStatus:
    return inspection(FakeCluster(), FakeGroup({}, view)).status()


def test_members_of_a_classic_group_have_what_the_leader_gave_them() -> None:
    found = status(GroupView("classic", (GroupMember("m-1", "c-1", "/10.0.0.1", SAID, GIVEN),), "Stable"))

    assert found.as_dict() == {
        "application_id": "shop",
        "protocol": "classic",
        "state": "Stable",
        "members": [
            {
                "id": "m-1",
                "client_id": "c-1",
                "host": "/10.0.0.1",
                "process_id": str(PROCESS),
                "application_server": "shop-1:8080",
                "active": ["0_0", "0_1"],
                "standby": ["1_0"],
                "warmup": [],
            }
        ],
        "tasks": ["0_0", "0_1", "1_0", "1_1"],
        "unassigned": ["1_0", "1_1"],
    }


def test_members_of_a_streams_group_have_what_the_coordinator_assigned() -> None:
    tasks = Tasks(frozenset({TaskId(0, 0)}), frozenset({TaskId(1, 1)}), frozenset({TaskId(1, 0)}))
    member = GroupMember("m-1", "c-1", "/10.0.0.1", of_streams=StreamsMember("p", "shop-1:8080", tasks))

    assert list(status(GroupView("streams", (member,), "Reconciling")).lines()) == [
        "group shop (streams): Reconciling, 1 members",
        "member m-1 (client c-1, /10.0.0.1, application.server shop-1:8080)",
        "  active: 0_0",
        "  standby: 1_1",
        "  warm-up: 1_0",
        "tasks that nobody has: 0_1, 1_0, 1_1",
    ]


def test_nobody_has_tasks_of_a_group_without_members() -> None:
    found = status(GroupView("classic", (), "Empty"))

    assert found.as_dict()["unassigned"] == ["0_0", "0_1", "1_0", "1_1"]


def test_state_of_a_group_that_brokers_do_not_know_is_told_with_what_it_means() -> None:
    assert next(status(GroupView("classic", (), "Dead")).lines()) == (
        "group shop (classic): Dead (brokers know no such group: it has not run yet, or its offsets have expired), "
        "0 members"
    )


def test_tasks_are_not_guessed_while_a_classic_group_rebalances() -> None:
    found = status(GroupView("classic", (GroupMember("m-1", "c-1", "/10.0.0.1"),), "PreparingRebalance"))

    assert found.unassigned is None
    assert list(found.lines())[2:] == [
        "  tasks are not known",
        "tasks that nobody has: not known while the group rebalances; ask again",
    ]


def test_member_that_was_given_nothing_has_no_tasks() -> None:
    [member] = status(GroupView("classic", (GroupMember("m-1", "c-1", "/h", SAID, b""),), "Stable")).members

    assert member.tasks == Tasks()


def test_member_that_is_no_kafka_streams_is_shown_without_tasks(caplog: pytest.LogCaptureFixture) -> None:
    alien = GroupMember("m-1", "c-1", "/h", b"\x00", b"\x00")

    with caplog.at_level(logging.WARNING):
        [member] = status(GroupView("classic", (alien,), "Stable")).members

    assert (member.tasks, member.process_id) == (None, None)
    assert "the tasks of member m-1 cannot be read" in caplog.text
