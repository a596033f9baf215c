"""What the fluent layer refuses, and what it decides while the graph is built."""

from collections.abc import Callable
from typing import Any

import pytest

from pykstreams import (
    Branched,
    Consumed,
    Grouped,
    JoinWindows,
    KStream,
    Materialized,
    Named,
    Processor,
    Produced,
    Record,
    Repartitioned,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsConfig,
)
from pykstreams.errors import ConfigError, StreamsError, TopologyError
from pykstreams.state import StoreBuilder

CONFIG = StreamsConfig({"application.id": "app"})


def both(one: object, other: object) -> str:
    return f"{one}{other}"


def stores_of(builder: StreamsBuilder) -> set[str]:
    return set(builder.build().plan(CONFIG).whole.stores)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "x" * 250])
def test_illegal_names_are_refused(name: str) -> None:
    with pytest.raises(TopologyError):
        Named(name)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Consumed(name="a b"),
        lambda: Produced(name="a b"),
        lambda: Grouped(name="a b"),
        lambda: Repartitioned(name="a b"),
        lambda: Branched("a b"),
        lambda: Materialized("a b"),
        lambda: StreamsBuilder().stream("in").filter(lambda k, v: True, name="a b"),
    ],
)
def test_illegal_names_are_refused_where_they_are_given(make: Callable[[], object]) -> None:
    with pytest.raises(TopologyError, match="name 'a b' has characters other than"):
        make()


def test_a_name_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="name is 5; expected a str"):
        StreamsBuilder().stream("in").peek(print, name=5)  # type: ignore[arg-type]  # a number is no name


def test_two_nodes_of_one_name_are_refused() -> None:
    builder = StreamsBuilder()
    builder.stream("in").filter(lambda k, v: True, name="x").filter(lambda k, v: True, name="x")

    with pytest.raises(TopologyError, match="a node named 'x' has already been added"):
        builder.build()


def test_a_name_does_not_renumber_what_follows() -> None:
    def text(name: str | None) -> str:
        builder = StreamsBuilder()
        builder.stream("in").filter(lambda k, v: True, name=name).to("out")
        return str(builder.build().describe())

    assert "KSTREAM-SINK-0000000002" in text(None)
    assert "KSTREAM-SINK-0000000002" in text("kept")


def test_streams_of_one_topic_share_a_source() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("a")
    builder.stream("in").to("b")

    assert str(builder.build().describe()).count("Source:") == 1


def test_overlapping_topics_are_refused() -> None:
    builder = StreamsBuilder()
    builder.stream(["a", "b"])
    builder.stream(["b", "c"])

    with pytest.raises(TopologyError, match="read overlapping but not equal topics"):
        builder.build()


def test_one_topic_cannot_start_at_two_ends() -> None:
    builder = StreamsBuilder()
    builder.stream("a", Consumed(offset_reset_policy="earliest"))
    builder.stream("a", Consumed(offset_reset_policy="latest"))

    with pytest.raises(TopologyError, match="different offset reset policies"):
        builder.build()


def test_an_unknown_offset_reset_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="offset reset policy is 'newest'"):
        StreamsBuilder().stream("a", Consumed(offset_reset_policy="newest"))


def test_generated_names_are_refused_where_names_are_demanded() -> None:
    builder = StreamsBuilder({"ensure.explicit.internal.resource.naming": True})
    builder.stream("in").group_by(lambda k, v: v).count()

    with pytest.raises(TopologyError) as caught:
        builder.build()
    assert "state stores KSTREAM-AGGREGATE-STATE-STORE-0000000002" in str(caught.value)
    assert "repartition topics KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition" in str(caught.value)


def test_generated_names_are_refused_where_only_the_application_demands_names() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count()
    topology = builder.build()

    with pytest.raises(TopologyError, match="state stores KSTREAM-AGGREGATE-STATE-STORE-0000000001"):
        topology.plan(StreamsConfig({"application.id": "app", "ensure.explicit.internal.resource.naming": "true"}))


def test_names_given_everywhere_satisfy_that_demand() -> None:
    builder = StreamsBuilder({"ensure.explicit.internal.resource.naming": True})
    builder.stream("in").group_by(lambda k, v: v, Grouped(name="g")).count(materialized="c")

    assert "g-repartition" in str(builder.build().describe())


