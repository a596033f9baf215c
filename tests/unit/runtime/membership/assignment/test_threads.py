"""Sharing out a client's tasks among its consumers."""

from __future__ import annotations

import uuid
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.assignment.group import Client, ClientTasks
from pykstreams.runtime.membership.assignment.threads import consumer_tasks
from pykstreams.runtime.membership.process_id import ProcessId

PROCESS = ProcessId(uuid.UUID(int=1))
ZERO, ONE, TWO, THREE = (TaskId(0, partition) for partition in range(4))


def test_tasks_stay_on_the_consumers_that_have_them() -> None:
    client = Client(
        PROCESS, {"a": frozenset({ONE, THREE}), "b": frozenset({TWO, ZERO})}, dict.fromkeys([ZERO, ONE, TWO, THREE], 0)
    )
    given = consumer_tasks(client, ClientTasks(frozenset({ZERO, ONE, TWO, THREE}), frozenset()))
    assert given["a"].active == (ONE, THREE)
    assert given["b"].active == (ZERO, TWO)


def test_a_consumer_gives_up_those_tasks_that_are_furthest_behind() -> None:
    client = Client(PROCESS, {"a": frozenset({ZERO, ONE}), "b": frozenset()}, {ZERO: 9, ONE: 1})
    given = consumer_tasks(client, ClientTasks(frozenset({ZERO, ONE}), frozenset()))
    assert given["a"].active == (ONE,)
    assert given["b"].active == (ZERO,)


@given(
    st.lists(st.sets(st.builds(TaskId, st.integers(0, 2), st.integers(0, 9))), min_size=1, max_size=4),
    st.sets(st.builds(TaskId, st.integers(0, 2), st.integers(0, 9))),
    st.sets(st.builds(TaskId, st.integers(3, 4), st.integers(0, 9))),
    st.data(),
)
def test_all_tasks_are_given_and_evenly(
    had: list[set[TaskId]], stateful: set[TaskId], stateless: set[TaskId], data: st.DataObject
) -> None:
    standby = data.draw(st.sets(st.sampled_from(sorted(stateful)))) if stateful else set()
    lags = {task: data.draw(st.integers(-3, 5)) for task in sorted(stateful)}
    consumers = {f"consumer-{at}": frozenset(tasks) for at, tasks in enumerate(had)}
    given = consumer_tasks(
        Client(PROCESS, consumers, lags), ClientTasks(frozenset(stateful - standby | stateless), frozenset(standby))
    )
    assert Counter(task for each in given.values() for task in each.active) == Counter(stateful - standby | stateless)
    assert Counter(task for each in given.values() for task in each.standby) == Counter(standby)
    counts = [len(each.active) + len(each.standby) for each in given.values()]
    assert max(counts) - min(counts) <= 1
