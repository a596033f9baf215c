"""The lags of stores: of tasks that run, are restored, or are on standby."""

from __future__ import annotations

from collections.abc import Collection

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.queries.lags import KeptTask, LagInfo, store_lags
from tests.unit.runtime.cluster_fakes import FakeRestoredStore, FakeTask

LOGS = [TopicPartition("shop-counts-changelog", number) for number in range(3)]


def task(partition: int, committed: int | None = None) -> FakeTask:
    store = FakeRestoredStore(offset=committed)
    found = FakeTask(TaskId(0, partition), [TopicPartition("orders", partition)], {LOGS[partition]: store})
    found.open_stores()
    return found


def ends(partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    return dict.fromkeys(partitions, 10)


def test_a_task_that_runs_is_at_the_end_and_others_lag_by_what_they_have_not_read() -> None:
    found = store_lags(
        [
            KeptTask(task(1, 4), False, {LOGS[1]: 7}),
            KeptTask(task(0, 3), True, {}),
            KeptTask(task(2, 6), False, {}),
        ],
        ends,
    )

    assert found == {"counts": {0: LagInfo(10, 10), 1: LagInfo(7, 10), 2: LagInfo(6, 10)}}
    assert [one.offset_lag for one in found["counts"].values()] == [0, 3, 4]


def test_a_store_that_was_never_committed_lags_by_the_whole_changelog() -> None:
    assert store_lags([KeptTask(task(0), False, {})], ends) == {"counts": {0: LagInfo(0, 10)}}


def test_an_active_task_counts_in_place_of_the_standby_task_that_it_was() -> None:
    found = store_lags([KeptTask(task(0, 2), False, {}), KeptTask(task(0, 2), True, {})], ends)

    assert found == {"counts": {0: LagInfo(10, 10)}}


def test_a_changelog_that_was_read_further_than_its_end_was_then_has_no_negative_lag() -> None:
    assert LagInfo(12, 10).offset_lag == 0


def test_nobody_is_asked_where_there_is_no_changelog() -> None:
    def nobody(partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        raise AssertionError

    assert store_lags([KeptTask(FakeTask(TaskId(0, 0), [], {}), True, {})], nobody) == {}
