"""Cogrouped streams as a user writes them: one store, names, repartition topics, old values, views, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams import (
    BufferConfig,
    BuiltInDslStoreSuppliers,
    CogroupedKStream,
    Grouped,
    KGroupedStream,
    KStream,
    KTable,
    Materialized,
    Repartitioned,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
    TimeWindows,
    Windowed,
)
from pykstreams.errors import TopologyError
from pykstreams.runtime.topics.copartitioning import check_copartitioning, enforce_copartitioning
from pykstreams.testing import TopologyTestDriver
from tests.unit.dsl.one_commit import run_in_one_commit

TEXT = Serdes.string()
CONFIG = {
    "application.id": "app",
    "default.key.serde": TEXT,
    "default.value.serde": TEXT,
    "statestore.cache.max.bytes": 0,
}
UNCACHED = StreamsConfig(CONFIG)
CACHED = StreamsConfig({**CONFIG, "statestore.cache.max.bytes": 10_000_000})
WINDOWS = [TimeWindows(10), SlidingWindows(10), SessionWindows(10)]


def empty() -> str:
    return ""


def upper(key: str, value: str, aggregate: str) -> str:
    return aggregate + value.upper()


def lower(key: str, value: str, aggregate: str) -> str:
    return aggregate + value.lower()


def both(value: Any, other: Any) -> str:
    return f"{value}+{other}"


def grouped(builder: StreamsBuilder, topic: str) -> KGroupedStream[str, str]:
    stream: KStream[str, str] = builder.stream(topic)
    return stream.group_by_key()


def cogrouped(builder: StreamsBuilder) -> CogroupedKStream[str, str]:
    """Topic ``a`` in capitals and topic ``b`` in small letters."""
    return grouped(builder, "a").cogroup(upper).cogroup(grouped(builder, "b"), lower)


def windowed(
    builder: StreamsBuilder, windows: TimeWindows | SlidingWindows | SessionWindows
) -> KTable[Windowed[str], str]:
    streams = cogrouped(builder)
    if isinstance(windows, SessionWindows):
        return streams.windowed_by(windows).aggregate(empty, lambda key, aggregate, other: aggregate + other)
    return streams.windowed_by(windows).aggregate(empty)


def rekeyed(builder: StreamsBuilder, topic: str, name: str | None = None) -> KGroupedStream[Any, str]:
    return builder.stream(topic).group_by(lambda key, value: value, Grouped(name=name))


def run(
    builder: StreamsBuilder, *records: tuple[str, Any, Any], config: StreamsConfig = UNCACHED
) -> list[tuple[str | None, str | None, int | None]]:
    """What topic ``out`` gets when the records (topic, key, value) come, one a millisecond."""
    with TopologyTestDriver(builder.build(), config) as driver:
        for time, (topic, key, value) in enumerate(records):
            driver.create_input_topic(topic, TEXT, TEXT).pipe_input(key, value, timestamp=time)
        driver.advance_wall_clock_time(60_000)
        out = driver.create_output_topic("out", TEXT, TEXT)
        return [(record.key, record.value, record.timestamp) for record in out.read_records()]


def test_all_streams_change_one_aggregate_each_in_its_way() -> None:
    builder = StreamsBuilder()
    cogrouped(builder).aggregate(empty).to_stream().to("out")

    assert run(builder, ("a", "k", "x"), ("b", "k", "X"), ("b", "j", "Y"), ("a", "k", "z")) == [
        ("k", "X", 0),
        ("k", "Xx", 1),
        ("j", "y", 2),
        ("k", "XxZ", 3),
    ]


def test_a_cache_keeps_the_last_aggregate_of_all_streams() -> None:
    builder = StreamsBuilder()
    memory: Materialized[str, str] = Materialized(store_type=BuiltInDslStoreSuppliers.IN_MEMORY)
    cogrouped(builder).aggregate(empty, materialized=memory).to_stream().to("out")
    records = [("a", b"k", b"x"), ("b", b"k", b"X"), ("b", b"j", b"Y"), ("a", b"k", b"z")]

    produced = run_in_one_commit(builder.build(), CACHED, records)

    results = [(record.key, record.value, record.timestamp) for record in produced if record.topic == "out"]
    assert results == [(b"j", b"y", 2), (b"k", b"XxZ", 3)]


def test_streams_share_one_store_and_one_changelog() -> None:
    builder = StreamsBuilder()
    cogrouped(builder).aggregate(empty)

    (part,) = builder.build().plan(UNCACHED).subtopologies
    assert list(part.stores) == ["COGROUPKSTREAM-AGGREGATE-STATE-STORE-0000000002"]
    assert list(part.changelog_topics) == ["app-COGROUPKSTREAM-AGGREGATE-STATE-STORE-0000000002-changelog"]


def test_an_aggregator_deletes_what_another_has_built() -> None:
    builder = StreamsBuilder()
    streams = grouped(builder, "a").cogroup(upper)
    streams.cogroup(grouped(builder, "b"), lambda key, value, aggregate: None)  # a delete
    streams.aggregate(empty).to_stream().to("out")

    assert run(builder, ("a", "k", "x"), ("b", "k", "x"), ("a", "k", "y")) == [
        ("k", "X", 0),
        ("k", None, 1),
        ("k", "Y", 2),
    ]


def test_records_without_key_or_value_are_dropped() -> None:
    builder = StreamsBuilder()
    cogrouped(builder).aggregate(empty).to_stream().to("out")

    assert run(builder, ("a", None, "x"), ("b", "k", None)) == []


def test_same_stream_twice_has_the_later_aggregator() -> None:
    builder = StreamsBuilder()
    stream = grouped(builder, "a")
    stream.cogroup(upper).cogroup(stream, lower).aggregate(empty).to_stream().to("out")

    assert run(builder, ("a", "k", "X")) == [("k", "x", 0)]


def test_stream_added_after_windowed_by_is_aggregated_in_the_windows_too() -> None:
    builder = StreamsBuilder()
    streams = grouped(builder, "a").cogroup(upper)
    in_windows = streams.windowed_by(TimeWindows(10))
    streams.cogroup(grouped(builder, "b"), lower)
    in_windows.aggregate(empty).to_stream(lambda windowed, value: windowed.key).to("out")

    assert run(builder, ("a", "k", "x"), ("b", "k", "x")) == [("k", "X", 0), ("k", "Xx", 1)]


def test_stream_added_after_aggregate_is_not_in_that_table() -> None:
    builder = StreamsBuilder()
    streams = grouped(builder, "a").cogroup(upper)
    streams.aggregate(empty).to_stream().to("out")
    streams.cogroup(grouped(builder, "b"), lower)

    assert run(builder, ("a", "k", "x"), ("b", "k", "x")) == [("k", "X", 0)]


def test_name_names_the_aggregations_by_number_and_the_merge() -> None:
    builder = StreamsBuilder()
    cogrouped(builder).aggregate(empty, name="both").to_stream(name="next")

    names = [name for name in builder.build().plan(UNCACHED).whole.nodes if not name.startswith("KSTREAM-SOURCE")]
    assert names == ["both-cogroup-agg-0", "both-cogroup-agg-1", "both-cogroup-merge", "next"]


def test_only_a_named_store_can_be_queried() -> None:
    builder = StreamsBuilder()
    streams = cogrouped(builder)

    assert streams.aggregate(empty, materialized="both").queryable_store_name == "both"
    assert streams.aggregate(empty).queryable_store_name is None


def test_rekeyed_streams_go_through_topics_that_are_copartitioned_with_the_rest() -> None:
    builder = StreamsBuilder()
    streams = rekeyed(builder, "a", "a-by-value").cogroup(upper).cogroup(grouped(builder, "b"), lower)
    streams.cogroup(rekeyed(builder, "c"), lower).aggregate(empty, materialized="all").to_stream().to("out")

    parts = builder.build().plan(UNCACHED).subtopologies
    topics = {"app-a-by-value-repartition", "app-all-repartition", "b"}
    assert [part.copartition_groups for part in parts] == [(), (frozenset(topics),), ()]
    results = run(builder, ("a", "_", "k"), ("b", "k", "X"), ("c", "_", "k"))
    assert results == [("k", "K", 0), ("k", "Kx", 1), ("k", "Kxk", 2)]


def test_two_repartition_topics_of_one_name_are_refused_with_the_cure() -> None:
    builder = StreamsBuilder()
    rekeyed(builder, "a").cogroup(upper).cogroup(rekeyed(builder, "b"), lower).aggregate(empty, materialized="both")

    with pytest.raises(TopologyError, match=r"'both-repartition', .*give each a name of its own, by .* Grouped"):
        builder.build()


def test_unequal_numbers_of_partitions_are_refused_with_both_topics() -> None:
    builder = StreamsBuilder()
    first: KStream[str, str] = builder.stream("a")
    second: KStream[str, str] = builder.stream("b")
    a = first.repartition(Repartitioned(name="a", num_partitions=2)).group_by_key()
    b = second.repartition(Repartitioned(name="b", num_partitions=3)).group_by_key()
    a.cogroup(upper).cogroup(b, lower).aggregate(empty)

    with pytest.raises(TopologyError, match=r"a-repartition .*2 partitions.* b-repartition .*3 partitions"):
        builder.build()


def test_unequal_input_topics_are_refused_with_both_topics_both_counts_and_the_cure() -> None:
    builder = StreamsBuilder()
    cogrouped(builder).aggregate(empty)
    (part,) = builder.build().plan(UNCACHED).subtopologies

    with pytest.raises(TopologyError, match=r"\(b, 3 partitions\).*\(a, 2 partitions\).*num_partitions=2"):
        check_copartitioning(part, {"a": 2, "b": 3})


def test_repartition_topic_takes_the_count_of_the_other_inputs() -> None:
    builder = StreamsBuilder()
    streams = rekeyed(builder, "a").cogroup(upper).cogroup(grouped(builder, "b"), lower)
    streams.aggregate(empty, materialized="both")
    _, part = builder.build().plan(UNCACHED).subtopologies
    counts = {"app-both-repartition": 5, "b": 3}

    enforce_copartitioning(part, counts)

    assert counts == {"app-both-repartition": 3, "b": 3}


def test_second_table_of_a_cogrouped_stream_shares_its_repartition_topics() -> None:
    builder = StreamsBuilder()
    streams = rekeyed(builder, "a").cogroup(upper)
    streams.aggregate(empty, materialized="one")
    streams.aggregate(empty, materialized="two").to_stream().to("out")

    (part, _) = builder.build().plan(UNCACHED).subtopologies
    assert part.sink_topics == ("app-one-repartition",)
    assert run(builder, ("a", "_", "k")) == [("k", "K", 0)]


@pytest.mark.parametrize("config", [UNCACHED, CACHED])
def test_groups_of_the_table_lose_the_old_aggregate_and_get_the_new_one(config: StreamsConfig) -> None:
    builder = StreamsBuilder()
    by_length = cogrouped(builder).aggregate(empty).group_by(lambda key, value: (str(len(value)), key))
    keys = by_length.aggregate(
        empty, lambda length, key, keys: keys + key, lambda length, key, keys: keys.replace(key, "")
    )
    keys.to_stream().to("out")

    rows = run(builder, ("a", "k", "x"), ("b", "j", "y"), ("b", "k", "y"), config=config)
    last = {key: value for key, value, _ in rows}
    assert (last["1"], last["2"]) == ("j", "k")


def test_old_aggregate_of_a_change_is_the_one_that_another_stream_has_left() -> None:
    builder = StreamsBuilder()
    aggregates = cogrouped(builder).aggregate(empty).group_by(lambda key, value: ("all", value))
    history = aggregates.aggregate(
        empty, lambda key, value, seen: f"{seen} +{value}", lambda key, value, seen: f"{seen} -{value}"
    )
    history.to_stream().to("out")

    assert run(builder, ("a", "k", "x"), ("b", "k", "y"))[-1] == ("all", " +X -X +Xy", 1)


@pytest.mark.parametrize("config", [UNCACHED, CACHED])
@pytest.mark.parametrize("computed", [False, True])
def test_stream_is_joined_with_the_table_and_with_what_is_computed_from_it(
    computed: bool, config: StreamsConfig
) -> None:
    builder = StreamsBuilder()
    table = cogrouped(builder).aggregate(empty)
    if computed:
        table = table.map_values(lambda value: f"<{value}>")
    stream: KStream[str, str] = builder.stream("c")
    stream.left_join(table, both).to("out")

    assert run(builder, ("c", "k", "1"), ("a", "k", "x"), ("b", "k", "x"), ("c", "k", "2"), config=config) == [
        ("k", "1+None", 0),
        ("k", "2+<Xx>" if computed else "2+Xx", 3),
    ]


@pytest.mark.parametrize("computed", [False, True])
def test_table_is_joined_with_another_which_ever_of_them_changes(computed: bool) -> None:
    builder = StreamsBuilder()
    table = cogrouped(builder).aggregate(empty)
    if computed:
        table = table.filter(lambda key, value: value != "X")
    table.outer_join(builder.table("c"), both).to_stream().to("out")

    assert [value for _, value, _ in run(builder, ("a", "k", "x"), ("c", "k", "1"), ("b", "k", "x"))] == (
        [None, "None+1", "Xx+1"] if computed else ["X+None", "X+1", "Xx+1"]
    )


@pytest.mark.parametrize("windows", WINDOWS)
def test_windowed_table_is_joined_by_its_windowed_keys(windows: Any) -> None:
    builder = StreamsBuilder()
    table = windowed(builder, windows)
    joined = table.outer_join(table.filter(lambda windowed, value: len(value) > 1), both)
    joined.to_stream(lambda windowed, value: windowed.key).to("out")

    assert "Xx+Xx" in [value for _, value, _ in run(builder, ("a", "k", "x"), ("b", "k", "x"))]


@pytest.mark.parametrize("config", [UNCACHED, CACHED])
@pytest.mark.parametrize("windows", WINDOWS)
def test_both_streams_are_in_each_window(windows: Any, config: StreamsConfig) -> None:
    builder = StreamsBuilder()
    windowed(builder, windows).to_stream(lambda windowed, value: windowed.key).to("out")

    rows = run(builder, ("a", "k", "x"), ("b", "k", "x"), ("b", "j", "Y"), config=config)
    assert {("k", "Xx", 1), ("j", "y", 2)} <= set(rows)


def test_record_that_is_late_for_its_own_stream_only_is_dropped() -> None:
    builder = StreamsBuilder()
    windowed(builder, TimeWindows(10)).to_stream(lambda windowed, value: str(windowed.window.start)).to("out")

    with TopologyTestDriver(builder.build(), UNCACHED) as driver:
        a, b = (driver.create_input_topic(topic, TEXT, TEXT) for topic in "ab")
        a.pipe_input("k", "x", timestamp=100)
        a.pipe_input("k", "late", timestamp=5)
        b.pipe_input("k", "y", timestamp=5)

        results = driver.create_output_topic("out", TEXT, TEXT).read_key_values()
    assert results == [("100", "X"), ("0", "y")]


def test_suppression_waits_for_the_windows_of_all_streams() -> None:
    builder = StreamsBuilder()
    materialized = Materialized("windows", key_serde=TEXT, value_serde=TEXT)
    table = cogrouped(builder).windowed_by(TimeWindows(2)).aggregate(empty, materialized=materialized)
    final = table.suppress(Suppressed.until_window_closes(BufferConfig()))
    final.to_stream(lambda windowed, value: windowed.key).to("out")

    assert run(builder, ("a", "k", "x"), ("b", "k", "x"), ("b", "j", "x")) == [("k", "Xx", 1)]


def test_something_else_than_a_grouped_stream_is_refused() -> None:
    builder = StreamsBuilder()
    streams = grouped(builder, "a").cogroup(upper)

    with pytest.raises(TypeError, match=r"a grouped stream is cogrouped with .*KStream.*; expected a KGroupedStream"):
        streams.cogroup(builder.stream("b"), lower)  # type: ignore[arg-type]


def test_something_else_than_windows_is_refused() -> None:
    streams = cogrouped(StreamsBuilder())

    with pytest.raises(TypeError, match="windows are 10; expected TimeWindows, SlidingWindows, SessionWindows"):
        streams.windowed_by(10)  # type: ignore[call-overload]


def test_sliding_windows_without_length_are_refused() -> None:
    with pytest.raises(ValueError, match="give them a time difference of at least 1 ms"):
        cogrouped(StreamsBuilder()).windowed_by(SlidingWindows(0))