def test_a_table_keeps_a_store_only_if_something_needs_it() -> None:
    plain, named, grouped = StreamsBuilder(), StreamsBuilder(), StreamsBuilder()
    plain.table("t").to_stream().to("out")
    named.table("t", materialized="rows").to_stream().to("out")
    grouped.table("t").group_by(lambda k, v: (v, k)).count(materialized="n")

    assert stores_of(plain) == set()
    assert stores_of(named) == {"rows"}
    assert stores_of(grouped) == {"t-STATE-STORE-0000000000", "n"}


def test_a_mapped_table_makes_its_parent_keep_old_values_when_it_is_grouped() -> None:
    builder = StreamsBuilder()
    builder.table("t").map_values(str.upper).group_by(lambda k, v: (v, k)).count(materialized="n")

    assert stores_of(builder) == {"t-STATE-STORE-0000000000", "n"}


def test_a_table_can_be_restored_from_its_source_topic() -> None:
    builder = StreamsBuilder()
    builder.table("t", materialized="rows")
    plan = builder.build({"topology.optimization": "all"}).plan(CONFIG).whole

    assert dict(plan.changelogs) == {"rows": "t"}
    assert not plan.stores["rows"].logging
    assert dict(plan.changelog_topics) == {}


def test_an_unknown_optimization_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"topology\.optimization"):
        StreamsBuilder().build({"topology.optimization": "fast"})


def test_merging_repartition_topics_that_hang_below_one_node_says_what_to_do() -> None:
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("in")
    kept = stream.select_key(lambda k, v: v).filter(lambda k, v: True)
    kept.group_by_key().count()
    kept.group_by_key().count()

    with pytest.raises(StreamsError, match="cannot be merged into one repartition topic"):
        builder.build({"topology.optimization": "all"})


def test_unequal_partition_counts_that_are_known_are_refused_at_build_time() -> None:
    builder = StreamsBuilder()
    a: KStream[str, str] = builder.stream("a")
    b: KStream[str, str] = builder.stream("b")
    left = a.repartition(Repartitioned(name="l", num_partitions=2))
    right = b.repartition(Repartitioned(name="r", num_partitions=3))
    builder._graph.copartitioned.append(set(left._place.sources | right._place.sources))

    with pytest.raises(TopologyError, match=r"l-repartition \(2 partitions\), r-repartition \(3 partitions\)"):
        builder.build()


def test_a_repartition_topic_has_at_least_one_partition() -> None:
    with pytest.raises(ValueError, match="num_partitions is 0"):
        Repartitioned(num_partitions=0)


def test_a_branch_has_a_function_or_a_consumer() -> None:
    with pytest.raises(ValueError, match="branch 'x' has a function and a consumer"):
        Branched("x", function=lambda s: s, consumer=lambda s: None)


def test_a_supplier_cannot_be_combined_with_a_store_type() -> None:
    from pykstreams import BuiltInDslStoreSuppliers

    with pytest.raises(ValueError, match="a supplier brings its own"):
        Materialized(Stores.lru_map("x", 3), store_type=BuiltInDslStoreSuppliers.IN_MEMORY)


def test_options_can_be_copied_with_changes() -> None:
    grouped: Grouped[str, str] = Grouped(key_serde=Serdes.string(), name="a")

    assert grouped.replace(name="b") == Grouped(key_serde=Serdes.string(), name="b")


def test_building_twice_gives_the_same_topology() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to("out")

    assert builder.build() is builder.build()


@pytest.mark.parametrize(
    ("add", "named"),
    [
        (lambda builder, stream: stream.filter(lambda key, value: True), "KSTREAM-FILTER-"),
        (lambda builder, stream: stream.to("late"), "KSTREAM-SINK-"),
        (lambda builder, stream: stream.group_by_key().count(), "KSTREAM-AGGREGATE-"),
        (lambda builder, stream: builder.table("late"), "KTABLE-SOURCE-"),
        (lambda builder, stream: builder.global_table("late"), "KTABLE-SOURCE-"),
        (
            lambda builder, stream: builder.add_state_store(
                Stores.key_value_store_builder(Stores.in_memory_key_value_store("late"))
            ),
            "late",
        ),
    ],
)
def test_what_is_added_to_a_builder_that_has_been_built_is_refused(
    add: Callable[[StreamsBuilder, KStream[Any, Any]], object], named: str
) -> None:
    """It would be in no topology: the one that was built has its steps already."""
    builder = StreamsBuilder()
    stream = builder.stream("in", str, str)
    stream.to("out")
    topology = builder.build()

    with pytest.raises(TopologyError, match=rf"{named}\w* is added to a StreamsBuilder that has been built; .* build"):
        add(builder, stream)
    assert builder.build() is topology


