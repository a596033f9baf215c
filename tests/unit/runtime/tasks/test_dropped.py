"""Dropped records are counted, and one line an interval says so for each operator and cause."""

from __future__ import annotations

import logging

import pytest

from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import Counter
from pykstreams.processors.drop_reasons import LATE_FOR_ORDER, LATE_FOR_WINDOWS, NULL_TABLE_KEY
from pykstreams.runtime.tasks.dropped import WARN_INTERVAL_S, DroppedRecords
from tests.unit.runtime.cluster_fakes import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def dropped(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> DroppedRecords:
    caplog.set_level(logging.WARNING)
    return DroppedRecords(TaskId(0, 1), Counter(), clock, lambda: None)


def test_one_line_an_interval_counts_the_drops_of_an_operator(
    dropped: DroppedRecords, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    for at in range(100):
        dropped.drop("COUNT", NULL_TABLE_KEY, f"in-0@{at}")
    clock.advance(WARN_INTERVAL_S)
    for at in range(100, 200):
        dropped.drop("COUNT", NULL_TABLE_KEY, f"in-0@{at}")
    dropped.sum_up()
    dropped.sum_up()

    assert caplog.messages == [
        f"COUNT dropped a record: {NULL_TABLE_KEY}; task 0_1, in-0@0",
        f"COUNT dropped a record: {NULL_TABLE_KEY}; task 0_1, in-0@100 (and 99 more since the last warning)",
        f"COUNT dropped 99 more records since the last warning: {NULL_TABLE_KEY}; task 0_1",
    ]
    assert dropped.total == 200


def test_late_records_are_counted_among_the_dropped_ones(dropped: DroppedRecords) -> None:
    for reason in (LATE_FOR_WINDOWS, NULL_TABLE_KEY, LATE_FOR_ORDER):
        dropped.drop("COUNT", reason)

    assert (dropped.total, dropped.late) == (3, 2)
