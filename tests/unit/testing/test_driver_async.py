"""Coroutines in the test driver: everything has happened when a call returns."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder
from pykstreams.core.errors import ProcessingError, StreamsError
from pykstreams.testing import TopologyTestDriver, driver

TEXT = Serdes.string()


def enriching(function: Any, **options: Any) -> Any:
    builder = StreamsBuilder()
    (
        builder.stream("in", Consumed(key_serde=TEXT, value_serde=TEXT))
        .flat_map_values(str.split)
        .map_values_async(function, **options)
        .to("out", Produced(key_serde=TEXT, value_serde=TEXT))
    )
    return builder.build()


def pipe(topology: Any, *values: str, **options: Any) -> list[str]:
    with TopologyTestDriver(topology, **options) as made:
        words = made.create_input_topic("in", TEXT, TEXT)
        for value in values:
            words.pipe_input("k", value)
        return made.create_output_topic("out", TEXT, TEXT).read_values()


async def shout(value: str) -> str:
    return value.upper()


def test_results_are_there_when_pipe_input_returns() -> None:
    assert pipe(enriching(shout), "to be", "or") == ["TO", "BE", "OR"]


def test_results_come_in_one_order_however_calls_end() -> None:
    """Keys differ, so that only the driver's waiting for all of them fixes the order."""
    ended = asyncio.Event()

    async def last_first(value: str) -> str:
        if value == "last":
            ended.set()
        else:
            await ended.wait()
        return value

    builder = StreamsBuilder()
    (
        builder.stream("in", Consumed(key_serde=TEXT, value_serde=TEXT))
        .flat_map(lambda key, value: [(word, word) for word in value.split()])
        .map_values_async(last_first)
        .to("out", Produced(key_serde=TEXT, value_serde=TEXT))
    )

    assert pipe(builder.build(), "one two last") == ["one", "two", "last"]


def test_what_a_cache_sends_late_is_waited_for() -> None:
    builder = StreamsBuilder()
    (
        builder.stream("in", Consumed(key_serde=TEXT, value_serde=TEXT))
        .group_by(lambda key, value: value, Grouped(key_serde=TEXT, value_serde=TEXT, name="words"))
        .count(materialized=Materialized("counts"))
        .to_stream()
        .map_values(str)
        .map_values_async(shout)
        .to("out", Produced(key_serde=TEXT, value_serde=TEXT))
    )

    assert pipe(builder.build(), "a", "b", "a") == ["1", "1", "2"]


def test_driver_works_where_an_event_loop_runs_already() -> None:
    async def test() -> list[str]:
        return pipe(enriching(shout), "a")

    assert asyncio.run(test()) == ["A"]


def test_every_partition_has_records_in_flight_of_its_own() -> None:
    assert pipe(enriching(shout), "a b", partitions=2) == ["A", "B"]


def test_failure_of_a_coroutine_comes_out_of_pipe_input() -> None:
    async def refuse(value: str) -> str:
        raise LookupError(value)

    with pytest.raises(ProcessingError, match="KSTREAM-MAPVALUESASYNC-0000000002 failed at record in-0 offset 0"):
        pipe(enriching(refuse), "a")


def test_coroutine_that_waits_for_the_test_itself_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(value: str) -> str:
        await asyncio.Event().wait()
        return value

    monkeypatch.setattr(driver, "_PATIENCE_S", 0.01)

    with pytest.raises(StreamsError, match=r"1 records of task 0_0 have been in flight for 0\.01 s, and none has"):
        pipe(enriching(never), "a")


def test_function_that_is_no_coroutine_function_is_refused_while_building() -> None:
    with pytest.raises(TypeError, match=r"str\.upper is not a coroutine function; define it with 'async def'"):
        enriching(str.upper)


def test_durations_and_names_are_as_in_other_operations() -> None:
    topology = enriching(shout, timeout=500, retries=1, max_in_flight=3, name="shout")

    assert "Processor: shout (stores: [])" in str(topology.describe())
