"""The high-availability assignor: who has which task, and what is promised of any group."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.errors import ConfigError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.assignment.group import Client, Group, GroupTasks, Task
from pykstreams.runtime.membership.assignment.high_availability import assign_high_availability
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.subscription_info import RUNNING
from tests.interop.assignor_questions import random_groups
from tests.unit.runtime.membership.java_vectors import group_of

A, B, C = (ProcessId(uuid.UUID(int=number)) for number in (1, 2, 3))
FAR = 1_000_000


def task(subtopology: int, partition: int, *, stateful: bool = True) -> Task:
    changelogs = {TopicPartition(f"log-{subtopology}", partition)} if stateful else set()
    return Task(
        TaskId(subtopology, partition),
        frozenset({TopicPartition(f"in-{subtopology}", partition)}),
        frozenset(changelogs),
    )


def client(
    process_id: ProcessId,
    lags: Mapping[TaskId, int],
    *,
    threads: int = 1,
    tags: Mapping[str, str] | None = None,
    rack: str | None = None,
) -> Client:
    consumers = {f"{process_id}-{thread}": frozenset[TaskId]() for thread in range(threads)}
    return Client(process_id, consumers, lags, tags=tags or {}, rack=rack)


def names(tasks: frozenset[TaskId]) -> list[str]:
    return [str(task) for task in sorted(tasks)]


def active_of(decided: GroupTasks) -> dict[ProcessId, list[str]]:
    return {client: names(tasks.active) for client, tasks in decided.clients.items()}


def standby_of(decided: GroupTasks) -> dict[ProcessId, list[str]]:
    return {client: names(tasks.standby) for client, tasks in decided.clients.items()}


TASKS = tuple(task(0, partition) for partition in range(4))
OWNED = {each.id: RUNNING for each in TASKS}
NOTHING = {each.id: FAR for each in TASKS}


def test_a_new_client_gets_warm_ups_and_the_tasks_stay_where_they_are() -> None:
    decided = assign_high_availability(Group((client(A, OWNED), client(B, NOTHING)), TASKS))
    assert active_of(decided) == {A: ["0_0", "0_1", "0_2", "0_3"], B: []}
    assert standby_of(decided) == {A: [], B: ["0_1", "0_3"]}
    assert decided.probing


def test_no_more_warm_ups_than_are_allowed_are_made() -> None:
    configs = AssignmentConfigs(max_warmup_replicas=1)
    decided = assign_high_availability(Group((client(A, OWNED), client(B, NOTHING)), TASKS, configs))
    assert standby_of(decided) == {A: [], B: ["0_1"]}
    assert decided.probing


def test_tasks_move_to_a_client_that_has_caught_up() -> None:
    caught_up = {each.id: 10_000 for each in TASKS}
    decided = assign_high_availability(Group((client(A, OWNED), client(B, caught_up)), TASKS))
    assert active_of(decided) == {A: ["0_0", "0_2"], B: ["0_1", "0_3"]}
    assert standby_of(decided) == {A: [], B: []}
    assert not decided.probing


def test_one_offset_more_than_acceptable_is_not_caught_up() -> None:
    behind = {each.id: 10_001 for each in TASKS}
    assert assign_high_availability(Group((client(A, OWNED), client(B, behind)), TASKS)).probing


def test_each_subtopology_is_spread_over_the_clients() -> None:
    tasks = tuple(task(subtopology, partition) for subtopology in range(2) for partition in range(2))
    lags = {each.id: 0 for each in tasks}
    decided = assign_high_availability(Group((client(A, lags), client(B, lags)), tasks))
    assert active_of(decided) == {A: ["0_0", "1_0"], B: ["0_1", "1_1"]}


def test_stateless_tasks_go_to_who_has_fewest_tasks_for_each_thread() -> None:
    tasks = tuple(task(0, partition, stateful=False) for partition in range(6))
    decided = assign_high_availability(Group((client(A, {}), client(B, {}, threads=2)), tasks))
    assert {each: len(tasks.active) for each, tasks in decided.clients.items()} == {A: 2, B: 4}


def test_a_standby_task_is_not_where_the_tag_of_the_active_one_is() -> None:
    lags = {TASKS[0].id: 0}
    group = Group(
        (
            client(A, lags, tags={"zone": "east"}),
            client(B, lags, tags={"zone": "east"}),
            client(C, lags, tags={"zone": "west"}),
        ),
        TASKS[:1],
        AssignmentConfigs(num_standby_replicas=1, rack_aware_assignment_tags=("zone",)),
    )
    assert standby_of(assign_high_availability(group)) == {A: [], B: [], C: ["0_0"]}


def test_too_few_clients_for_all_standby_tasks_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    lags = {TASKS[0].id: 0}
    configs = AssignmentConfigs(num_standby_replicas=2)
    assign_high_availability(Group((client(A, lags), client(B, lags)), TASKS[:1], configs))
    assert "standby tasks are missing of 1 tasks (0_0), which are to have 2 each" in caplog.text


def test_tasks_without_standby_tasks_are_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    configs = AssignmentConfigs(num_standby_replicas=1)
    tasks = tuple(task(0, number) for number in range(12))
    assign_high_availability(Group((client(A, {one.id: 0 for one in tasks}),), tasks, configs))
    [warning] = [message for message in caplog.messages if "standby" in message]
    assert "of 12 tasks (0_0, 0_1, 0_2, 0_3, 0_4, 0_5, 0_6, 0_7, 0_8, 0_9 and 2 more)" in warning


@pytest.mark.parametrize("strategy", ["min_traffic", "balance_subtopology"])
def test_tasks_are_where_their_inputs_are(strategy: str) -> None:
    group = _racks({0: "west", 1: "east", 2: "west", 3: "east"}, strategy)
    assert active_of(assign_high_availability(group)) == {A: ["0_1", "0_3"], B: ["0_0", "0_2"]}


def test_without_a_strategy_racks_count_for_nothing() -> None:
    group = _racks({0: "west", 1: "east", 2: "west", 3: "east"}, "none")
    assert active_of(assign_high_availability(group)) == {A: ["0_0", "0_2"], B: ["0_1", "0_3"]}


def test_partitions_without_racks_are_said_and_nothing_is_swapped(caplog: pytest.LogCaptureFixture) -> None:
    group = _racks({0: "west", 1: "east", 2: "west"}, "min_traffic")
    assert active_of(assign_high_availability(group)) == {A: ["0_0", "0_2"], B: ["0_1", "0_3"]}
    assert "the racks of in-0-3 are not known" in caplog.text


def test_clients_without_racks_are_said_and_nothing_is_swapped(caplog: pytest.LogCaptureFixture) -> None:
    known = _racks({0: "west", 1: "east", 2: "west", 3: "east"}, "min_traffic")
    group = Group((known.clients[0], client(B, NOTHING)), known.tasks, known.configs, known.racks)
    assign_high_availability(group)
    assert f"instance {B} has no rack" in caplog.text


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"rack.aware.assignment.strategy is 'nearest'; it is 'none', 'min_traffic'"):
        assign_high_availability(_racks({0: "east", 1: "east", 2: "east", 3: "east"}, "nearest"))


@given(st.integers(0, 2**32))
def test_any_group_has_each_task_once_and_standby_tasks_elsewhere(seed: int) -> None:
    group = group_of(next(random_groups(seed, 1)))
    decided = assign_high_availability(group)
    stateful = {each.id for each in group.tasks if each.stateful}
    assert Counter(each for tasks in decided.clients.values() for each in tasks.active) == Counter(
        each.id for each in group.tasks
    )
    copies: Counter[TaskId] = Counter(each for tasks in decided.clients.values() for each in tasks.standby)
    assert copies.keys() <= stateful
    wanted = min(group.configs.num_standby_replicas, len(group.clients) - 1)
    assert all(copies[each] >= wanted for each in stateful)
    assert sum(copies.values()) <= wanted * len(stateful) + group.configs.max_warmup_replicas
    assert not any(tasks.active & tasks.standby for tasks in decided.clients.values())
    assert decided.probing or all(copies[each] == wanted for each in stateful)


@given(st.integers(0, 2**32))
def test_a_settled_group_stays_as_it_is(seed: int) -> None:
    group = group_of(next(random_groups(seed, 1)))
    # Each round warms up one place at least, of all that active and standby tasks with state are to have.
    for _ in range(len(group.tasks) * (1 + group.configs.num_standby_replicas) + 1):
        decided = assign_high_availability(group)
        group = _caught_up(group, decided)
        if not decided.probing:
            break
    assert not decided.probing
    assert assign_high_availability(group).clients == decided.clients


def _racks(racks: Mapping[int, str], strategy: str) -> Group:
    configs = AssignmentConfigs(rack_aware_assignment_strategy=strategy)
    lags = {each.id: 0 for each in TASKS}
    clients = (client(A, lags, rack="east"), client(B, lags, rack="west"))
    return Group(
        clients, TASKS, configs, {TopicPartition("in-0", number): frozenset({rack}) for number, rack in racks.items()}
    )


def _caught_up(group: Group, decided: GroupTasks) -> Group:
    """The group once everybody works on what it was given, and copies have caught up."""
    clients = []
    for each in group.clients:
        tasks = decided.clients[each.process_id]
        lags = {
            task: RUNNING if task in tasks.active else 0 if task in tasks.standby else lag if lag >= 0 else FAR
            for task, lag in each.lags.items()
        }
        clients.append(Client(each.process_id, each.consumers, lags, tags=each.tags, rack=each.rack))
    return Group(tuple(clients), group.tasks, group.configs, group.racks)
