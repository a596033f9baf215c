"""Joins with tables and transformed tables as a user writes them: what is stored, named, repartitioned and refused."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams import (
    Joined,
    KStream,
    KTable,
    Materialized,
    Repartitioned,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    ValueTransformerWithKey,
)
from pykstreams.errors import StreamsError, TopologyError
from pykstreams.testing import TopologyTestDriver

CONFIG = StreamsConfig(
    {
        "application.id": "app",
        "default.key.serde": Serdes.string(),
        "default.value.serde": Serdes.string(),
        "statestore.cache.max.bytes": 0,
    }
)


def both(value: Any, other: Any) -> str:
    return f"{value}+{other}"


def stream_of(builder: StreamsBuilder, topic: str) -> KStream[str, str]:
    return builder.stream(topic)


def table_of(builder: StreamsBuilder, topic: str) -> KTable[str, str]:
    return builder.table(topic)


def stores_of(builder: StreamsBuilder) -> set[str]:
    return set(builder.build().plan(CONFIG).whole.stores)


def run(builder: StreamsBuilder, *records: tuple[str, Any, Any]) -> list[tuple[str | None, str | None, int | None]]:
    """What topic ``out`` gets when the records (topic, key, value) come, one a millisecond."""
    with TopologyTestDriver(builder.build(), CONFIG) as driver:
        for time, (topic, key, value) in enumerate(records):
            driver.create_input_topic(topic, Serdes.string(), Serdes.string()).pipe_input(key, value, timestamp=time)
        out = driver.create_output_topic("out", Serdes.string(), Serdes.string())
        return [(record.key, record.value, record.timestamp) for record in out.read_records()]


def stored_tables_of(derive: Any) -> set[str]:
    """The stores when a stream is joined with the table that ``derive`` makes of one read from a topic."""
    builder = StreamsBuilder()
    stream_of(builder, "in").join(derive(table_of(builder, "rows")), both).to("out")
    return stores_of(builder)


def test_join_gives_the_table_a_store_that_it_would_not_have() -> None:
    assert stored_tables_of(lambda table: table) == {"rows-STATE-STORE-0000000001"}


def test_join_with_a_computed_table_stores_what_it_is_computed_from() -> None:
    computed = stored_tables_of(lambda table: table.filter(lambda k, v: True).map_values(str))

    assert computed == {"rows-STATE-STORE-0000000001"}


def test_join_with_a_stored_table_leaves_the_table_above_without_a_store() -> None:
    assert stored_tables_of(lambda table: table.map_values(str, materialized="mapped")) == {"mapped"}


def test_join_of_a_stream_with_a_joined_table_reads_both_tables() -> None:
    def joined(table: KTable[Any, Any]) -> KTable[Any, Any]:
        return table.filter(lambda k, v: v != "x", materialized="no-x").join(table, both)

    assert stored_tables_of(joined) == {"no-x", "rows-STATE-STORE-0000000001"}


def test_stream_is_joined_with_a_table_that_is_computed_at_each_read() -> None:
    builder = StreamsBuilder()
    table = table_of(builder, "rows").map_values(str.upper)
    stream_of(builder, "in").left_join(table, both).to("out")

    assert run(builder, ("in", "a", "1"), ("rows", "a", "x"), ("in", "a", "2")) == [("a", "1+None", 0), ("a", "2+X", 2)]


def test_table_joined_with_itself_has_one_store_and_changes_twice() -> None:
    builder = StreamsBuilder()
    table = table_of(builder, "rows")
    table.join(table, both).to_stream().to("out")

    assert stores_of(builder) == {"rows-STATE-STORE-0000000000"}
    assert run(builder, ("rows", "a", "x")) == [("a", "x+x", 0), ("a", "x+x", 0)]


def test_table_joined_with_what_was_made_of_it_sees_its_new_row() -> None:
    builder = StreamsBuilder()
    table = table_of(builder, "rows")
    table.outer_join(table.filter(lambda k, v: v != "x"), both).to_stream().to("out")

    assert run(builder, ("rows", "a", "y"), ("rows", "a", "x")) == [
        ("a", "y+y", 0),
        ("a", "y+y", 0),
        ("a", "x+None", 1),
        ("a", "x+None", 1),
    ]


def test_unnamed_materialized_join_can_be_queried_by_a_generated_name() -> None:
    builder = StreamsBuilder()
    left, right = table_of(builder, "l"), table_of(builder, "r")
    joined = left.join(right, both, materialized=Materialized(caching=False))

    assert joined.queryable_store_name == "KTABLE-MERGE-STATE-STORE-0000000006"
    assert left.join(right, both).queryable_store_name is None


def test_name_of_a_table_join_names_its_three_steps() -> None:
    builder = StreamsBuilder()
    table_of(builder, "l").left_join(table_of(builder, "r"), both, name="joined").to_stream().to("out")

    names = set(builder.build().plan(CONFIG).whole.nodes)
    assert {"joined", "joined-join-this", "joined-join-other"} <= names


def test_join_of_a_table_with_something_else_is_refused() -> None:
    builder = StreamsBuilder()

    with pytest.raises(TypeError, match=r"a table is joined with .*; expected a KTable .* stream\.join\(table"):
        table_of(builder, "rows").join(stream_of(builder, "in"), both)  # type: ignore[call-overload]  # a stream is no table


def test_grace_period_needs_a_versioned_table() -> None:
    builder = StreamsBuilder()
    table: KTable[str, str] = builder.table("rows", materialized="rows")

    with pytest.raises(
        ValueError, match="grace period of 5 and joins KTABLE-SOURCE-0000000001, which is not versioned"
    ):
        stream_of(builder, "in").join(table, both, joined=Joined(grace_period=5))


def test_rekeyed_stream_is_repartitioned_under_the_name_of_the_join() -> None:
    builder = StreamsBuilder()
    stream = stream_of(builder, "in").select_key(lambda k, v: v)
    stream.join(table_of(builder, "rows"), both, joined=Joined(name="enriched")).to("out")

    (part, joined) = builder.build().plan(CONFIG).subtopologies
    assert part.sink_topics == ("app-enriched-repartition",)
    assert joined.copartition_groups == (frozenset({"app-enriched-repartition", "rows"}),)


@pytest.mark.parametrize(("left", "results"), [(True, [(None, "v+None", 0)]), (False, [])])
def test_record_that_loses_its_key_reaches_a_left_join_behind_a_repartition_topic(left: bool, results: Any) -> None:
    builder = StreamsBuilder()

    def no_key(key: str, value: str) -> Any:
        return None

    stream, table = stream_of(builder, "in").select_key(no_key), table_of(builder, "rows")
    (stream.left_join(table, both) if left else stream.join(table, both)).to("out")

    assert run(builder, ("in", "a", "v")) == results


def test_unequal_numbers_of_partitions_are_refused_with_both_topics() -> None:
    builder = StreamsBuilder()
    table = stream_of(builder, "rows").repartition(Repartitioned(name="rows", num_partitions=2)).to_table()
    stream = stream_of(builder, "in").repartition(Repartitioned(name="in", num_partitions=3))
    stream.join(table, both).to("out")

    with pytest.raises(TopologyError, match=r"in-repartition .*3 partitions.* rows-repartition .*2 partitions"):
        builder.build()


class Counting(ValueTransformerWithKey[str, str, str]):
    """Numbers the changes of each key in a store."""

    def transform(self, key: str, value: str | None) -> str:
        store = self.context.get_state_store("seen")
        number = store.get(key, 0) + 1
        store.put(key, number)
        return f"{value}{number}@{self.context.timestamp}"


class CountingWithStore:
    """A supplier that brings the store."""

    def __call__(self) -> Counting:
        return Counting()

    def stores(self) -> list[Any]:
        return [
            Stores.key_value_store_builder(Stores.in_memory_key_value_store("seen"), Serdes.string(), Serdes.long())
        ]


@pytest.mark.parametrize("provided", [True, False])
def test_transformer_has_the_stores_that_are_named_or_come_with_it(provided: bool) -> None:
    builder, supplier = StreamsBuilder(), CountingWithStore()
    table = table_of(builder, "rows")
    if provided:
        transformed = table.transform_values(supplier)
    else:
        builder.add_state_store(supplier.stores()[0])
        transformed = table.transform_values(Counting, "seen")
    transformed.to_stream().to("out")

    assert run(builder, ("rows", "a", "x"), ("rows", "a", None)) == [("a", "x1@0", 0), ("a", "None2@1", 1)]


def test_transformer_behind_a_join_has_no_store_of_its_own_table() -> None:
    builder = StreamsBuilder()
    transformed = table_of(builder, "rows").transform_values(CountingWithStore())
    stream_of(builder, "in").join(transformed, both).to("out")

    with pytest.raises(StreamsError, match="KSTREAM-JOIN-0000000005 has no access to store 'seen'"):
        run(builder, ("in", "a", "v"))


def test_transformed_table_with_a_store_is_read_there() -> None:
    builder = StreamsBuilder()
    transformed = table_of(builder, "rows").transform_values(CountingWithStore(), materialized="numbered")
    stream_of(builder, "in").join(transformed, both).to("out")

    assert run(builder, ("rows", "a", "x"), ("in", "a", "v"), ("in", "a", "w")) == [
        ("a", "v+x1@0", 1),
        ("a", "w+x1@0", 2),
    ]


def test_supplier_that_shares_its_transformer_is_refused() -> None:
    shared = Counting()

    with pytest.raises(ValueError, match="gave the same object twice"):
        table_of(StreamsBuilder(), "rows").transform_values(lambda: shared)


def test_supplier_of_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a ValueTransformerWithKey"):
        StreamsBuilder().table("rows").transform_values(dict)  # type: ignore[arg-type]
