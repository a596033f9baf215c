"""Versioned tables as a user writes them: which tables are versioned, and what each operator does to late records.

The tables of records are those of KIP-914; what it rejects ("Attempt 1") must not come out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pykstreams import Joined, KStream, KTable, Materialized, Serdes, Stores, StreamsBuilder, StreamsConfig, Suppressed
from pykstreams.dsl.aggregations.suppression import BufferConfig
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

Row = tuple[Any, int | None]


def versioned(name: str, history: int = HISTORY) -> Materialized[Any, Any]:
    return Materialized(Stores.persistent_versioned_key_value_store(name, history))


def both(value: Any, other: Any) -> str:
    return f"{value}+{other}"


def run(builder: StreamsBuilder, *records: tuple[str, Any, int], key: str = "k") -> list[Row]:
    """What topic ``out`` gets when the records (topic, value, timestamp) of one key come: (value, timestamp)."""
    with TopologyTestDriver(builder.build(), CONFIG) as driver:
        for topic, value, time in records:
            driver.create_input_topic(topic, Serdes.string(), Serdes.string()).pipe_input(key, value, timestamp=time)
        out = driver.create_output_topic("out", Serdes.string(), Serdes.string())
        return [(record.value, record.timestamp) for record in out.read_records()]


def joined(
    left: Materialized[Any, Any] | str, right: Materialized[Any, Any] | str, join: str = "join"
) -> StreamsBuilder:
    builder = StreamsBuilder()
    tables = builder.table("A", materialized=left), builder.table("B", materialized=right)
    getattr(tables[0], join)(tables[1], both).to_stream().to("out")
    return builder


# Joins of tables


def test_late_records_of_a_versioned_side_give_no_results() -> None:
    records = [("A", "a0", 0), ("A", "a5", 5), ("B", "b2", 2), ("B", "b3", 3), ("B", "b4", 4), ("A", "a1", 1)]

    assert run(joined(versioned("a"), versioned("b")), *records) == [("a5+b2", 5), ("a5+b3", 5), ("a5+b4", 5)]


def test_an_older_result_may_be_wrong_later() -> None:
    records = [("A", "a0", 0), ("B", "b2", 2), ("A", "a5", 5), ("A", "a1", 1)]

    assert run(joined(versioned("a"), versioned("b")), *records) == [("a0+b2", 2), ("a5+b2", 5)]


def test_a_late_record_does_not_take_the_place_of_the_newest_result() -> None:
    records = [("A", "a0", 0), ("A", "a4", 4), ("B", "b2", 2), ("B", "b1", 1)]

    assert run(joined(versioned("a"), versioned("b")), *records) == [("a4+b2", 4)]
    assert run(joined("a", "b"), *records) == [("a4+b2", 4), ("a4+b1", 4)]


def test_a_late_record_is_not_joined_with_what_was_there_then() -> None:
    """Attempt 1 of the proposal would give (a0+b2, 2) and (a1+b0, 1), the first of which the second makes wrong."""
    records = [
        ("A", "a0", 0),
        ("B", "b0", 0),
        ("A", "a4", 4),
        ("B", "b3", 3),
        ("B", "b2", 2),
        ("A", "a1", 1),
    ]

    assert run(joined(versioned("a"), versioned("b")), *records) == [("a0+b0", 0), ("a4+b0", 4), ("a4+b3", 4)]


@pytest.mark.parametrize("join", ["join", "left_join", "outer_join"])
def test_with_one_versioned_side_late_records_of_the_other_still_give_results(join: str) -> None:
    records = [("A", "a4", 4), ("B", "b4", 4), ("A", "a1", 1), ("B", "b1", 1)]
    first = [] if join == "join" else [("a4+None", 4)]

    assert run(joined(versioned("a"), "b", join), *records) == [*first, ("a4+b4", 4), ("a4+b1", 4)]
    assert run(joined("a", versioned("b"), join), *records) == [*first, ("a4+b4", 4), ("a1+b4", 4)]


@pytest.mark.parametrize("join", ["join", "left_join"])
def test_foreign_key_joins_leave_late_records_of_versioned_sides_out(join: str) -> None:
    def build(left: Any, right: Any) -> StreamsBuilder:
        builder = StreamsBuilder()
        tables = builder.table("A", materialized=left), builder.table("B", materialized=right)
        getattr(tables[0], join)(tables[1], both, foreign_key_extractor=lambda value: "k").to_stream().to("out")
        return builder

    records = [("B", "b4", 4), ("A", "a4", 4), ("A", "a1", 1), ("B", "b1", 1)]

    assert run(build(versioned("a"), versioned("b")), *records) == [("a4+b4", 4)]
    assert run(build(versioned("a"), "b"), *records) == [("a4+b4", 4), ("a4+b1", 1)]
    assert run(build("a", versioned("b")), *records) == [("a4+b4", 4), ("a1+b4", 4)]


# Joins of streams with tables


def stream_table(
    join: str = "join", derive: Callable[[KTable[Any, Any]], KTable[Any, Any]] | None = None, **joined_by: Any
) -> StreamsBuilder:
    builder = StreamsBuilder()
    table = builder.table("T", materialized=versioned("t"))
    table = table if derive is None else derive(table)
    getattr(builder.stream("S"), join)(table, both, joined=Joined(**joined_by)).to("out")
    return builder


def test_a_stream_is_joined_with_the_row_of_its_time() -> None:
    records = [("T", "t10", 10), ("T", "t20", 20), ("S", "s15", 15), ("S", "s20", 20), ("S", "s9", 9)]

    assert run(stream_table(), *records) == [("s15+t10", 15), ("s20+t20", 20)]
    assert run(stream_table("left_join"), *records) == [("s15+t10", 15), ("s20+t20", 20), ("s9+None", 9)]


def test_a_row_whose_history_has_expired_is_none() -> None:
    records = [("T", "t10", 10), ("T", "t20", 20), ("T", "t200", 200), ("S", "s15", 15), ("S", "s99", 99)]

    assert run(stream_table(), *records) == []
    assert run(stream_table("left_join"), *records) == [("s15+None", 15), ("s99+None", 99)]


def test_what_is_computed_from_a_versioned_table_is_versioned() -> None:
    records = [("T", "t10", 10), ("T", "t20", 20), ("S", "s15", 15)]

    assert run(stream_table(derive=lambda table: table.map_values(str.upper)), *records) == [("s15+T10", 15)]
    assert run(stream_table(derive=lambda table: table.filter(lambda k, v: v != "t20")), *records) == [("s15+t10", 15)]


def test_a_store_that_is_not_versioned_ends_it() -> None:
    records = [("T", "t10", 10), ("T", "t20", 20), ("S", "s15", 15)]
    for derive in (
        lambda table: table.map_values(str.upper, materialized="upper"),
        lambda table: table.map_values(str.upper).to_stream().to_table(),
    ):
        assert run(stream_table(derive=derive), *records) == [("s15+T20", 15)]
    kept = stream_table(derive=lambda table: table.to_stream().to_table(materialized=versioned("kept")))
    assert run(kept, *records) == [("s15+t10", 15)]


def test_with_grace_records_wait_for_the_table() -> None:
    records = [("T", "t10", 10), ("S", "s15", 15), ("T", "t14", 14), ("S", "s25", 25), ("S", "s14", 14)]

    assert run(stream_table(grace_period=10), *records) == [("s15+t14", 15), ("s14+t14", 14)]


def test_the_grace_must_not_be_longer_than_the_history() -> None:
    with pytest.raises(
        ValueError,
        match=r"KSTREAM-JOIN-\d+ has a grace period of 101 ms and joins KTABLE-SOURCE-\d+, whose store keeps its "
        "history for 100 ms only",
    ):
        stream_table(grace_period=101)


@pytest.mark.parametrize(
    "derive",
    [
        lambda table: table.filter(lambda k, v: True, materialized="kept"),
        lambda table: table.filter(lambda k, v: True, materialized=Materialized(value_serde=Serdes.string())),
        lambda table: table.join(table, both),
        lambda table: table.group_by(lambda k, v: (k, v)).reduce(both, both),
    ],
)
def test_grace_is_refused_where_the_table_is_no_longer_versioned(derive: Any) -> None:
    with pytest.raises(ValueError, match="which is not versioned; leave grace_period away"):
        stream_table(derive=derive, grace_period=5)


# Filters and groups


@pytest.mark.parametrize("send_old", [False, True])
def test_a_filter_of_a_versioned_table_keeps_duplicate_deletions(send_old: bool) -> None:
    builder = StreamsBuilder()
    table = builder.table("A", materialized=versioned("a")).filter(lambda k, v: True)
    if send_old:
        table._table.logic.send_old_values(force=True)
    table.to_stream().to("out")
    records = [("A", "v1", 1), ("A", None, 2), ("A", None, 4), ("A", "v2", 3)]

    assert run(builder, *records) == [("v1", 1), (None, 2), (None, 4), ("v2", 3)]


def test_a_filter_of_another_table_leaves_duplicate_deletions_out() -> None:
    builder = StreamsBuilder()
    source: KTable[str, str] = builder.table("A", materialized="a")
    table = source.filter(lambda k, v: True)
    table._table.logic.send_old_values(force=True)
    table.to_stream().to("out")

    assert run(builder, ("A", "v1", 1), ("A", None, 2), ("A", None, 4)) == [("v1", 1), (None, 2)]


@pytest.mark.parametrize(
    ("store", "result"),
    [("a", [("+v1", 1), ("+v1-v1+v2", 10), ("+v1-v1+v2-v2+v3", 10)]), (None, [("+v1", 1), ("+v1-v1+v2", 10)])],
    ids=["unversioned", "versioned"],
)
def test_groups_of_a_versioned_table_leave_late_records_out(store: str | None, result: list[Row]) -> None:
    builder = StreamsBuilder()
    table: KTable[Any, Any] = builder.table("A", materialized=versioned("a") if store is None else store)
    table.group_by(lambda k, v: (k, v)).aggregate(
        lambda: "", lambda k, v, total: f"{total}+{v}", lambda k, v, total: f"{total}-{v}"
    ).to_stream().to("out")

    assert run(builder, ("A", "v1", 1), ("A", "v2", 10), ("A", "v3", 5)) == result


def test_an_aggregate_can_be_versioned() -> None:
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("S")
    stream.group_by_key().reduce(both, materialized=versioned("sums")).to_stream().to("out")
    with TopologyTestDriver(builder.build(), CONFIG) as driver:
        topic = driver.create_input_topic("S", Serdes.string(), Serdes.string())
        for value, time in (("a", 10), ("b", 20), ("c", 15)):
            topic.pipe_input("k", value, timestamp=time)
        store = driver.get_versioned_key_value_store("sums")
        assert store is not None
        with store.get("k", None, None) as records:
            found = [(record.value, record.timestamp) for record in records]

    assert found == [("a+b+c", 20), ("a", 10)]


def test_a_record_that_was_not_put_is_not_forwarded() -> None:
    builder = StreamsBuilder()
    table = builder.table("A", materialized=versioned("a"))
    table.to_stream().to("out")

    assert run(builder, ("A", "v1", 1), ("A", "v200", 200), ("A", "v99", 99), ("A", "v100", 100)) == [
        ("v1", 1),
        ("v200", 200),
        ("v100", 100),
    ]


# What is refused, and what is created


@pytest.mark.parametrize("derive", [lambda table: table, lambda table: table.map_values(str.upper)])
def test_a_versioned_table_cannot_be_suppressed(derive: Any) -> None:
    table = derive(StreamsBuilder().table("A", materialized=versioned("a")))

    with pytest.raises(TopologyError, match="is a versioned table and cannot be suppressed: its changes may be older"):
        table.suppress(Suppressed.until_time_limit(5, BufferConfig.UNBOUNDED))


def test_a_global_table_cannot_be_versioned() -> None:
    with pytest.raises(TopologyError, match="global table of 'G' is given the versioned store 'g'; it cannot be"):
        StreamsBuilder().global_table("G", materialized=versioned("g"))


def test_a_versioned_table_has_no_cache_whatever_was_asked_for() -> None:
    builder = StreamsBuilder()
    supplier = Stores.persistent_versioned_key_value_store("a", 5)
    builder.table("A", materialized=Materialized(supplier, caching=True))

    assert builder.build().plan(CONFIG).whole.stores["a"].caching is False


def test_its_changelog_is_compacted_a_day_after_the_history() -> None:
    builder = StreamsBuilder()
    builder.table("A", materialized=versioned("a"))
    given = versioned("b").replace(topic_config={"min.compaction.lag.ms": "7"})
    builder.table("B", materialized=given)
    parts = builder.build().plan(CONFIG).subtopologies

    assert [part.changelog_topics[f"app-{name}-changelog"].config for part, name in zip(parts, "ab", strict=True)] == [
        {
            "cleanup.policy": "compact",
            "message.timestamp.type": "CreateTime",
            "min.compaction.lag.ms": str(24 * 60 * 60 * 1000 + HISTORY),
        },
        {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime", "min.compaction.lag.ms": "7"},
    ]


def test_the_driver_gives_versioned_stores_and_no_others_of_that_kind() -> None:
    builder = StreamsBuilder()
    builder.table("A", materialized=versioned("a"))
    builder.table("B", materialized="b")
    with TopologyTestDriver(builder.build(), CONFIG) as driver:
        driver.create_input_topic("A", Serdes.string(), Serdes.string()).pipe_input("k", "v", timestamp=3)
        store = driver.get_versioned_key_value_store("a")
        rows = [(row.key, row.value, row.timestamp, row.valid_to) for row in driver.raw_store("a")]

        assert store is not None
        assert store["k"] == "v"
        assert rows == [(b"k", b"v", 3, None)]
        assert driver.get_versioned_key_value_store("nothing") is None
        with pytest.raises(ValueError, match=r"store 'b' is a .*, no VersionedKeyValueStore"):
            driver.get_versioned_key_value_store("b")
        with pytest.raises(ValueError, match="store 'a' is a MeteredVersionedStore, no KeyValueStore"):
            driver.get_key_value_store("a")
