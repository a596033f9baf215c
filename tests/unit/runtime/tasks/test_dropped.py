"""Dropped records are counted, and one line an interval says so for each operator and cause."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from pykstreams.core.handlers import DefaultProductionExceptionHandler, ErrorHandlerContext, ErrorHandlerResponse
from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import Counter
from pykstreams.core.record import ProducerRecord
from pykstreams.processors.drop_reasons import LATE_FOR_ORDER, LATE_FOR_WINDOWS, NULL_TABLE_KEY
from pykstreams.runtime.tasks.dropped import WARN_INTERVAL_S, DroppedRecords, NodeDrops
from pykstreams.serdes import Serdes
from pykstreams.state import Stores
from pykstreams.state.spec import StoreBuilder
from tests.unit.runtime.cluster_fakes import FakeClock
from tests.unit.runtime.tasks.fakes import FakeKafkaError, Operator, TaskBench, message, node, sink, source

TEXT = Serdes.string()


class GoesOn(DefaultProductionExceptionHandler):
    """Goes on without a record that the brokers did not take."""

    def handle_error(
        self, context: ErrorHandlerContext, record: ProducerRecord, exception: Exception
    ) -> ErrorHandlerResponse:
        return ErrorHandlerResponse.resume()


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


def test_a_count_without_a_line_tells_late_records_from_those_that_failed(
    dropped: DroppedRecords, caplog: pytest.LogCaptureFixture
) -> None:
    dropped.count("rows", late=True)
    dropped.count("rows", failed=True)
    dropped.count("rows")

    assert dropped.by_node() == {"rows": NodeDrops(total=3, late=1, failed=1)}
    assert (dropped.total, dropped.late, caplog.messages) == (3, 1, [])


@pytest.mark.parametrize(
    "builder",
    [
        Stores.window_store_builder(Stores.in_memory_window_store("rows", 100, 100), TEXT, TEXT),
        Stores.versioned_key_value_store_builder(Stores.in_memory_versioned_key_value_store("rows", 100), TEXT, TEXT),
    ],
    ids=["window", "versioned"],
)
def test_records_that_a_store_does_not_put_are_counted_as_late_ones_of_the_store(builder: StoreBuilder[Any]) -> None:
    def build(context: Any) -> Any:
        store = context.store("rows")
        return lambda key, value, timestamp, headers: store.put(key, value, timestamp)

    bench = TaskBench(
        source("SOURCE", "in", children=("NODE",)),
        node("NODE", Operator(build), stores=("rows",)),
        stores={"rows": builder},
    )

    bench.feed(*(message("in", at, "v", time) for at, time in enumerate((1000, 10, 20))))

    assert bench.task.dropped.by_node() == {"rows": NodeDrops(total=2, late=2)}
    assert (bench.task.dropped.total, bench.task.dropped.late, bench.dropped) == (2, 2, 2)


def test_records_that_the_production_handler_lets_go_are_counted_as_failed_ones_of_the_sink() -> None:
    bench = TaskBench(
        source("SOURCE", "in", children=("SINK",)),
        sink("SINK", "out"),
        config={"production.exception.handler": GoesOn()},
    )

    bench.collector.delivery_failed(FakeKafkaError("MSG_SIZE_TOO_LARGE"), message("out", 0, b"large", 5))

    assert bench.task.dropped.by_node() == {"SINK": NodeDrops(total=1, failed=1)}
    assert bench.dropped == 1
