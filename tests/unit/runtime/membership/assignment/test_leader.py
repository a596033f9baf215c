"""A leader's answers, and groups that follow them until nothing is left to do."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.check import MemberAssignment, SubtopologyInputs, paired_tasks
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.assignment.group import Task
from pykstreams.runtime.membership.assignment.joined_group import Member, Topics, join
from pykstreams.runtime.membership.assignment.leader import lead
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignment_info import AT_ONCE, NEVER
from pykstreams.runtime.membership.protocol.assignor_error import AssignorError
from pykstreams.runtime.membership.protocol.subscription_info import RUNNING, SubscriptionInfo

A, B = (ProcessId(uuid.UUID(int=number)) for number in (1, 2))
END = 50_000
NOW, INTERVAL = 1_000, 600_000


def a_task(subtopology: int, partition: int) -> Task:
    logs = frozenset({TopicPartition("log", partition)}) if subtopology == 0 else frozenset[TopicPartition]()
    topics = ("left", "right") if subtopology == 0 else ("plain",)
    return Task(TaskId(subtopology, partition), frozenset(TopicPartition(topic, partition) for topic in topics), logs)


TASKS = tuple(a_task(subtopology, partition) for subtopology in range(2) for partition in range(4))
STATEFUL = [task.id for task in TASKS if task.stateful]
TOPICS = Topics(TASKS, dict.fromkeys(STATEFUL, END), {})
INPUTS = {task.id: task.inputs for task in TASKS}
TOPOLOGY = {
    0: SubtopologyInputs(frozenset({"left", "right"}), stateful=True),
    1: SubtopologyInputs(frozenset({"plain"}), stateful=False),
}
COUNTS = dict.fromkeys(["left", "right", "plain"], 4)


@dataclass
class Follower:
    """A member that obeys: what it works on, and the state that it has."""

    process: ProcessId
    endpoint: str | None = None
    active: dict[TaskId, frozenset[TopicPartition]] = field(default_factory=dict)
    sums: dict[TaskId, int] = field(default_factory=dict)
    version: int = 11

    def says(self) -> Member:
        sums = self.sums | {task: RUNNING for task in self.active if task in STATEFUL}
        info = SubscriptionInfo(self.process, sums, self.endpoint, version=self.version)
        return Member(info.encode(), frozenset().union(*self.active.values()))

    def obeys(self, given: MemberAssignment) -> bool:
        """Takes up an assignment; returns whether to join again at once."""
        tasks = paired_tasks(given, TOPOLOGY, COUNTS)
        gone = self.active.keys() - tasks.keys()
        self.active = tasks
        self.sums = dict.fromkeys(given.info.standby, END)
        return bool(gone) or given.info.next_rebalance_ms == AT_ONCE


def led(
    members: dict[str, Member], topics: Topics = TOPICS, *, warmups: int = 2, standbys: int = 0
) -> dict[str, MemberAssignment]:
    configs = AssignmentConfigs(
        max_warmup_replicas=warmups, num_standby_replicas=standbys, probing_rebalance_interval_ms=INTERVAL
    )
    return lead(join(members, topics, configs), process_id=A, now_ms=NOW)


def alone() -> Follower:
    return Follower(A, active=dict(INPUTS))


def test_a_first_member_gets_everything() -> None:
    given = led({"a": Follower(A).says()})["a"]
    assert paired_tasks(given, TOPOLOGY, COUNTS) == INPUTS
    assert given.partitions == tuple(sorted(given.partitions))
    assert given.info.next_rebalance_ms == NEVER


def test_a_new_member_waits_for_tasks_without_state_and_warms_up_the_others() -> None:
    given = led({"a": alone().says(), "b": Follower(B).says()})
    assert not given["b"].partitions
    assert list(given["b"].info.standby) == [TaskId(0, 1), TaskId(0, 3)]
    assert given["b"].info.next_rebalance_ms == AT_ONCE
    assert {task.subtopology for task in paired_tasks(given["a"], TOPOLOGY, COUNTS)} == {0}
    assert given["a"].info.next_rebalance_ms == NOW + INTERVAL


def test_a_copy_is_kept_until_its_task_has_been_given_up() -> None:
    new = Follower(B, sums={TaskId(0, 1): END})
    given = led({"a": alone().says(), "b": new.says()}, warmups=1)
    assert TaskId(0, 1) not in paired_tasks(given["a"], TOPOLOGY, COUNTS)
    assert not given["b"].partitions and TaskId(0, 1) in given["b"].info.standby


def test_only_one_member_of_the_leader_probes() -> None:
    new = Follower(B)
    members = {"a1": alone().says(), "a2": Follower(A).says(), "b": new.says()}
    given = led(members)
    probes = [name for name, each in given.items() if each.info.next_rebalance_ms not in (AT_ONCE, NEVER)]
    assert len(probes) <= 1 and all(name.startswith("a") for name in probes)


def test_without_end_offsets_active_tasks_stay_and_it_is_tried_again() -> None:
    given = led({"a": alone().says(), "b": Follower(B).says()}, replace(TOPICS, end_sums=None))
    assert paired_tasks(given["a"], TOPOLOGY, COUNTS) == INPUTS
    assert given["a"].info.next_rebalance_ms == NOW + INTERVAL


def test_all_members_are_told_where_everything_is() -> None:
    given = led({"a": Follower(A, "east:1").says(), "b": Follower(B, "west:2").says()}, standbys=1)
    for each in given.values():
        info = each.info
        assert set(info.hosts) == set(info.standby_hosts) == {HostInfo("east", 1), HostInfo("west", 2)}
        assert frozenset().union(*info.hosts.values()) == frozenset().union(*INPUTS.values())
        assert info.hosts[HostInfo("east", 1)] == frozenset(given["a"].partitions)


def test_processes_of_one_instance_with_addresses_of_their_own_are_told_apart() -> None:
    members = {"a1": Follower(A, "east:1"), "a2": Follower(A, "east:2"), "b": Follower(B, "west:3")}
    given = led({name: one.says() for name, one in members.items()}, standbys=1)

    addresses = {"a1": HostInfo("east", 1), "a2": HostInfo("east", 2), "b": HostInfo("west", 3)}
    for each in given.values():
        assert set(each.info.hosts) == set(each.info.standby_hosts) == set(addresses.values())
        for name, host in addresses.items():
            assert each.info.hosts[host] == frozenset(given[name].partitions)
            assert each.info.standby_hosts[host] == frozenset().union(*given[name].info.standby.values())


def test_an_address_that_is_none_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    assert not led({"a": Follower(A, "nowhere").says()})["a"].info.hosts
    assert "an instance is left out of the addresses for queries: the endpoint 'nowhere'" in caplog.text


def test_the_oldest_version_is_used() -> None:
    given = led({"a": Follower(A).says(), "b": Follower(B, version=8).says()})
    assert {(each.info.version, each.info.common_version) for each in given.values()} == {(8, 11)}


def test_a_member_of_a_later_release_gets_tasks_by_what_it_owns() -> None:
    later = Member(bytes.fromhex("0000000c0000000c"), frozenset().union(*INPUTS.values()))
    given = led({"a": Follower(A).says(), "later": later})
    assert all(each.info.version == 11 for each in given.values())
    assert given["later"].partitions


def test_a_member_that_cannot_be_understood_is_told_to_end_and_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    given = led({"a": Follower(A).says(), "broken": Member(b"\0\0")})
    assert given["broken"].info.error == AssignorError.ASSIGNMENT_ERROR and not given["broken"].partitions
    assert paired_tasks(given["a"], TOPOLOGY, COUNTS) == INPUTS
    assert "member broken is left out and told to end" in caplog.text


def test_nobody_can_be_understood() -> None:
    assert led({"broken": Member(b"")})["broken"].info.error == AssignorError.ASSIGNMENT_ERROR


def test_a_wish_to_shut_down_reaches_everybody() -> None:
    wish = SubscriptionInfo(B, {}, error=AssignorError.SHUTDOWN_REQUESTED)
    given = led({"a": alone().says(), "b": Member(wish.encode())})
    assert {each.info.error for each in given.values()} == {AssignorError.SHUTDOWN_REQUESTED}
    assert not any(each.partitions for each in given.values())


def test_partitions_that_two_members_claim_go_to_neither() -> None:
    one, other = Follower(A, active=dict(INPUTS)), Follower(B, active=dict(INPUTS))
    given = led({"a": one.says(), "b": other.says()})
    places = Counter(place for each in given.values() for place in each.partitions)
    assert not places or max(places.values()) == 1


@given(st.integers(0, 2**32), st.integers(0, 2), st.integers(1, 3))
def test_a_group_that_changes_comes_to_rest_with_each_task_on_one_member(
    seed: int, standbys: int, warmups: int
) -> None:
    dice = random.Random(seed)
    processes = [ProcessId(uuid.UUID(int=dice.getrandbits(128))) for _ in range(3)]
    group: dict[str, Follower] = {}
    for change in range(4):
        if group and dice.random() < 0.4:
            del group[dice.choice(sorted(group))]
        group[f"member-{change}"] = Follower(dice.choice(processes))
        _come_to_rest(group, AssignmentConfigs(num_standby_replicas=standbys, max_warmup_replicas=warmups))


def _come_to_rest(group: dict[str, Follower], configs: AssignmentConfigs) -> None:
    leader = next(iter(group.values())).process
    for _ in range(50):
        joined = join({name: each.says() for name, each in group.items()}, TOPICS, configs)
        given = lead(joined, process_id=leader, now_ms=NOW)
        again = [each.obeys(given[name]) for name, each in group.items()]
        owned = Counter(task for each in group.values() for task in each.active)
        assert not owned or max(owned.values()) == 1
        probing = any(each.info.next_rebalance_ms != NEVER for each in given.values())
        if not any(again) and not probing:
            break
    assert owned.keys() == INPUTS.keys()
    assert not any(again)
