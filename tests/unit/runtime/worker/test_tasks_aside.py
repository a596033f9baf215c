"""Tasks whose store fails: damaged, on a full disk, or for any other reason; the others go on."""

from __future__ import annotations

import logging
from itertools import pairwise
from pathlib import Path

import pytest

from pykstreams.core.errors import DamagedStoreError, DiskFullError, ProcessingError, StoreEngineError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.restore.restore import Damaged
from pykstreams.runtime.worker import tasks_aside
from pykstreams.runtime.worker.tasks_aside import LOOK_EVERY_S, RETRY_S
from pykstreams.state.directory.disk_room import DiskRoom
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.testing import MockClock
from tests.unit.runtime.cluster_fakes import FakeRestoredStore
from tests.unit.runtime.worker.worker_bench import LOG, ONE, P1, TWO, WorkerBench


@pytest.fixture
def bench() -> WorkerBench:
    return WorkerBench()


BROKEN = StoreEngineError("store 'counts' of task 0_0 in '/state/shop/0_0' cannot be read", task_id=ONE)


def put_aside(bench: WorkerBench) -> list[TaskId]:
    """Which tasks were made by the time that the worker tries again, and a moment before."""
    bench.clock.advance(RETRY_S - 1)
    bench.worker.step()
    before = [task.id for task in bench.made]
    bench.clock.advance(1)
    bench.worker.step()
    assert len(before) < len(bench.made)
    return before


