"""Tables that take their records in the order of their timestamps: ``reorder_grace=``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import pytest

from pykstreams import (
    Consumed,
    Joined,
    KStream,
    KTable,
    Materialized,
    Processor,
    Record,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
)
from pykstreams.errors import TopologyError
from pykstreams.testing import TopologyTestDriver

TEXT = Serdes.string()
SETTINGS: dict[str, object] = {
    "application.id": "app",
    "default.key.serde": TEXT,
    "default.value.serde": TEXT,
    "statestore.cache.max.bytes": 0,
}
Rows = list[tuple[Any, Any, int]]
Make = Callable[[StreamsBuilder, Any, Any], "KTable[str, str]"]


def table_of_a_topic(builder: StreamsBuilder, grace: Any, materialized: Any = None) -> KTable[str, str]:
    return builder.table("in", materialized=materialized, reorder_grace=grace)


def table_of_a_stream(builder: StreamsBuilder, grace: Any, materialized: Any = None) -> KTable[str, str]:
    return builder.stream("in").to_table(materialized=materialized, reorder_grace=grace)


def table_of_a_rekeyed_stream(builder: StreamsBuilder, grace: Any, materialized: Any = None) -> KTable[str, str]:
    stream: KStream[str, str] = builder.stream("in")
    return stream.map(lambda k, v: (k, v)).to_table(materialized=materialized, reorder_grace=grace)


MAKERS = [table_of_a_topic, table_of_a_stream, table_of_a_rekeyed_stream]


def run(builder: StreamsBuilder, records: Iterable[tuple[str, Any, Any, int]], **settings: object) -> Rows:
    """Pipes (topic, key, value, timestamp) and gives what comes out, with its timestamps."""
    with TopologyTestDriver(builder.build(settings), {**SETTINGS, **settings}) as driver:
        for topic, key, value, timestamp in records:
            driver.create_input_topic(topic, TEXT, TEXT).pipe_input(key, value, timestamp)
        out = driver.create_output_topic("out", TEXT, TEXT)
        return [(record.key, record.value, record.timestamp or 0) for record in out.read_records()]


def described(builder: StreamsBuilder) -> str:
    return str(builder.build().describe())


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("grace", [10, timedelta(milliseconds=10)])
def test_records_wait_until_the_grace_has_passed_and_leave_in_the_order_of_their_timestamps(
    make: Make, grace: Any
) -> None:
    builder = StreamsBuilder()
    make(builder, grace, None).to_stream().to("out")
    piped = [("a", "5", 5), ("b", "4", 4), ("a", "3", 3), ("a", None, 6), ("a", "5 again", 5), ("b", "15", 15)]

    found = run(builder, [("in", *record) for record in piped])

    assert found == [("a", "3", 3), ("b", "4", 4), ("a", "5", 5), ("a", "5 again", 5)]


def test_a_record_later_than_the_grace_is_dropped_and_one_within_goes_on_at_once() -> None:
    builder = StreamsBuilder()
    table_of_a_topic(builder, 10).to_stream().to("out")

    found = run(builder, [("in", "a", "30", 30), ("in", "a", "19", 19), ("in", "a", "20", 20), ("in", "b", "-", 41)])

    assert found == [("a", "20", 20), ("a", "30", 30)]


def test_a_table_without_grace_to_wait_for_drops_what_is_out_of_order() -> None:
    builder = StreamsBuilder()
    table_of_a_topic(builder, 0).to_stream().to("out")

    found = run(builder, [("in", "a", "5", 5), ("in", "b", "4", 4), ("in", "a", "5 again", 5)])

    assert found == [("a", "5", 5), ("a", "5 again", 5)]


@pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
def test_an_aggregation_ends_with_the_newest_values_by_time(cache_bytes: int) -> None:
    builder = StreamsBuilder()
    grouped = table_of_a_topic(builder, 10).group_by(lambda key, value: ("all", value))
    grouped.reduce(lambda total, new: total + new, lambda total, old: total.replace(old, "")).to_stream().to("out")
    records = [("in", "a", "A", 9), ("in", "b", "b", 7), ("in", "a", "a", 3), ("in", "b", "B", 8), ("in", "z", "z", 30)]

    *_, last = run(builder, records, **{"statestore.cache.max.bytes": cache_bytes})

    assert sorted(last[1]) == ["A", "B"]


def test_a_join_of_versioned_tables_sees_no_record_out_of_order() -> None:
    """Without the grace the join drops the late record, and the older result is never corrected."""
    results = {}
    for grace in (None, 10):
        builder = StreamsBuilder()
        kept = Materialized[str, str](Stores.persistent_versioned_key_value_store("left", 1000))
        left = table_of_a_topic(builder, grace, kept)
        left.join(builder.table("right"), lambda a, b: f"{a}{b}").to_stream().to("out")
        records = [("right", "k", "r", 0), ("in", "k", "9", 9), ("in", "k", "3", 3), ("in", "-", "-", 30)]
        results[grace] = run(builder, records)

    assert results == {None: [("k", "9r", 9)], 10: [("k", "3r", 3), ("k", "9r", 9)]}


def test_a_stream_finds_the_table_as_far_as_it_was_forwarded() -> None:
    """A join that waits at least as long as the table lags behind finds what a join in the order of time finds."""
    results = {}
    for grace in (None, 10):
        builder = StreamsBuilder()
        kept = Materialized[str, str](Stores.persistent_versioned_key_value_store("tab", 1000))
        table = table_of_a_topic(builder, 10, kept)
        stream: KStream[str, str] = builder.stream("stream")
        stream.join(table, lambda s, t: f"{s}{t}", joined=Joined(grace_period=grace)).to("out")
        records = [("in", "k", "3", 3), ("stream", "k", "s", 5), ("in", "-", "-", 15), ("stream", "-", "-", 15)]
        results[grace] = run(builder, records)

    assert results == {None: [], 10: [("k", "s3", 5)]}


def test_windows_of_a_re_ordered_table_lose_no_late_record() -> None:
    builder = StreamsBuilder()
    stream = table_of_a_topic(builder, 10).to_stream()
    counts = stream.group_by_key().windowed_by(TimeWindows(5)).count()
    counts.to_stream(lambda windowed, count: f"{windowed.key}@{windowed.window.start}").map_values(str).to("out")
    records = [("in", "a", "1", 1), ("in", "a", "11", 11), ("in", "a", "2", 2), ("in", "-", "-", 30)]

    assert [row[:2] for row in run(builder, records)] == [("a@0", "1"), ("a@0", "2"), ("a@10", "1")]


def test_a_record_keeps_headers_and_origin_while_it_waits() -> None:
    seen: list[Any] = []

    class Look(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            seen.append((record.value, record.timestamp, record.headers, self.context.record_metadata))

    builder = StreamsBuilder()
    table_of_a_topic(builder, 10).to_stream().process(Look)
    with TopologyTestDriver(builder.build(), SETTINGS) as driver:
        topic = driver.create_input_topic("in", TEXT, TEXT)
        topic.pipe_input("a", "1", 1, headers=[("h", b"x")])
        topic.pipe_input("a", "2", 11)

    ((value, timestamp, headers, origin),) = seen
    assert (value, timestamp, tuple(headers)) == ("1", 1, (("h", b"x"),))
    assert (origin.topic, origin.partition, origin.offset) == ("in", 0, 0)


# Names and topics


def test_the_step_takes_no_number_so_that_nothing_is_renamed() -> None:
    names = {}
    for grace in (None, 10):
        builder = StreamsBuilder()
        builder.table("in", reorder_grace=grace).to_stream().to("out")
        builder.stream("other").to_table(reorder_grace=grace, materialized="tab")
        names[grace] = builder.build().plan(StreamsConfig(SETTINGS)).whole.nodes.keys()

    assert names[10] - names[None] == {"KTABLE-SOURCE-0000000002-reorder", "KSTREAM-TOTABLE-0000000006-reorder"}
    assert names[None] < names[10]


def test_names_of_the_table_are_those_of_the_step() -> None:
    builder = StreamsBuilder()
    builder.table("in", Consumed(name="prices"), reorder_grace=10)
    builder.stream("other").to_table(name="costs", reorder_grace=10)
    text = described(builder)

    assert "Processor: prices-reorder (stores: [prices-reorder-Buffer])" in text
    assert "Processor: costs-reorder (stores: [costs-reorder-Buffer])" in text


def test_a_generated_name_of_the_buffer_is_told_where_names_must_be_given() -> None:
    wanted = {**SETTINGS, "ensure.explicit.internal.resource.naming": True}
    named = StreamsBuilder()
    named.table("in", Consumed(name="prices"), materialized="tab", reorder_grace=10)
    named.build(wanted)
    unnamed = StreamsBuilder()
    unnamed.table("in", materialized="tab", reorder_grace=10)

    with pytest.raises(TopologyError, match=r"KTABLE-SOURCE-\d{10}-reorder-Buffer-changelog"):
        unnamed.build(wanted)


@pytest.mark.parametrize("versioned", [False, True])
def test_a_re_ordered_table_never_has_its_topic_as_changelog(versioned: bool) -> None:
    """The topic has what still waits and what came too late, in its own order."""
    changelogs = {}
    for grace in (None, 10):
        builder = StreamsBuilder()
        store: Any = Stores.persistent_versioned_key_value_store("tab", 100) if versioned else "tab"
        builder.table("in", Consumed(name="t"), materialized=Materialized(store), reorder_grace=grace)
        topology = builder.build({"topology.optimization": "reuse.ktable.source.topics"})
        changelogs[grace] = dict(topology.plan(StreamsConfig(SETTINGS)).whole.changelogs)

    assert changelogs == {
        None: {"tab": "in"},
        10: {"t-reorder-Buffer": "app-t-reorder-Buffer-changelog", "tab": "app-tab-changelog"},
    }


def test_a_table_that_nothing_reads_keeps_no_store_but_the_buffer() -> None:
    builder = StreamsBuilder()
    builder.table("in", Consumed(name="t"), reorder_grace=10).to_stream().to("out")

    assert list(builder.build().plan(StreamsConfig(SETTINGS)).whole.stores) == ["t-reorder-Buffer"]


# Bad input


def test_a_global_table_cannot_be_re_ordered() -> None:
    with pytest.raises(TopologyError) as caught:
        StreamsBuilder().global_table("rates", reorder_grace=5)  # type: ignore[call-overload]

    assert str(caught.value) == (
        "Invalid topology: global table of 'rates' is given reorder_grace=5; it cannot be re-ordered, since its topic "
        "is its changelog: after a restart it has every record in the order of the topic. Leave reorder_grace away, or "
        "read the topic as a table"
    )


@pytest.mark.parametrize(
    ("grace", "error", "said"),
    [
        (-1, ValueError, "reorder_grace of prices is -1; it must not be negative"),
        (timedelta(microseconds=1), ValueError, "reorder_grace of prices is .*; durations count whole milliseconds"),
        ("1s", TypeError, "reorder_grace of prices is '1s'; expected a timedelta or an int of milliseconds"),
    ],
)
def test_a_grace_that_is_no_duration_is_refused(grace: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        StreamsBuilder().table("in", Consumed(name="prices"), reorder_grace=grace)
    with pytest.raises(error, match=said):
        StreamsBuilder().stream("in").to_table(name="prices", reorder_grace=grace)
