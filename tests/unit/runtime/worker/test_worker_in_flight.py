"""The loop while records are in flight: other tasks go on, a commit waits, and a task that leaves is waited for."""

from __future__ import annotations

import logging

import pytest

from pykstreams.core.ids import TaskId
from tests.unit.runtime.cluster_fakes import FakeTask, fetched
from tests.unit.runtime.worker.worker_bench import ONE, P0, P1, TWO, WorkerBench, run


@pytest.fixture
def bench() -> WorkerBench:
    return WorkerBench()


def clock_runs_while_waiting(
    bench: WorkerBench, task: FakeTask, *, seconds: float, done_after: float | None = None
) -> None:
    """Each look at a task that is not settled takes so long; after some time its records have finished."""
    began = bench.clock.monotonic()

    def look() -> None:
        bench.clock.advance(seconds)
        if done_after is not None and bench.clock.monotonic() - began >= done_after:
            task.unfinished = 0

    task.when_settling = look


def test_commit_waits_for_records_in_flight_while_other_tasks_go_on(bench: WorkerBench) -> None:
    bench.assign(ONE, TWO)
    bench.feed(P0, 0)
    bench.made[0].unfinished = 1
    bench.clock.advance(1.1)
    bench.feed(P1, 0)
    bench.feed(P1, 1)
    waiting = dict(bench.membership.offsets), dict(bench.made[1].done)
    bench.made[0].unfinished = 0
    bench.worker.step()

    assert waiting == ({}, {P1: 2})
    assert bench.membership.offsets == {P0: (1, "m1"), P1: (2, "m2")}


def test_consumer_is_polled_all_the_time_while_results_are_awaited(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.made[0].unfinished = 1
    bench.worker.step()
    bench.worker.step()

    assert bench.reader.timeouts[-2:] == [0, 0]


def test_loop_is_woken_by_a_result(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.made[0].unfinished = 1
    woken = bench.worker._parts.woken
    polls: list[bool] = []

    bench.reader.when_fetching = lambda: polls.append(woken.is_set())
    bench.made[0].when_asked = woken.set  # a result comes between the look at the tasks and the waiting
    bench.worker.step()

    assert polls == [True]


def test_commit_that_waits_for_long_says_what_to_do(bench: WorkerBench, caplog: pytest.LogCaptureFixture) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.made[0].unfinished = 3
    bench.clock.advance(1.1)
    bench.worker.step()
    early = list(caplog.messages)
    with caplog.at_level(logging.WARNING):
        bench.clock.advance(60)
        bench.worker.step()
        bench.worker.step()

    assert not any("in flight" in text for text in early)
    assert [text for text in caplog.messages if "in flight" in text] == [
        "the commit waits for 3 records in flight in tasks 0_0; if a function of map_values_async may hang, give it a "
        "timeout"
    ]


def test_task_that_leaves_is_committed_when_its_records_have_finished(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.feed(P0, 0)
    bench.made[0].unfinished = 1
    clock_runs_while_waiting(bench, bench.made[0], seconds=1, done_after=3)
    bench.membership.changes += [[ONE], bench.assignment()]
    bench.worker.step()

    assert bench.membership.offsets == {P0: (1, "m1")}
    assert bench.updater.closed == [(ONE, None)]


def test_task_that_leaves_with_a_record_that_never_ends_is_not_committed_and_its_neighbour_is(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.assign(ONE, TWO)
    bench.feed(P0, 0)
    bench.feed(P1, 0)
    bench.made[0].unfinished = 1
    clock_runs_while_waiting(bench, bench.made[0], seconds=4)
    bench.membership.changes += [[ONE, TWO], bench.assignment()]
    bench.worker.step()

    assert bench.membership.offsets == {P1: (1, "m1")}
    assert set(bench.updater.closed) == {(ONE, None), (TWO, None)}
    assert "records of 1 tasks were still in flight after 10 s; these tasks are not committed" in caplog.text


def test_under_exactly_once_such_a_task_gives_up_the_whole_transaction() -> None:
    bench = WorkerBench({"processing.guarantee": "exactly_once_v2", "commit.interval.ms": 1000})
    bench.assign(ONE, TWO)
    bench.feed(P0, 0)
    bench.feed(P1, 0)
    bench.made[0].unfinished = 1
    clock_runs_while_waiting(bench, bench.made[0], seconds=4)
    bench.membership.changes += [[ONE], bench.assignment(TWO)]
    bench.worker.step()

    assert bench.membership.offsets == {}
    assert {task for task, _ in bench.updater.closed} == {ONE, TWO}
    assert TaskId(0, 1) not in bench.tasks.running or bench.tasks.running[TWO].task is not bench.made[1]


@pytest.mark.parametrize(("ends", "offsets"), [(3.0, {P0: (1, "m1")}), (None, {})])
def test_stopping_waits_for_records_in_flight_but_not_for_ever(
    bench: WorkerBench, ends: float | None, offsets: dict[object, object]
) -> None:
    def stop() -> None:
        bench.reader.next = fetched(P0, 0)
        bench.made[0].unfinished = 1
        clock_runs_while_waiting(bench, bench.made[0], seconds=1, done_after=ends)
        bench.worker.stop(leave=True)

    run(bench, stop)

    assert bench.membership.offsets == offsets
    assert bench.updater.closed == [(ONE, None)]
