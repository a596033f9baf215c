"""Streams joined with versioned tables: what becomes of records from before the history of the table."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from pykstreams import Joined, JoinWindows, KTable, Materialized, Serdes, Stores, StreamsBuilder, StreamsConfig
from pykstreams.errors import TopologyError
from pykstreams.testing import TopologyTestDriver

CONFIG = StreamsConfig(
    {
        "application.id": "app",
        "default.key.serde": Serdes.string(),
        "default.value.serde": Serdes.string(),
        "statestore.cache.max.bytes": 0,
    }
)
HISTORY = 100
JOINS = pytest.mark.parametrize("join", ["join", "left_join"])


def both(value: Any, other: Any) -> str:
    return f"{value}+{other}"


def joined(
    join: str, derive: Callable[[KTable[Any, Any]], KTable[Any, Any]] = lambda table: table, **options: Any
) -> StreamsBuilder:
    builder = StreamsBuilder()
    supplier = Stores.persistent_versioned_key_value_store("t", HISTORY)
    table = derive(builder.table("T", materialized=Materialized(supplier)))
    getattr(builder.stream("S"), join)(table, both, **options).to("out")
    return builder


def run(builder: StreamsBuilder, *records: tuple[str, tuple[str | None, Any], int]) -> tuple[list[Any], float]:
    """The results (value, timestamp) of the records (topic, (key, value), timestamp), and how many were dropped."""
    with TopologyTestDriver(builder.build(), CONFIG) as driver:
        for topic, (key, value), time in records:
            driver.create_input_topic(topic, Serdes.string(), Serdes.string()).pipe_input(key, value, timestamp=time)
        out = driver.create_output_topic("out", Serdes.string(), Serdes.string())
        dropped = sum(metric.value for name, metric in driver.metrics().items() if name.name == "dropped-records-total")
        return [(record.value, record.timestamp) for record in out.read_records()], dropped


def table(value: Any, time: int, key: str = "k") -> tuple[str, tuple[str | None, Any], int]:
    return "T", (key, value), time


def stream(time: int, key: str | None = "k") -> tuple[str, tuple[str | None, Any], int]:
    return "S", (key, f"s{time}"), time


REPLACED = [table("t10", 10), table("t20", 20), table("t200", 200)]


@JOINS
def test_a_record_from_before_the_history_finds_no_row_by_default(join: str) -> None:
    records = [*REPLACED, stream(15), stream(99), stream(100)]
    results = [("s100+t20", 100)]
    if join == "left_join":
        results = [("s15+None", 15), ("s99+None", 99), *results]

    assert run(joined(join), *records) == (results, 0)
    assert run(joined(join, on_expired_history="null"), *records) == (results, 0)


@JOINS
def test_a_record_from_before_the_history_is_dropped_and_counted_where_asked_for(
    join: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="pykstreams.runtime.tasks.dropped"):
        results = run(joined(join, on_expired_history="drop"), *REPLACED, stream(15), stream(99), stream(100))

    assert results == ([("s100+t20", 100)], 2)
    (message,) = caplog.messages
    assert (
        "dropped a record: the history of the table at the time of the record has expired; give its store a longer "
        "history retention if such records matter; task 0_0, S-0@0"
    ) in message


@JOINS
def test_a_row_that_is_still_valid_is_found_however_old_the_record(join: str) -> None:
    records = [table("t10", 10), table("other", 200, key="o"), stream(15)]

    assert run(joined(join, on_expired_history="drop"), *records) == ([("s15+t10", 15)], 0)


@JOINS
def test_a_row_that_never_was_cannot_be_told_from_one_that_has_expired(join: str) -> None:
    records = [table("other", 200, key="o"), stream(99), stream(100)]
    results = [("s100+None", 100)] if join == "left_join" else []

    assert run(joined(join, on_expired_history="drop"), *records) == (results, 1)


def test_a_row_that_a_filter_leaves_out_is_known_not_to_be_there() -> None:
    records = [table("t10", 10), table("other", 200, key="o"), stream(15), stream(5)]
    kept = joined("left_join", lambda rows: rows.filter(lambda key, value: False), on_expired_history="drop")

    assert run(kept, *records) == ([("s15+None", 15)], 1)


def test_a_record_without_key_looks_nothing_up() -> None:
    assert run(joined("left_join", on_expired_history="drop"), *REPLACED, stream(15, None)) == ([("s15+None", 15)], 0)


def test_what_has_waited_for_the_table_is_judged_when_it_is_joined() -> None:
    waits = joined("left_join", joined=Joined(grace_period=50), on_expired_history="drop")
    records = [table("t10", 10), table("t20", 20), stream(15), table("t200", 200), stream(130), stream(190)]

    assert run(waits, *records) == ([("s130+t20", 130)], 1)


def test_a_table_without_history_cannot_have_an_expired_one() -> None:
    builder = StreamsBuilder()
    why = (
        r"KSTREAM-LEFTJOIN-\d+ has on_expired_history='drop' and joins KTABLE-SOURCE-\d+, which is not versioned: it "
        "is asked for the row of the moment, and no history can expire. Leave on_expired_history away"
    )

    with pytest.raises(TopologyError, match=why):
        builder.stream("S").left_join(builder.table("T", materialized="t"), both, on_expired_history="drop")


def test_there_is_no_third_way() -> None:
    with pytest.raises(
        ValueError, match=r"on_expired_history of KSTREAM-JOIN-\d+ is 'keep'; expected 'null' or 'drop'"
    ):
        joined("join", on_expired_history="keep")


@pytest.mark.parametrize(
    ("other", "options", "side"),
    [
        (lambda builder: builder.stream("O"), {"windows": JoinWindows(5)}, "a stream"),
        (lambda builder: builder.global_table("O"), {"key_selector": lambda key, value: key}, "a global table"),
    ],
)
def test_it_says_nothing_about_streams_and_global_tables(other: Any, options: dict[str, Any], side: str) -> None:
    builder: Any = StreamsBuilder()

    with pytest.raises(TypeError, match=f"on_expired_history='drop' is given, and the other side .* is {side}"):
        builder.stream("S").join(other(builder), both, on_expired_history="drop", **options)
