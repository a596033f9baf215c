"""The loop while records are in flight: other tasks go on, a commit waits, and a task that leaves is waited for."""

from __future__ import annotations

import logging

import pytest

from pykstreams.core.ids import TaskId
from pykstreams.runtime.clients.messages import Fetched
from pykstreams.runtime.membership.membership import Assignment
from tests.unit.runtime.cluster_fakes import FakeTask, fetched
from tests.unit.runtime.worker.test_worker import ONE, P0, P1, TWO, World, run


@pytest.fixture
def world() -> World:
    return World()


def clock_runs_while_waiting(world: World, task: FakeTask, *, seconds: float, done_after: float | None = None) -> None:
    """Each look at a task that is not settled takes so long; after some time its records have finished."""
    began = world.clock.monotonic()

    def look() -> None:
        world.clock.advance(seconds)
        if done_after is not None and world.clock.monotonic() - began >= done_after:
            task.unfinished = 0

    task.when_settling = look


def test_commit_waits_for_records_in_flight_while_other_tasks_go_on(world: World) -> None:
    world.assign(ONE, TWO)
    world.feed(P0, 0)
    world.made[0].unfinished = 1
    world.clock.advance(1.1)
    world.feed(P1, 0)
    world.feed(P1, 1)
    waiting = dict(world.membership.offsets), dict(world.made[1].done)
    world.made[0].unfinished = 0
    world.worker.step()

    assert waiting == ({}, {P1: 2})
    assert world.membership.offsets == {P0: (1, "m1"), P1: (2, "m2")}


def test_consumer_is_polled_all_the_time_while_results_are_awaited(world: World) -> None:
    world.assign(ONE)
    world.made[0].unfinished = 1
    world.worker.step()
    world.worker.step()

    assert world.reader.timeouts[-2:] == [0, 0]


def test_loop_is_woken_by_a_result(world: World) -> None:
    world.assign(ONE)
    world.made[0].unfinished = 1
    woken = world.worker._parts.woken
    polls: list[bool] = []

    def look(timeout: float) -> Fetched:
        polls.append(woken.is_set())
        return Fetched()

    world.reader.fetch = look  # type: ignore[method-assign]
    original = world.made[0].is_ready

    def ready_after_the_look() -> bool:
        woken.set()  # a result comes between the look at the tasks and the waiting
        return original()

    world.made[0].is_ready = ready_after_the_look  # type: ignore[method-assign]
    world.worker.step()

    assert polls == [True]


def test_commit_that_waits_for_long_says_what_to_do(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.assign(ONE)
    world.feed(P0, 0)
    world.made[0].unfinished = 3
    world.clock.advance(1.1)
    world.worker.step()
    early = list(caplog.messages)
    with caplog.at_level(logging.WARNING):
        world.clock.advance(60)
        world.worker.step()
        world.worker.step()

    assert not any("in flight" in text for text in early)
    assert [text for text in caplog.messages if "in flight" in text] == [
        "the commit waits for 3 records in flight in tasks 0_0; if a function of map_values_async may hang, give it a "
        "timeout"
    ]


def test_task_that_leaves_is_committed_when_its_records_have_finished(world: World) -> None:
    world.assign(ONE)
    world.feed(P0, 0)
    world.made[0].unfinished = 1
    clock_runs_while_waiting(world, world.made[0], seconds=1, done_after=3)
    world.membership.changes += [[ONE], Assignment(2, frozenset())]
    world.worker.step()

    assert world.membership.offsets == {P0: (1, "m1")}
    assert world.updater.closed == [(ONE, False)]


def test_task_that_leaves_with_a_record_that_never_ends_is_not_committed_and_its_neighbour_is(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.assign(ONE, TWO)
    world.feed(P0, 0)
    world.feed(P1, 0)
    world.made[0].unfinished = 1
    clock_runs_while_waiting(world, world.made[0], seconds=4)
    world.membership.changes += [[ONE, TWO], Assignment(2, frozenset())]
    world.worker.step()

    assert world.membership.offsets == {P1: (1, "m1")}
    assert set(world.updater.closed) == {(ONE, False), (TWO, False)}
    assert "records of 1 tasks were still in flight after 10 s; these tasks are not committed" in caplog.text


def test_under_exactly_once_such_a_task_gives_up_the_whole_transaction() -> None:
    world = World({"processing.guarantee": "exactly_once_v2", "commit.interval.ms": 1000})
    world.assign(ONE, TWO)
    world.feed(P0, 0)
    world.feed(P1, 0)
    world.made[0].unfinished = 1
    clock_runs_while_waiting(world, world.made[0], seconds=4)
    world.membership.changes += [[ONE], Assignment(2, frozenset({TWO}))]
    world.worker.step()

    assert world.membership.offsets == {}
    assert {task for task, _ in world.updater.closed} == {ONE, TWO}
    assert TaskId(0, 1) not in world.tasks.running or world.tasks.running[TWO].task is not world.made[1]


@pytest.mark.parametrize(("ends", "offsets"), [(3.0, {P0: (1, "m1")}), (None, {})])
def test_stopping_waits_for_records_in_flight_but_not_for_ever(
    world: World, ends: float | None, offsets: dict[object, object]
) -> None:
    def stop() -> None:
        world.reader.next = fetched(P0, 0)
        world.made[0].unfinished = 1
        clock_runs_while_waiting(world, world.made[0], seconds=1, done_after=ends)
        world.worker.stop(leave=True)

    run(world, stop)

    assert world.membership.offsets == offsets
    assert world.updater.closed == [(ONE, False)]
