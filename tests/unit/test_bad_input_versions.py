"""Versioned stores and tables that get what is no good: refused with a message, dropped and counted, or not found."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pykstreams import (
    Consumed,
    Joined,
    KStream,
    KTable,
    LogAndContinueProcessingExceptionHandler,
    Materialized,
    Processor,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    TimeWindows,
)
from pykstreams.errors import ProcessingError
from pykstreams.state import PUT_RETURN_CODE_NOT_PUT
from pykstreams.testing import TopologyTestDriver

TEXT = Serdes.string()
SETTINGS: dict[str, object] = {
    "application.id": "app",
    "default.key.serde": TEXT,
    "default.value.serde": TEXT,
    "statestore.cache.max.bytes": 0,
}
GO_ON: dict[str, object] = {"processing.exception.handler": LogAndContinueProcessingExceptionHandler}
SUPPLIERS = [
    pytest.param(Stores.persistent_versioned_key_value_store, id="rocksdb"),
    pytest.param(Stores.in_memory_versioned_key_value_store, id="memory"),
]
RETENTION_MS = 100


def called(call: Callable[[Any], Any], supplier: Any = Stores.persistent_versioned_key_value_store) -> Any:
    """What a processor gets when it calls a versioned store."""
    results = []

    class Calls(Processor[Any, Any, Any, Any]):
        def process(self, record: Record[Any, Any]) -> None:
            results.append(call(self.context.get_state_store("versions")))

    builder = StreamsBuilder()
    builder.add_state_store(
        Stores.versioned_key_value_store_builder(supplier("versions", RETENTION_MS), TEXT, Serdes.long())
    )
    builder.stream("in").process(Calls, "versions")
    with TopologyTestDriver(builder.build(), SETTINGS) as driver:
        driver.create_input_topic("in", TEXT, TEXT).pipe_input("k", "v", 1)
    return results[0]


def versioned(retention_ms: int = RETENTION_MS, name: str = "tab") -> Materialized[Any, Any]:
    return Materialized(Stores.persistent_versioned_key_value_store(name, retention_ms))


def dropped(driver: TopologyTestDriver) -> int:
    values = [metric.value for name, metric in driver.metrics().items() if name.name == "dropped-records-total"]
    return int(sum(values))


# Retention and grace


def test_grace_of_a_join_must_not_be_longer_than_the_history_of_the_table() -> None:
    builder = StreamsBuilder()
    table: KTable[str, str] = builder.table("table", materialized=versioned(99))
    stream: KStream[str, str] = builder.stream("in")
    options = Joined[Any, Any, Any](name="enrich", grace_period=timedelta(milliseconds=100))

    with pytest.raises(ValueError) as caught:
        stream.join(table, lambda s, t: s, joined=options)

    assert str(caught.value) == (
        "enrich has a grace period of 100 ms and joins KTABLE-SOURCE-0000000001, whose store keeps its history for 99 "
        "ms only; records would find nothing any more when they have waited. Give the store a history retention that "
        "is at least the grace period"
    )
    stream.join(table, lambda s, t: s, joined=options.replace(grace_period=99))


def test_grace_of_a_join_is_measured_by_the_history_that_lies_above_the_table() -> None:
    builder = StreamsBuilder()
    table = builder.table("table", materialized=versioned(99)).map_values(lambda value: value)

    with pytest.raises(
        ValueError, match=r"joins KTABLE-MAPVALUES-\d{10}, whose store keeps its history for 99 ms only"
    ):
        builder.stream("in").join(table, lambda s, t: s, joined=Joined(grace_period=100))


def test_grace_of_a_join_needs_a_table_with_a_history() -> None:
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("in")
    table: KTable[str, str] = builder.table("table", materialized="tab")

    with pytest.raises(ValueError, match=r"joins KTABLE-SOURCE-\d{10}, which is not versioned; leave grace_period"):
        stream.join(table, lambda s, t: s, joined=Joined(grace_period=100))


def test_retention_of_a_window_must_hold_its_grace() -> None:
    stream: KStream[str, str] = StreamsBuilder().stream("in")
    counts = stream.group_by_key().windowed_by(TimeWindows(10, grace=100))

    with pytest.raises(ValueError, match=r"retention.*109.*110"):
        counts.count(materialized=Materialized(retention=109))


@pytest.mark.parametrize("make", SUPPLIERS)
@pytest.mark.parametrize(
    ("retention", "error", "said"),
    [
        (-1, ValueError, "history retention of store 'tab' is -1; it must not be negative"),
        (timedelta(microseconds=1), ValueError, "history retention of store 'tab' is .*; durations count whole millis"),
        ("1d", TypeError, "history retention of store 'tab' is '1d'; expected a timedelta or an int of milliseconds"),
    ],
)
def test_retention_that_is_no_duration_is_refused(make: Any, retention: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        make("tab", retention)


# Times


@pytest.mark.parametrize("make", SUPPLIERS)
@pytest.mark.parametrize(
    ("time", "said"),
    [
        (-1, "the timestamp for store 'versions' is -1; it must not be negative"),
        (
            datetime(1969, 12, 31, 23, 59, tzinfo=UTC),
            "the timestamp for store 'versions' is -60000; it must not be neg",
        ),
        (2**63, "the timestamp for store 'versions' is 9223372036854775808; the greatest one is 9223372036854775807"),
        ("7", "timestamp is '7'; expected an aware datetime or an int of milliseconds since the epoch"),
        (1.5, "timestamp is 1.5; expected an aware datetime or an int of milliseconds since the epoch"),
        (datetime(2026, 1, 1), "timestamp is .*, which has no time zone; use datetime"),
    ],
)
def test_time_that_is_none_is_refused_and_changes_nothing(make: Any, time: Any, said: str) -> None:
    def call(store: Any) -> Any:
        store.put("k", 1, 5)
        with pytest.raises((ValueError, TypeError), match=said):
            store.put("k", 2, time)
        with pytest.raises((ValueError, TypeError), match=said):
            store.delete("k", time)
        return store.put("k", 3, 6), [(row.value, row.timestamp) for row in store.get("k", None, None)]

    assert called(call, make) == (-1, [(3, 6), (1, 5)])


@pytest.mark.parametrize("make", SUPPLIERS)
def test_nothing_was_there_before_time_began(make: Any) -> None:
    def call(store: Any) -> Any:
        store.put("k", 1, 0)
        return store.get("k", -1), store.get("k", -(2**63)), store.get("k", 0).value, list(store.get("k", -9, -1))

    assert called(call, make) == (None, None, 1, [])


def test_times_of_a_history_the_wrong_way_round_are_told() -> None:
    def call(store: Any) -> None:
        with pytest.raises(ValueError, match="store 'versions' is asked for a key from 5 to 1; swap them"):
            store.get("k", 5, 1)

    called(call)


def test_time_to_read_must_be_one() -> None:
    def call(store: Any) -> None:
        with pytest.raises(TypeError, match="as_of is '2026'; expected an aware datetime or an int of milliseconds"):
            store.get("k", "2026")
        with pytest.raises(TypeError, match="time_to is '2026'; expected an aware datetime or an int of milliseconds"):
            store.get("k", 0, "2026")

    called(call)


def test_record_whose_time_is_extracted_as_negative_comes_to_no_table(caplog: pytest.LogCaptureFixture) -> None:
    builder = StreamsBuilder()
    timed = Consumed[str, str](timestamp_extractor=lambda record, partition_time: -1)
    builder.table("in", timed, materialized=versioned(), reorder_grace=10).to_stream().to("out")
    with caplog.at_level(logging.WARNING), TopologyTestDriver(builder.build(), SETTINGS) as driver:
        driver.create_input_topic("in", TEXT, TEXT).pipe_input("k", "v", 1)

        assert driver.create_output_topic("out", TEXT, TEXT).is_empty
        assert list(driver.get_state_store("tab").get("k", None, None)) == []
        assert dropped(driver) == 1
    assert "in-0@0" in caplog.text


# Values and keys


@pytest.mark.parametrize("make", SUPPLIERS)
@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("k", "text", r"LongSerde.* cannot write 'text' of type str for topic 'app-versions-changelog'"),
        (5, 1, r"StringSerde.* cannot write 5 of type int for topic 'app-versions-changelog': expected a str"),
        (None, 1, "the key for store 'versions' is None; a key must not be None"),
    ],
)
def test_key_or_value_of_the_wrong_type_is_told_with_the_store(make: Any, key: Any, value: Any, said: str) -> None:
    with pytest.raises(ProcessingError, match=said):
        called(lambda store: store.put(key, value, 5), make)


@pytest.mark.parametrize("handler", [{}, GO_ON])
def test_value_of_the_wrong_type_comes_to_no_versioned_table(handler: dict[str, object]) -> None:
    """The record after it finds the table as it was: also its stream time has not moved on."""
    builder = StreamsBuilder()
    values: KStream[str, Any] = builder.stream("in").map_values(lambda v: v if v.isalpha() else int(v))
    values.to_table(materialized=versioned()).to_stream().to("out")
    with TopologyTestDriver(builder.build(), {**SETTINGS, **handler}) as driver:
        topic = driver.create_input_topic("in", TEXT, TEXT)
        if not handler:
            with pytest.raises(ProcessingError, match=r"TOTABLE.*cannot write 7 of type int for topic 'app-tab-change"):
                topic.pipe_input("k", "7", 1000)
            return
        topic.pipe_input("k", "7", 1000)
        topic.pipe_input("k", "x", 5)

        assert driver.create_output_topic("out", TEXT, TEXT).read_values() == ["x"]
        assert dropped(driver) == 1


# Before the history


@pytest.mark.parametrize("make", SUPPLIERS)
def test_value_from_before_the_history_is_not_found_and_warned_of_once(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def call(store: Any) -> Any:
        store.put("k", 1, 10)
        store.put("k", 2, 500)
        return [store.get("k", time) for time in (9, 10, 399)], store.get("k", 400).value

    with caplog.at_level(logging.WARNING, "pykstreams"):
        assert called(call, make) == ([None, None, None], 1)

    assert caplog.messages == [
        "versioned store 'versions' of task 0_0 was asked for a value as of 9, which is older than its newest record "
        "(500) by more than its history retention of 100 ms: it finds nothing there but versions that are still valid. "
        "Give the store a longer retention if such reads matter"
    ]


@pytest.mark.parametrize("make", SUPPLIERS)
def test_versions_from_before_the_history_are_not_put_counted_and_warned_of_once(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def call(store: Any) -> Any:
        store.put("other", 1, 500)
        return store.put("k", 1, 399), store.put("k", 1, 3), store.delete("k", 3), store.put("k", 1, 400)

    with caplog.at_level(logging.WARNING, "pykstreams"):
        assert called(call, make) == (PUT_RETURN_CODE_NOT_PUT, PUT_RETURN_CODE_NOT_PUT, None, -1)

    assert caplog.messages == [
        "versioned store 'versions' of task 0_0 does not put records that are older than its history retention of 100 "
        "ms: the first has the time 399, when the newest has 500. Give the store a longer retention if such records "
        "matter"
    ]


def test_table_forwards_nothing_that_came_too_late_for_its_history() -> None:
    builder = StreamsBuilder()
    builder.table("in", materialized=versioned()).to_stream().to("out")
    with TopologyTestDriver(builder.build(), SETTINGS) as driver:
        topic = driver.create_input_topic("in", TEXT, TEXT)
        for key, time in (("other", 500), ("k", 399), ("k", 400)):
            topic.pipe_input(key, str(time), time)

        assert driver.create_output_topic("out", TEXT, TEXT).read_values() == ["500", "400"]
        assert dropped(driver) == 1
