"""Topics that are joined by key need equal partition counts: who gives way, and what is said where nobody can."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams import Grouped, JoinWindows, KStream, Materialized, Repartitioned, StreamsBuilder, StreamsConfig
from pykstreams.errors import TopologyError
from pykstreams.runtime.topics.copartitioning import check_copartitioning, enforce_copartitioning
from pykstreams.testing import TopologyTestDriver
from pykstreams.topology.plan import SubtopologyPlan

CONFIG = StreamsConfig({"application.id": "shop"})


def joined(left: Any, right: Any) -> None:
    left.join(right, lambda a, b: a + b, windows=JoinWindows(5))


def last_part(builder: StreamsBuilder) -> SubtopologyPlan:
    return builder.build().plan(CONFIG).subtopologies[-1]


def refused(builder: StreamsBuilder, counts: dict[str, int]) -> str:
    part = last_part(builder)
    enforce_copartitioning(part, counts)
    with pytest.raises(TopologyError) as raised:
        check_copartitioning(part, counts)
    return str(raised.value)


def test_two_topics_are_named_with_both_counts_and_the_cure() -> None:
    builder = StreamsBuilder()
    joined(builder.stream("orders"), builder.stream("payments"))

    assert refused(builder, {"orders": 6, "payments": 4}) == (
        "Invalid topology: KSTREAM-SOURCE-0000000000 (orders, 6 partitions) and KSTREAM-SOURCE-0000000001 (payments, 4 "
        "partitions) are joined or merged by key and need equal partition counts; call "
        ".repartition(Repartitioned(num_partitions=4)) on the stream of 'orders', or recreate 'payments' with 6 "
        "partitions"
    )


@pytest.mark.parametrize("topics", [("orders",), ("orders", "returns")])
def test_a_topic_that_is_read_a_second_time_is_checked_as_at_the_first(topics: tuple[str, ...]) -> None:
    builder = StreamsBuilder()
    builder.stream(topics).print()
    joined(builder.stream(reversed(topics)), builder.stream("payments"))

    assert "(orders, 6 partitions) and KSTREAM-SOURCE-0000000003 (payments, 4 partitions)" in refused(
        builder, {"orders": 6, "returns": 5, "payments": 4}
    )


@pytest.mark.parametrize("time_to_live", [None, 1000])
@pytest.mark.parametrize(("orders", "customers"), [(6, 4), (2, 4)])
def test_the_cure_repartitions_the_stream_and_never_the_table(
    orders: int, customers: int, time_to_live: int | None
) -> None:
    builder = StreamsBuilder()
    kept: Materialized[Any, Any] = Materialized(time_to_live=time_to_live)
    builder.stream("orders").join(builder.table("customers", materialized=kept), lambda a, b: a + b)

    assert f"num_partitions={customers})) on the stream of 'orders', or recreate 'customers' with {orders}" in refused(
        builder, {"orders": orders, "customers": customers}
    )


def test_a_repartition_topic_with_a_number_of_its_own_is_told_the_other_number() -> None:
    builder = StreamsBuilder()
    joined(builder.stream("orders").repartition(Repartitioned(name="by-id", num_partitions=3)), builder.stream("paid"))

    assert refused(builder, {"shop-by-id-repartition": 3, "paid": 8}).endswith(
        "set num_partitions=8 in the Repartitioned that makes 'shop-by-id-repartition', or leave it out there"
    )


def test_a_side_whose_keys_have_changed_takes_the_number_of_the_other_side() -> None:
    builder = StreamsBuilder()
    joined(builder.stream("orders").select_key(lambda k, v: v, name="by-id"), builder.stream("paid"))
    part = last_part(builder)
    counts = {"shop-by-id-repartition": 3, "paid": 8}

    enforce_copartitioning(part, counts)
    check_copartitioning(part, counts)

    assert counts == {"shop-by-id-repartition": 8, "paid": 8}


def test_of_two_sides_whose_keys_have_changed_the_larger_number_counts() -> None:
    builder = StreamsBuilder()
    joined(
        builder.stream("orders").select_key(lambda k, v: v, name="left"),
        builder.stream("paid").select_key(lambda k, v: v, name="right"),
    )
    counts = {"shop-left-repartition": 3, "shop-right-repartition": 5}

    enforce_copartitioning(last_part(builder), counts)

    assert counts == {"shop-left-repartition": 5, "shop-right-repartition": 5}


def one_to_many(one: Any, many: Any) -> None:
    one.one_to_many_join(many, lambda a, b: a, key_extractor=lambda value: value, name="many")


def test_repartitioned_rows_have_as_many_partitions_as_the_topic_of_the_rows_they_refer_to() -> None:
    builder = StreamsBuilder()
    one_to_many(builder.table("customers"), builder.table("orders"))
    (part,) = (part for part in builder.build().plan(CONFIG).subtopologies if "customers" in part.source_topics)
    counts = {"customers": 3, "shop-many-repartition": 8}

    enforce_copartitioning(part, counts)

    assert counts == {"customers": 3, "shop-many-repartition": 3}


def test_repartitioned_rows_decide_where_the_rows_they_refer_to_come_from_a_repartition_topic() -> None:
    builder = StreamsBuilder()
    visits: KStream[str, str] = builder.stream("visits")
    grouped = visits.select_key(lambda k, v: v).group_by_key(Grouped(name="by-page"))
    one_to_many(grouped.count(), builder.table("orders"))
    (part,) = (p for p in builder.build().plan(CONFIG).subtopologies if "shop-many-repartition" in p.source_topics)
    counts = {"shop-by-page-repartition": 8, "shop-many-repartition": 3}

    enforce_copartitioning(part, counts)

    assert counts == {"shop-by-page-repartition": 3, "shop-many-repartition": 3}


def test_unequal_numbers_in_the_script_are_refused_when_it_is_built() -> None:
    builder = StreamsBuilder()
    joined(
        builder.stream("a").repartition(Repartitioned(name="l", num_partitions=2)),
        builder.stream("b").repartition(Repartitioned(name="r", num_partitions=3)),
    )

    with pytest.raises(TopologyError) as raised:
        builder.build()

    assert str(raised.value) == (
        "Invalid topology: the topics l-repartition (2 partitions), r-repartition (3 partitions) are joined or merged "
        "by key and need equal partition counts; give the same num_partitions to each Repartitioned"
    )


def test_the_test_driver_refuses_unequal_counts_when_it_has_partitions() -> None:
    builder = StreamsBuilder()
    joined(builder.stream("orders").repartition(Repartitioned(name="by-id", num_partitions=3)), builder.stream("paid"))
    topology = builder.build()

    with pytest.raises(TopologyError, match="by-id-repartition, 3 partitions"):
        TopologyTestDriver(topology, partitions=2)