def test_task_whose_store_fails_is_tried_again_later_and_its_neighbour_goes_on(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.assign(ONE, TWO)
    bench.made[0].fail = BROKEN
    bench.worker.step()
    bench.feed(P1, 5)

    assert bench.updater.closed == [(ONE, None)]
    assert bench.made[1].done == {P1: 6}
    assert bench.states == [True, False]
    assert put_aside(bench) == [ONE, TWO]
    assert caplog.messages == [
        "task 0_0 is closed, and tried again every 30 s; other tasks go on: store 'counts' of task 0_0 in "
        "'/state/shop/0_0' cannot be read"
    ]


def test_task_whose_store_fails_while_it_is_opened_is_tried_again_later(bench: WorkerBench) -> None:
    bench.updater.hold = True
    bench.assign(ONE)
    bench.updater.pending.append(Damaged(ONE, BROKEN))
    bench.worker.step()

    assert put_aside(bench) == [ONE]


def damaged(bench: WorkerBench) -> DamagedStoreError:
    """Has the first task meet a damaged store that has a changelog."""
    error = DamagedStoreError("store 'rows' of task 0_0 cannot be read: Corruption", store="rows", task_id=ONE)
    task = next(task for task in reversed(bench.made) if task.id == ONE)
    task.by_changelog = {LOG: FakeRestoredStore("rows")}
    task.fail = error
    return error


def test_task_with_a_damaged_store_that_has_a_changelog_is_opened_again_at_once_without_it(bench: WorkerBench) -> None:
    bench.assign(ONE, TWO)
    error = damaged(bench)
    bench.worker.step()
    bench.worker.step()

    assert bench.updater.closed == [(ONE, error)]
    assert [task.id for task in bench.made] == [ONE, TWO, ONE]


def test_task_whose_stores_are_damaged_again_and_again_waits_before_they_are_restored(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.assign(ONE)
    for _ in range(2):
        damaged(bench)
        bench.worker.step()
        bench.worker.step()

    assert put_aside(bench) == [ONE, ONE]
    assert caplog.messages == [
        "task 0_0: a store of it was damaged less than 600 s ago, too, so it waits 30 s before it is restored; look at "
        "the disk"
    ]


def test_damaged_store_that_has_no_changelog_is_left_alone_and_its_task_is_tried_again_later(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.assign(ONE)
    damaged(bench)
    bench.made[0].by_changelog = {}
    bench.worker.step()

    assert bench.updater.closed == [(ONE, None)]
    assert put_aside(bench) == [ONE]
    assert caplog.messages == [
        "task 0_0 is closed, and tried again every 30 s; other tasks go on: store 'rows' of task 0_0 cannot be read: "
        "Corruption"
    ]


def test_damaged_store_under_exactly_once_takes_the_transaction_with_it_and_is_restored() -> None:
    bench = WorkerBench({"processing.guarantee": "exactly_once_v2"})
    bench.assign(ONE, TWO)
    error = damaged(bench)
    bench.worker.step()
    bench.worker.step()

    assert bench.updater.closed == [(ONE, error), (TWO, None)]
    assert bench.deliveries.cleared == 1
    assert [task.id for task in bench.made] == [ONE, TWO, ONE, TWO]


FULL = DiskFullError("store 'rows' cannot be written", folder="/state/shop/0_0/rocksdb/rows", task_id=ONE)


def test_task_whose_disk_is_full_waits_for_room_and_says_so_once_in_an_interval_while_others_go_on(
    bench: WorkerBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.assign(ONE, TWO)
    bench.made[0].fail = FULL
    bench.room = DiskRoom(free=9, wanted=10)
    bench.worker.step()
    bench.feed(P1, 5)
    for _ in range(29):
        bench.clock.advance(1)
        bench.worker.step()

    assert bench.updater.closed == [(ONE, None)]
    assert bench.made[1].done == {P1: 6}
    assert [task.id for task in bench.made] == [ONE, TWO]
    assert caplog.messages == [
        "the disk of '/state/shop/0_0/rocksdb/rows' is full: 9 bytes are free, and 10 are wanted. Tasks 0_0 wait for "
        "room, and go on from their last commit then; other tasks go on meanwhile"
    ]
    for _ in range(60):
        bench.clock.advance(1)
        bench.worker.step()
    assert len(caplog.messages) == 3


def test_task_whose_disk_has_room_again_goes_on(bench: WorkerBench, caplog: pytest.LogCaptureFixture) -> None:
    bench.assign(ONE)
    bench.made[0].fail = FULL
    bench.room = DiskRoom(free=9, wanted=10)
    bench.worker.step()
    bench.clock.advance(LOOK_EVERY_S)
    bench.worker.step()
    bench.room = DiskRoom(free=10, wanted=10)
    bench.clock.advance(LOOK_EVERY_S)
    with caplog.at_level(logging.INFO, tasks_aside.__name__):
        bench.worker.step()
        bench.worker.step()

    assert [task.id for task in bench.made] == [ONE, ONE]
    assert bench.states == [True, False, True]
    assert caplog.messages[-1] == (
        "there is room again for '/state/shop/0_0/rocksdb/rows' (10 bytes are free): task 0_0 goes on"
    )


def test_task_whose_disk_was_full_for_long_goes_on_as_soon_as_one_that_waited_a_moment(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.made[0].fail = FULL
    bench.room = DiskRoom(free=9, wanted=10)
    for _ in range(100):
        bench.worker.step()
        bench.clock.advance(LOOK_EVERY_S)
    assert len(bench.made) == 1

    bench.room = DiskRoom(free=10, wanted=10)
    bench.worker.step()
    bench.worker.step()

    assert len(bench.made) == 2


def test_state_of_a_task_that_waits_for_room_is_not_cleaned_up(tmp_path: Path) -> None:
    """Nobody has it open for longer than ``state.cleanup.delay.ms``, and it may have no changelog."""
    clock = MockClock(1_700_000_000_000)
    directory = StateDirectory(tmp_path, "shop", clock=clock)
    for task_id in (ONE, TWO):
        (directory.task_dir(task_id) / "rocksdb" / "rows").mkdir(parents=True)
        directory.lock(task_id)
        directory.unlock(task_id)
    aside = tasks_aside.TasksAside(clock, lambda _: DiskRoom(free=9, wanted=10), directory.keep)
    aside.add(ONE, FULL, is_restored=False)
    for _ in range(60):
        clock.advance(10_000)
        aside.may_open(ONE)

    assert directory.clean_up(600_000) == [TWO]


def test_task_that_finds_no_room_though_some_is_free_is_tried_ever_more_seldom(bench: WorkerBench) -> None:
    """A quota may be used up on a disk that is not."""
    bench.assign(ONE)
    tries: list[float] = []
    for _ in range(100):
        if len(bench.made) > len(tries):
            tries.append(bench.clock.monotonic())
            bench.made[-1].fail = FULL
        bench.clock.advance(1)
        bench.worker.step()

    gaps = [later - earlier for earlier, later in pairwise(tries)]
    assert gaps[0] <= 2
    assert gaps == sorted(gaps)
    assert gaps[-1] >= RETRY_S


def test_store_that_fails_under_exactly_once_takes_the_transaction_with_it_and_no_other_task() -> None:
    bench = WorkerBench({"processing.guarantee": "exactly_once_v2"})
    bench.assign(ONE, TWO)
    bench.made[0].fail = BROKEN
    bench.worker.step()
    bench.worker.step()

    assert sorted(bench.updater.closed) == [(ONE, None), (TWO, None)]
    assert bench.deliveries.cleared == 1
    assert [task.id for task in bench.made] == [ONE, TWO, TWO]


def test_record_that_was_lost_is_not_forgotten_over_a_store_that_fails(bench: WorkerBench) -> None:
    bench.assign(ONE, TWO)
    bench.feed(P1, 5)
    bench.deliveries.fail = ProcessingError("not delivered")
    bench.made[0].fail = BROKEN
    bench.worker.step()
    bench.clock.advance(1)

    with pytest.raises(ProcessingError, match="not delivered"):
        bench.worker.step()


def test_store_that_fails_and_is_of_no_task_here_ends_the_worker(bench: WorkerBench) -> None:
    bench.assign(ONE)
    bench.made[0].fail = StoreEngineError("global store 'rates' cannot be read", task_id=TaskId(-1, -1))

    with pytest.raises(StoreEngineError, match="rates"):
        bench.worker.step()


def test_a_task_that_waits_longer_already_is_not_put_off_to_an_earlier_time() -> None:
    clock = MockClock()
    aside = tasks_aside.TasksAside(clock)
    aside.add(ONE, BROKEN, is_restored=False)
    aside.put_off([ONE, TWO], 1)
    clock.advance(1_000)

    assert (aside.may_open(ONE), aside.may_open(TWO)) == (False, True)
    clock.advance(int(RETRY_S * 1000) - 1_000)
    assert aside.may_open(ONE)
