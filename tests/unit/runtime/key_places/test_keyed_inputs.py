"""The topics of which it matters where their keys lie: those whose records come to a join, a group or a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pykstreams import (
    Consumed,
    Grouped,
    Joined,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    Processor,
    Record,
    Serdes,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
)
from pykstreams.runtime.key_places.keyed_inputs import KeyedInput, keyed_inputs
from pykstreams.serdes import TimeWindowedSerde
from pykstreams.state import Stores
from pykstreams.topology.placement.key_placement import placement_of

TEXT = Serdes.string()
CONFIG = StreamsConfig({"application.id": "app", "default.key.serde": TEXT, "default.value.serde": TEXT})
WINDOWS = JoinWindows(timedelta(minutes=1))
Script = Callable[[StreamsBuilder], Any]


def keyed(script: Script, **partitions: int) -> dict[str, KeyedInput]:
    builder = StreamsBuilder()
    script(builder)
    return keyed_inputs(builder.build().plan(CONFIG), {"a": 4, "b": 4, **partitions})


def both(one: str, other: str) -> str:
    return one + other


def stream_with_table(builder: StreamsBuilder) -> None:
    a: KStream[str, str] = builder.stream("a")
    a.filter(lambda key, value: True).join(builder.table("b"), both, joined=Joined(name="join"))


def test_both_sides_of_a_join_are_told_with_the_operators_and_with_each_other() -> None:
    a, b = keyed(stream_with_table).values()

    assert a == KeyedInput("a", 4, None, ("join",), ("b",))
    assert (b.topic, b.met_by) == ("b", ("a",))
    assert b.readers == ("KTABLE-SOURCE-0000000004",)


def test_both_sides_of_a_join_of_streams_are_told() -> None:
    def script(builder: StreamsBuilder) -> None:
        a: KStream[str, str] = builder.stream("a")
        a.join(builder.stream("b"), both, windows=WINDOWS, stream_joined=StreamJoined(name="join"))

    found = keyed(script)

    assert {topic: one.met_by for topic, one in found.items()} == {"a": ("b",), "b": ("a",)}
    assert found["a"].readers == ("join-this-windowed", "join-this-join")


@pytest.mark.parametrize(
    "script",
    [
        lambda b: b.stream("a").group_by_key().count(),
        lambda b: b.stream("a").to_table(materialized="t"),
        lambda b: b.table("a", materialized="t"),
        lambda b: b.stream("a").group_by_key().windowed_by(TimeWindows(10)).count(),
    ],
)
def test_lone_groups_and_tables_are_told(script: Script) -> None:
    found = keyed(script)

    assert [*found] == ["a"]
    assert found["a"].met_by == ()


class Keeps(Processor[str, str, str, str]):
    def process(self, record: Record[str, str]) -> None:
        """Keeps nothing, in fact."""


def with_store(builder: StreamsBuilder) -> None:
    store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("s"), TEXT, TEXT)
    builder.add_state_store(store)
    a: KStream[str, str] = builder.stream("a")
    a.process(Keeps, "s")


def test_answers_of_a_foreign_key_join_find_the_left_row_wherever_it_lies() -> None:
    def script(builder: StreamsBuilder) -> None:
        left: KTable[str, str] = builder.table("a")
        left.join(builder.table("b"), both, foreign_key_extractor=lambda value: value)

    assert keyed(script)["a"].met_by == ()


@pytest.mark.parametrize(
    "script",
    [
        lambda b: b.stream("a").map_values(str.upper).to("b"),
        lambda b: b.stream("a").select_key(lambda key, value: value).group_by_key(Grouped(name="g")).count(),
        lambda b: b.stream("a").repartition().group_by_key().count(),
        lambda b: b.stream("a").join(b.global_table("b"), both, key_selector=lambda key, value: key),
        with_store,
    ],
    ids=["stateless", "new keys", "repartitioned", "global table", "own processor"],
)
def test_topics_are_left_out_whose_keys_do_not_matter_where_they_lie(script: Script) -> None:
    assert keyed(script) == {}


def test_one_partition_has_all_keys() -> None:
    assert keyed(stream_with_table, a=1, b=1) == {}


def test_topic_that_does_not_exist_yet_is_left_out() -> None:
    builder = StreamsBuilder()
    stream_with_table(builder)

    assert [*keyed_inputs(builder.build().plan(CONFIG), {"b": 4})] == ["b"]


def test_topics_of_a_pattern_are_told_one_by_one_without_the_topics_of_the_application() -> None:
    def script(builder: StreamsBuilder) -> None:
        builder.stream(re.compile(".*")).group_by_key().count(materialized=Materialized("t"))

    assert [*keyed(script, **{"app-t-changelog": 4})] == ["a", "b"]


def test_partitioner_that_the_source_names_is_told() -> None:
    found = keyed(lambda b: b.table("a", Consumed(partitioner="fnv1a"), materialized="t"))

    assert found["a"].placement == placement_of("fnv1a")


def test_windowed_keys_are_left_out_since_java_hashes_them_without_their_window() -> None:
    windowed = TimeWindowedSerde(TEXT, 10)

    assert keyed(lambda b: b.table("a", Consumed(key_serde=windowed), materialized="t")) == {}
