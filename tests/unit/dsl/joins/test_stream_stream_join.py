"""Joins of two streams as scripts say them: what is refused, what is named and kept, what results come."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams import (
    BuiltInDslStoreSuppliers,
    Joined,
    JoinWindows,
    Serdes,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
)
from pykstreams.errors import StreamsError, TopologyError
from pykstreams.state import Stores
from pykstreams.testing import TopologyTestDriver

CONFIG = StreamsConfig(
    {"application.id": "shop", "default.key.serde": Serdes.string(), "default.value.serde": Serdes.string()}
)
WINDOWS = JoinWindows(5, grace=10)


def both(left: Any, right: Any) -> str:
    return f"{left}+{right}"


def streams() -> tuple[StreamsBuilder, Any, Any]:
    builder = StreamsBuilder()
    return builder, builder.stream("a"), builder.stream("b")


def supplier(name: str = "mine", retention: int = 20, size: int = 10, duplicates: bool = True) -> Any:
    return Stores.in_memory_window_store(name, retention, size, duplicates)


def refused(**options: Any) -> str:
    _, left, right = streams()
    with pytest.raises(StreamsError) as raised:
        left.join(right, both, windows=WINDOWS, stream_joined=StreamJoined(**options))
    return str(raised.value)


def results(builder: StreamsBuilder, records: list[tuple[str, str, str, int]]) -> list[Any]:
    with TopologyTestDriver(builder.build(), CONFIG) as driver:
        topics = {topic: driver.create_input_topic(topic) for topic in ("a", "b")}
        out = driver.create_output_topic("out")
        for topic, key, value, time in records:
            topics[topic].pipe_input(key, value, time)
        return [(record.key, record.value, record.timestamp) for record in out.read_records()]


def test_a_join_of_two_streams_needs_windows() -> None:
    _, left, right = streams()

    with pytest.raises(TypeError, match=r"needs windows, such as windows=JoinWindows\(timedelta\(minutes=5\)\)"):
        left.join(right, both)


def test_options_of_joins_with_tables_are_refused_for_streams() -> None:
    _, left, right = streams()

    with pytest.raises(TypeError, match=r"joined=Joined\(.*\) is given, and the other side of the join is a stream"):
        left.left_join(right, both, windows=WINDOWS, joined=Joined())


def test_options_of_joins_with_streams_are_refused_for_tables() -> None:
    builder, left, _ = streams()

    with pytest.raises(TypeError, match=r"windows=JoinWindows.* is given, and the other side of the join is a table"):
        left.join(builder.table("t"), both, windows=WINDOWS)


def test_a_table_is_not_joined_from_both_sides() -> None:
    builder, left, _ = streams()

    with pytest.raises(TypeError, match=r"the other side of an outer join is .*KTable.*; expected a KStream"):
        left.outer_join(builder.table("t"), both, windows=WINDOWS)


def test_something_else_is_no_side_of_a_join() -> None:
    with pytest.raises(TypeError, match="the other side of a join is 'b'; expected"):
        streams()[1].join("b", both, windows=WINDOWS)


def test_a_supplier_must_retain_duplicates() -> None:
    assert refused(this_store_supplier=supplier(duplicates=False)) == (
        "this_store_supplier 'mine' does not retain duplicates, so that records of one key and time would replace each "
        "other; make it with retain_duplicates=True"
    )


@pytest.mark.parametrize(("retention", "size"), [(21, 10), (20, 9)])
def test_a_supplier_must_have_the_lengths_of_the_join(retention: int, size: int) -> None:
    assert refused(other_store_supplier=supplier(retention=retention, size=size)) == (
        f"other_store_supplier 'mine' has a window size of {size} ms and a retention of {retention} ms, and "
        "JoinWindows(before_ms=5, after_ms=5, grace_period_ms=10) needs 10 ms (before + after) and 20 ms "
        "(before + after + grace); make the supplier with these"
    )


def test_both_suppliers_need_names_of_their_own() -> None:
    assert refused(this_store_supplier=supplier(), other_store_supplier=supplier()) == (
        "this_store_supplier and other_store_supplier are both named 'mine'; each side of a join keeps its own "
        "records, so give one of the two another name"
    )


def test_a_supplier_of_another_kind_of_store_is_refused() -> None:
    _, left, right = streams()
    options: Any = StreamJoined(this_store_supplier=Stores.in_memory_key_value_store("mine"))

    with pytest.raises(TypeError, match=r"this_store_supplier is .*; expected a supplier of a window store"):
        left.join(right, both, windows=WINDOWS, stream_joined=options)


def test_stores_without_names_are_refused_where_names_are_demanded() -> None:
    builder, left, right = streams()
    left.left_join(right, both, windows=WINDOWS)

    with pytest.raises(TopologyError, match=r"KSTREAM-OUTERSHARED-0000000004-store; .*StreamJoined"):
        builder.build({"ensure.explicit.internal.resource.naming": True})


def test_store_name_names_stores_and_changelogs() -> None:
    builder, left, right = streams()
    left.outer_join(right, both, windows=WINDOWS, stream_joined=StreamJoined(store_name="pairs"))
    plan = builder.build({"ensure.explicit.internal.resource.naming": True}).plan(CONFIG)

    assert {topic.name: topic.config["cleanup.policy"] for topic in plan.internal_topics} == {
        "shop-pairs-outer-this-join-store-changelog": "delete",
        "shop-pairs-outer-other-join-store-changelog": "delete",
        "shop-pairs-outer-shared-join-store-changelog": "compact",
    }


def test_two_joins_cannot_have_stores_of_one_name() -> None:
    builder, left, right = streams()
    for _ in range(2):
        left.join(right, both, windows=WINDOWS, stream_joined=StreamJoined(store_name="pairs"))

    with pytest.raises(TopologyError, match="a different store named 'pairs-this-join-store' has already been added"):
        builder.build()


def test_logging_off_leaves_no_changelog() -> None:
    builder, left, right = streams()
    left.outer_join(right, both, windows=WINDOWS, stream_joined=StreamJoined(logging=False, topic_config={"x": "y"}))

    assert builder.build().plan(CONFIG).internal_topics == ()


@pytest.mark.parametrize(
    ("options", "persistent"),
    [
        (StreamJoined(), True),
        (StreamJoined(dsl_store_suppliers=BuiltInDslStoreSuppliers.IN_MEMORY), False),
        (StreamJoined(this_store_supplier=supplier()), False),
        (
            StreamJoined(this_store_supplier=supplier(), dsl_store_suppliers=BuiltInDslStoreSuppliers.ROCKS_DB),
            True,
        ),
    ],
)
def test_what_waits_is_kept_as_asked_or_as_the_left_side_is(options: Any, persistent: bool) -> None:
    builder, left, right = streams()
    left.left_join(right, both, windows=WINDOWS, stream_joined=options)
    stores = builder.build().plan(CONFIG).whole.stores
    waiting = next(builder for name, builder in stores.items() if "SHARED" in name or "shared" in name)

    assert waiting.supplier.get().persistent is persistent


def test_a_stream_joined_with_itself_has_one_store_if_that_is_asked_for() -> None:
    builder, left, _ = streams()
    left.join(left, both, windows=WINDOWS)
    topology = builder.build({"topology.optimization": "single.store.self.join"})

    assert list(topology.plan(CONFIG).whole.stores) == ["KSTREAM-JOINTHIS-0000000004-store"]


def test_two_streams_of_one_topic_are_a_stream_joined_with_itself() -> None:
    builder = StreamsBuilder()
    builder.stream("a").join(builder.stream("a"), both, windows=WINDOWS)

    assert len(builder.build({"topology.optimization": "all"}).plan(CONFIG).whole.stores) == 1


def test_a_rekeyed_stream_goes_through_one_topic_for_several_joins() -> None:
    builder, left, right = streams()
    rekeyed = left.select_key(lambda key, value: value)
    rekeyed.join(right, both, windows=WINDOWS)
    rekeyed.join(right, both, windows=WINDOWS)
    plan = builder.build().plan(CONFIG)

    assert [topic.name for topic in plan.internal_topics if topic.kind == "repartition"] == [
        "shop-KSTREAM-KEY-SELECT-0000000002-repartition"
    ]
    assert plan.subtopologies[-1].copartition_groups == (
        frozenset({"shop-KSTREAM-KEY-SELECT-0000000002-repartition", "b"}),
    )


@pytest.mark.parametrize(("join", "expected"), [("join", []), ("left_join", [(None, "x+None", 3)])])
def test_a_null_key_passes_the_repartition_topic_of_a_left_join_only(join: str, expected: list[Any]) -> None:
    builder, left, right = streams()
    getattr(left.select_key(lambda key, value: None), join)(right, both, windows=WINDOWS).to("out")

    assert results(builder, [("a", "k", "x", 3)]) == expected


def test_the_result_of_a_record_without_partner_comes_when_its_window_is_closed() -> None:
    builder, left, right = streams()
    left.outer_join(right, both, windows=WINDOWS).to("out")

    assert results(builder, [("a", "k", "x", 3), ("b", "m", "y", 18), ("b", "m", "z", 19)]) == [("k", "x+None", 3)]


def test_joins_follow_joins() -> None:
    builder, left, right = streams()
    pairs = left.join(right, both, windows=WINDOWS)
    pairs.join(left, both, windows=WINDOWS).to("out")

    assert results(builder, [("a", "k", "x", 3), ("b", "k", "y", 5)]) == [("k", "x+y+x", 5)]