def test_topology_that_was_refused_is_refused_again() -> None:
    builder = StreamsBuilder()
    builder.stream(["a", "b"]).to("out")
    builder.stream(["b", "c"]).to("out")

    for _ in range(2):
        with pytest.raises(TopologyError, match="read overlapping but not equal topics"):
            builder.build()


ONE_BUILDER = r" belongs to another StreamsBuilder; make all that is put together with one builder"


@pytest.mark.parametrize(
    "together",
    [
        lambda mine, theirs: mine.stream("a").merge(theirs.stream("b")),
        lambda mine, theirs: mine.stream("a").join(theirs.stream("b"), both, windows=JoinWindows(5)),
        lambda mine, theirs: mine.stream("a").left_join(theirs.table("b"), both),
        lambda mine, theirs: mine.stream("a").join(theirs.table("b"), both, key_selector=both),
        lambda mine, theirs: mine.stream("a").join(theirs.global_table("b"), both, key_selector=both),
        lambda mine, theirs: mine.table("a").outer_join(theirs.table("b"), both),
        lambda mine, theirs: mine.table("a").join(theirs.table("b"), both, foreign_key_extractor=str),
        lambda mine, theirs: mine.table("a").one_to_many_join(theirs.table("b"), both, key_extractor=str),
        lambda mine, theirs: (
            mine.stream("a")
            .group_by_key()
            .cogroup(lambda key, value, total: total)
            .cogroup(theirs.stream("b").group_by_key(), lambda key, value, total: total)
            .aggregate(str)
        ),
    ],
)
def test_streams_and_tables_of_two_builders_are_not_put_together(
    together: Callable[[StreamsBuilder, StreamsBuilder], object],
) -> None:
    with pytest.raises(TopologyError, match=ONE_BUILDER):
        together(StreamsBuilder(), StreamsBuilder())


def test_stores_that_a_supplier_makes_anew_at_each_call_are_added_once() -> None:
    class WithStore(Processor[str, str, str, str]):
        @staticmethod
        def stores() -> list[StoreBuilder[Any]]:
            return [Stores.key_value_store_builder(Stores.in_memory_key_value_store("own"))]

        def process(self, record: Record[str, str]) -> None:
            self.context.forward(record)

    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("in")
    stream.process(WithStore, name="p").to("out")

    assert "Processor: p (stores: [own])" in str(builder.build().describe())


def test_a_branch_that_is_not_there_is_an_error_that_tells_those_that_are() -> None:
    numbers = StreamsBuilder().stream("numbers", str, int)
    branches = numbers.split(name="to-").branch(lambda _, number: number > 0, "plus").default_branch("other")

    assert list(branches) == ["to-plus", "to-other"]
    with pytest.raises(KeyError, match=r"no branch is called 'plus'; there are 'to-plus', 'to-other': each name"):
        branches["plus"]
    assert branches.get("plus") is None


@pytest.mark.parametrize("names", [(None, None), ("one", "two")])
def test_a_stream_that_is_split_has_one_default_branch(names: tuple[str | None, str | None]) -> None:
    stream: KStream[Any, Any] = StreamsBuilder().stream("in")
    split = stream.split(name="s-")
    split.default_branch(names[0])

    with pytest.raises(TopologyError, match=r"s- has a default branch already, to which all other records go"):
        split.default_branch(names[1])


def test_no_branch_is_added_behind_the_default_branch() -> None:
    stream: KStream[Any, Any] = StreamsBuilder().stream("in")
    split = stream.split(name="s-")
    split.default_branch("rest")

    with pytest.raises(TopologyError, match=r"s- has a default branch already, .*; call branch before it$"):
        split.branch(lambda key, value: True, "late")


def test_a_branch_whose_function_returns_none_is_not_among_the_branches() -> None:
    stream: KStream[Any, Any] = StreamsBuilder().stream("in")

    branches = stream.split(name="s-").branch(lambda key, value: True, Branched("a", function=to_out)).default_branch()

    assert list(branches) == ["s-0"]


def to_out(stream: KStream[Any, Any]) -> None:
    stream.to("out")


def returning_text(stream: KStream[Any, Any]) -> Any:
    return "text"


def test_a_branch_whose_function_returns_no_stream_is_refused() -> None:
    stream: KStream[Any, Any] = StreamsBuilder().stream("in")

    with pytest.raises(TypeError, match=r"^function of branch 's-a' returned 'text'; expected a KStream, or None$"):
        stream.split(name="s-").branch(lambda key, value: True, Branched("a", function=returning_text))
