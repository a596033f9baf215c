"""Where copies of tasks are kept: the same answer for everybody, never beside the task, and few moves."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pykstreams.runtime.membership.client_ids import instance_of, member_client_id

from pykstreams.core.ids import TaskId
from pykstreams.runtime.standby.placement import place

FIRST = "7c1c9ea6-0f3b-4b7e-8f53-52d4a6d3a6b2"
PROCESS = "0d1c9ea6-0f3b-4b7e-8f53-52d4a6d3a6b1"
INSTANCES = [f"instance-{number}" for number in range(6)]


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[TaskId, str], list[str], int]:
    instances = draw(st.lists(st.sampled_from(INSTANCES), min_size=1, unique=True))
    tasks = draw(st.lists(st.builds(TaskId, st.integers(0, 3), st.integers(0, 20)), unique=True))
    active = {task: draw(st.sampled_from(instances)) for task in tasks}
    return active, instances, draw(st.integers(0, 4))


@given(groups(), st.randoms(use_true_random=False))
def test_each_task_has_its_copies_elsewhere_and_all_instances_agree(
    group: tuple[dict[TaskId, str], list[str], int], random: Random
) -> None:
    active, instances, replicas = group
    placed = place(active, instances, replicas)
    tasks = list(active)
    random.shuffle(tasks)
    random.shuffle(instances)

    assert placed.keys() == active.keys()
    for task, copies in placed.items():
        assert active[task] not in copies
        assert len(set(copies)) == len(copies) == min(replicas, len(instances) - 1)
        assert set(copies) <= set(instances)
    assert place({task: active[task] for task in tasks}, instances, replicas) == placed


@pytest.mark.parametrize("replicas", [1, 2])
def test_copies_are_shared_out_evenly(replicas: int) -> None:
    active = {TaskId(0, number): INSTANCES[number % 6] for number in range(60)}
    copies = Counter(one for chosen in place(active, INSTANCES, replicas).values() for one in chosen)

    assert max(copies.values()) <= 1.25 * 10 * replicas + 1
    assert min(copies.values()) >= 0.5 * 10 * replicas


def test_few_copies_move_when_an_instance_goes_or_comes() -> None:
    """Besides those that were on it, and those of tasks that come to where their copy was."""
    active = {TaskId(0, number): INSTANCES[number % 6] for number in range(60)}
    before = place(active, INSTANCES, 1)
    needless = []
    for gone in INSTANCES:
        left = [one for one in INSTANCES if one != gone]
        moved = {task: left[task.partition % 5] if one == gone else one for task, one in active.items()}
        after = place(moved, left, 1)
        needless.append(
            sum(
                before[task] != after[task] and before[task] != (gone,) and before[task] != (moved[task],)
                for task in active
            )
        )

    assert sum(needless) / len(needless) <= 6  # of 60


def test_members_tell_their_instance_by_its_id_in_front_or_behind() -> None:
    by_default = f"shop-{PROCESS}-StreamThread-2"
    by_client_id = "orders-on-rack-3-StreamThread-2"

    assert instance_of(member_client_id(by_default, PROCESS)) == PROCESS
    assert instance_of(member_client_id(by_client_id, PROCESS)) == PROCESS
    assert member_client_id(by_default, PROCESS) == f"{by_default}-membership"
    assert instance_of(member_client_id(by_default, FIRST)) == FIRST
    assert instance_of("something-else") == "something-else"
