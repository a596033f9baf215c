"""Sources whose producers do not put keys where murmur2 does: streams are repartitioned where they meet others, tables
are refused, and without such a source nothing changes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pykstreams import (
    CogroupedKStream,
    Consumed,
    Grouped,
    Joined,
    JoinWindows,
    KStream,
    KTable,
    Serdes,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    TableJoined,
    Topology,
    TopologyError,
)
from pykstreams.testing import TopologyTestDriver
from pykstreams.topology.placement.key_placement import placement_of
from pykstreams.topology.placement.reference_partitioner import ReferencePartitioner
from pykstreams.topology.plan import SinkNode, SubtopologyPlan

TEXT = Serdes.string()
CONFIG = StreamsConfig(
    {"application.id": "app", "default.key.serde": TEXT, "default.value.serde": TEXT, "statestore.cache.max.bytes": 0}
)
CRC = Consumed[str, str](partitioner="consistent_random")
FNV = Consumed[str, str](partitioner="fnv1a")
PLAIN = Consumed[str, str]()
WINDOWS = JoinWindows(timedelta(minutes=1))
Script = Callable[[StreamsBuilder], Any]


def both(one: str, other: str) -> str:
    return f"{one}+{other}"


def built(script: Script) -> Topology:
    builder = StreamsBuilder()
    script(builder)
    return builder.build()


def repartitioned(script: Script) -> list[str]:
    """The repartition topics that a script has, without the application id, sorted."""
    topics = built(script).plan(CONFIG).internal_topics
    return sorted(
        one.name.removeprefix("app-").removesuffix("-repartition") for one in topics if one.kind == "repartition"
    )


def joined(left: Consumed[str, str], right: Consumed[str, str]) -> Script:
    """Joins the stream l with the table r."""

    def script(builder: StreamsBuilder) -> None:
        stream: KStream[str, str] = builder.stream("l", left)
        table: KTable[str, str] = builder.table("r", right)
        stream.join(table, both, joined=Joined(name="join")).to("out")

    return script


def test_stream_that_lies_like_the_table_is_not_repartitioned() -> None:
    assert repartitioned(joined(CRC, CRC)) == []
    assert repartitioned(joined(CRC, Consumed(partitioner="consistent"))) == []
    assert repartitioned(joined(PLAIN, Consumed(partitioner="murmur2_random"))) == []


@pytest.mark.parametrize(("left", "right"), [(CRC, PLAIN), (PLAIN, CRC), (CRC, FNV)])
def test_stream_that_lies_otherwise_than_the_table_is_repartitioned(
    left: Consumed[str, str], right: Consumed[str, str]
) -> None:
    assert repartitioned(joined(left, right)) == ["join"]


def sink_of(script: Script) -> tuple[SubtopologyPlan, SinkNode]:
    plan = built(script).plan(CONFIG)
    found = [
        (part, node)
        for part in plan.subtopologies
        for node in part.nodes.values()
        if isinstance(node, SinkNode) and str(node.topic).endswith("-repartition")
    ]
    (one,) = found
    return one


def test_stream_is_sent_to_where_the_rows_of_the_table_are() -> None:
    _, sink = sink_of(joined(PLAIN, CRC))

    assert isinstance(sink.partitioner, ReferencePartitioner)
    choose = sink.partitioner.over_default(lambda: TEXT, lambda key, partitions: -1)
    assert [choose("topic", key, None, 12) for key in "abc"] == [zlib.crc32(key.encode()) % 12 for key in "abc"]


def test_stream_that_goes_to_a_table_by_murmur2_needs_no_partitioner() -> None:
    _, sink = sink_of(joined(CRC, PLAIN))

    assert sink.partitioner is None


def test_results_lie_where_the_join_was_made() -> None:
    def script(builder: StreamsBuilder) -> None:
        moved: KStream[str, str] = builder.stream("l", PLAIN).join(builder.table("r", CRC), both)
        moved.join(builder.table("s", CRC), both).to("out")

    assert repartitioned(script) == ["KSTREAM-SOURCE-0000000000-placed"]


def test_stream_of_new_keys_goes_to_where_the_rows_of_the_table_are() -> None:
    def script(builder: StreamsBuilder) -> None:
        selected = builder.stream("l", PLAIN).select_key(lambda key, value: value)
        selected.join(builder.table("r", CRC), both)
        selected.join(builder.table("s", PLAIN), both)

    assert repartitioned(script) == ["KSTREAM-KEY-SELECT-0000000001", "KSTREAM-KEY-SELECT-0000000001-placed"]


@pytest.mark.parametrize(
    ("left", "right", "topics"),
    [
        (CRC, CRC, []),
        (CRC, PLAIN, ["join-left"]),
        (PLAIN, CRC, ["join-right"]),
        (CRC, FNV, ["join-left", "join-right"]),
    ],
)
def test_streams_meet_where_murmur2_puts_keys_unless_both_lie_alike(
    left: Consumed[str, str], right: Consumed[str, str], topics: list[str]
) -> None:
    def script(builder: StreamsBuilder) -> None:
        one: KStream[str, str] = builder.stream("l", left)
        one.join(builder.stream("r", right), both, windows=WINDOWS, stream_joined=StreamJoined(name="join"))

    assert repartitioned(script) == topics


def test_lone_group_or_table_needs_no_repartitioning() -> None:
    assert repartitioned(lambda builder: builder.stream("l", CRC).group_by_key().count()) == []
    assert repartitioned(lambda builder: builder.stream("l", CRC).filter(lambda k, v: True).to_table()) == []
    assert repartitioned(lambda builder: builder.table("l", CRC, materialized="store")) == []


@pytest.mark.parametrize(
    "script", [lambda s: s.group_by_key(Grouped(name="g")).count(), lambda s: s.to_table(name="g")]
)
def test_merged_streams_that_lie_differently_are_repartitioned_before_they_are_grouped(
    script: Callable[[KStream[str, str]], object],
) -> None:
    assert repartitioned(lambda b: script(b.stream("l", CRC).merge(b.stream("r", PLAIN)))) == ["g"]
    assert repartitioned(lambda b: script(b.stream("l", CRC).merge(b.stream("r", CRC)))) == []


def test_cogrouped_streams_meet_in_one_place() -> None:
    def script(*sources: Consumed[str, str]) -> Script:
        def cogrouped(builder: StreamsBuilder) -> None:
            first, *others = (
                builder.stream(f"t{i}", source).group_by_key(Grouped(name=f"g{i}")) for i, source in enumerate(sources)
            )
            groups: CogroupedKStream[Any, str] = first.cogroup(lambda key, value, sofar: sofar)
            for other in others:
                groups.cogroup(other, lambda key, value, sofar: sofar)
            groups.aggregate(str)

        return cogrouped

    assert repartitioned(script(CRC, CRC)) == []
    assert repartitioned(script(CRC, PLAIN)) == ["g0"]
    assert repartitioned(script(CRC, FNV, PLAIN)) == ["g0", "g1"]


def test_no_other_repartition_topic_stands_in_for_one_that_a_placement_needs() -> None:
    def script(builder: StreamsBuilder) -> None:
        selected = builder.stream("l", PLAIN).select_key(lambda key, value: value)
        selected.join(builder.table("r", CRC), both)
        selected.group_by_key(Grouped(name="g")).count()

    builder = StreamsBuilder()
    script(builder)
    topics = builder.build({"topology.optimization": "all"}).plan(CONFIG).internal_topics

    assert {one.name for one in topics if one.kind == "repartition"} == {
        "app-KSTREAM-KEY-SELECT-0000000001-placed-repartition",
        "app-g-repartition",
    }


def test_tables_that_lie_differently_are_not_joined_and_the_cure_is_told() -> None:
    def script(builder: StreamsBuilder) -> None:
        builder.table("l", CRC).join(builder.table("r", PLAIN), both)

    with pytest.raises(
        TopologyError, match=r"as consistent_random puts.*in place of KTABLE-SOURCE-0000000002: .to_str"
    ):
        built(script)


def test_the_cure_for_tables_makes_them_meet() -> None:
    def script(builder: StreamsBuilder) -> None:
        moved: KTable[str, str] = builder.table("l", CRC).to_stream().repartition().to_table()
        moved.join(builder.table("r", PLAIN), both).to_stream().to("out")

    assert len(repartitioned(script)) == 1


def test_tables_that_lie_alike_are_joined() -> None:
    assert repartitioned(lambda b: b.table("l", CRC).join(b.table("r", CRC), both)) == []


def by_reference(right: Consumed[str, str], **options: Any) -> Script:
    return lambda b: b.table("l", CRC).join(b.table("r", right), both, foreign_key_extractor=str.strip, **options)


def test_table_that_rows_refer_to_must_lie_where_they_are_sent() -> None:
    with pytest.raises(TopologyError, match="rows that refer to them go where murmur2 does"):
        built(by_reference(CRC))
    with pytest.raises(TopologyError, match="rows that refer to them go where murmur2 does"):
        built(lambda b: b.table("l", CRC).one_to_many_join(b.table("r"), both, key_extractor=str.strip))

    built(by_reference(CRC, table_joined=TableJoined(other_partitioner=lambda topic, key, value, count: 0)))


def test_result_of_a_foreign_key_join_lies_like_its_left_table() -> None:
    def script(builder: StreamsBuilder) -> None:
        result: KTable[str, str] = by_reference(PLAIN)(builder)
        builder.stream("s", CRC).join(result, both, joined=Joined(name="join")).to("out")

    assert "join" not in repartitioned(script)


def test_topic_is_not_read_by_two_partitioners() -> None:
    def script(builder: StreamsBuilder) -> None:
        builder.stream("l", CRC)
        builder.stream("l", PLAIN)

    with pytest.raises(TopologyError, match="read l with different partitioners"):
        built(script)


def test_source_in_the_plan_tells_where_its_keys_lie() -> None:
    plan = built(joined(CRC, FNV)).plan(CONFIG)
    placements = {source.topics[0]: source.placement for part in plan.subtopologies for source in part.sources}

    assert placements == {
        "l": placement_of("consistent"),
        "app-join-repartition": placement_of("fnv1a"),
        "r": placement_of("fnv1a"),
    }


def test_source_of_the_processor_api_takes_a_partitioner_too() -> None:
    plan = Topology().add_source("s", "in", partitioner="fnv1a_random").plan(CONFIG)

    assert plan.subtopologies[0].sources[0].placement == placement_of("fnv1a")


KEYS = [str(number) for number in range(40)]


def results(script: Script) -> list[str]:
    """What a join gives for rows and records of these keys that lie in four partitions as the sources say."""
    with TopologyTestDriver(built(script), CONFIG, partitions=4) as driver:
        for topic in "rl":
            source = driver.create_input_topic(topic, TEXT, TEXT)
            for key in KEYS:
                source.pipe_input(key, f"{topic}{key}")
        return sorted(one.value for one in driver.create_output_topic("out", TEXT, TEXT).read_key_values())


SOURCES = [(PLAIN, PLAIN), (CRC, PLAIN), (PLAIN, CRC), (CRC, CRC), (CRC, FNV)]


@pytest.mark.parametrize(("left", "right"), SOURCES)
def test_every_record_finds_its_row_wherever_producers_have_put_the_two(
    left: Consumed[str, str], right: Consumed[str, str]
) -> None:
    assert results(joined(left, right)) == sorted(f"l{key}+r{key}" for key in KEYS)


@pytest.mark.parametrize(("left", "right"), SOURCES)
def test_every_record_finds_that_of_another_stream_wherever_producers_have_put_the_two(
    left: Consumed[str, str], right: Consumed[str, str]
) -> None:
    def script(builder: StreamsBuilder) -> None:
        one: KStream[str, str] = builder.stream("l", left)
        one.join(builder.stream("r", right), both, windows=WINDOWS).to("out")

    assert results(script) == sorted(f"l{key}+r{key}" for key in KEYS)


def test_every_row_is_answered_where_it_is_when_it_refers_to_another_table() -> None:
    def script(builder: StreamsBuilder) -> None:
        left: KTable[str, str] = builder.table("l", CRC)
        left.join(builder.table("r"), both, foreign_key_extractor=lambda row: row[1:]).to_stream().to("out")

    assert results(script) == sorted(f"l{key}+r{key}" for key in KEYS)


def test_records_of_merged_streams_are_counted_once_a_key() -> None:
    def script(builder: StreamsBuilder) -> None:
        merged = builder.stream("l", CRC).merge(builder.stream("r", FNV))
        merged.group_by_key().count().map_values(str).to_stream().to("out")

    assert results(script) == ["1"] * 40 + ["2"] * 40
