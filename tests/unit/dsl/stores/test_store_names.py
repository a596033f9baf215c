"""A store name is taken once: which of two stores of one name are one store, and which are refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pykstreams import (
    Grouped,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    Processor,
    Record,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    ValueTransformerWithKey,
)
from pykstreams.errors import TopologyError

CONFIG = StreamsConfig({"application.id": "app"})
DAY = timedelta(days=1)

MATERIALIZED: dict[str, Callable[[], Materialized[Any, Any]]] = {
    "name": lambda: Materialized("x"),
    "supplier": lambda: Materialized(Stores.in_memory_key_value_store("x")),
    "versioned": lambda: Materialized(Stores.persistent_versioned_key_value_store("x", DAY)),
}


class Unchanged(ValueTransformerWithKey[Any, Any, Any]):
    def transform(self, key: Any, value: Any) -> Any:
        return value


def added(key: Any, value: Any, aggregate: Any) -> Any:
    return value


def stream(builder: StreamsBuilder, topic: str) -> KStream[Any, Any]:
    return builder.stream(topic)


def table(builder: StreamsBuilder, topic: str) -> KTable[Any, Any]:
    return builder.table(topic)


MAKERS: dict[str, Callable[[StreamsBuilder, str, Materialized[Any, Any]], object]] = {
    "table": lambda b, t, m: b.table(t, materialized=m),
    "to_table": lambda b, t, m: stream(b, t).to_table(materialized=m),
    "filter": lambda b, t, m: table(b, t).filter(lambda k, v: True, materialized=m),
    "map_values": lambda b, t, m: table(b, t).map_values(str, materialized=m),
    "transform_values": lambda b, t, m: table(b, t).transform_values(Unchanged, materialized=m),
    "join": lambda b, t, m: table(b, t).join(table(b, f"{t}-other"), max, materialized=m),
    "foreign_key_join": lambda b, t, m: table(b, t).join(
        table(b, f"{t}-other"), max, foreign_key_extractor=str, materialized=m
    ),
    "reduce": lambda b, t, m: stream(b, t).group_by_key().reduce(max, materialized=m),
    "count": lambda b, t, m: stream(b, t).group_by_key().count(materialized=m),
    "count_of_table": lambda b, t, m: table(b, t).group_by(lambda k, v: (v, k), Grouped(name=t)).count(materialized=m),
    "cogroup": lambda b, t, m: stream(b, t).group_by_key().cogroup(added).aggregate(str, materialized=m),
}

WINDOWED_MAKERS: dict[str, Callable[[StreamsBuilder, str], object]] = {
    "time": lambda b, t: stream(b, t).group_by_key().windowed_by(TimeWindows(10)).count(materialized="x"),
    "sliding": lambda b, t: stream(b, t).group_by_key().windowed_by(SlidingWindows(10)).count(materialized="x"),
    "session": lambda b, t: stream(b, t).group_by_key().windowed_by(SessionWindows(10)).count(materialized="x"),
    "cogrouped": lambda b, t: (
        stream(b, t).group_by_key().cogroup(added).windowed_by(TimeWindows(10)).aggregate(str, materialized="x")
    ),
}


def refused() -> Any:
    return pytest.raises(TopologyError, match="a different store named 'x' has already been added")


@pytest.mark.parametrize("kind", MATERIALIZED)
@pytest.mark.parametrize("make", MAKERS)
def test_two_tables_of_one_kind_cannot_have_one_store(make: str, kind: str) -> None:
    builder = StreamsBuilder()
    MAKERS[make](builder, "in", MATERIALIZED[kind]())
    MAKERS[make](builder, "in2", MATERIALIZED[kind]())

    with refused():
        builder.build()


@pytest.mark.parametrize("make", MAKERS)
def test_a_table_and_one_read_from_a_topic_cannot_have_one_store(make: str) -> None:
    builder = StreamsBuilder()
    builder.table("in", materialized="x")
    MAKERS[make](builder, "in2", Materialized("x"))

    with refused():
        builder.build()


@pytest.mark.parametrize("make", WINDOWED_MAKERS)
def test_two_windowed_tables_cannot_have_one_store(make: str) -> None:
    builder = StreamsBuilder()
    WINDOWED_MAKERS[make](builder, "in")
    WINDOWED_MAKERS[make](builder, "in2")

    with refused():
        builder.build()


def test_one_materialized_object_for_two_tables_is_refused() -> None:
    builder, given = StreamsBuilder(), Materialized[Any, Any]("x")
    builder.table("in", materialized=given)
    builder.table("in2", materialized=given)

    with refused():
        builder.build()


def test_two_joins_of_streams_cannot_have_one_store() -> None:
    builder = StreamsBuilder()
    for number in range(2):
        stream(builder, f"left{number}").join(
            stream(builder, f"right{number}"),
            max,
            windows=JoinWindows(10),
            stream_joined=StreamJoined(name=f"join{number}", store_name="x"),
        )

    with pytest.raises(TopologyError, match="a different store named 'x-this-join-store' has already been added"):
        builder.build()


def test_a_store_of_a_processor_cannot_be_that_of_a_table() -> None:
    builder = StreamsBuilder()
    builder.table("in", materialized="x")
    builder.add_state_store(Stores.timestamped_key_value_store_builder(Stores.persistent_key_value_store("x")))

    with refused():
        builder.build()


def test_equal_builders_are_refused_as_two_stores_of_one_name() -> None:
    builder, supplier = StreamsBuilder(), Stores.in_memory_key_value_store("x")
    for _ in range(2):
        builder.add_state_store(Stores.key_value_store_builder(supplier))

    with refused():
        builder.build()


class UsesStore(Processor[Any, Any, Any, Any]):
    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


class BringsStore:
    def __init__(self, store: Any) -> None:
        self.store = store

    def __call__(self) -> UsesStore:
        return UsesStore()

    def stores(self) -> list[Any]:
        return [self.store]


def test_one_builder_may_be_added_and_brought_several_times() -> None:
    builder, store = StreamsBuilder(), Stores.key_value_store_builder(Stores.in_memory_key_value_store("x"))
    builder.add_state_store(store)
    builder.add_state_store(store)
    for topic in ("in", "in2"):
        stream(builder, topic).process(BringsStore(store), name=f"of-{topic}")

    assert str(builder.build().describe()).count("(stores: [x])") == 2


def test_suppliers_cannot_bring_equal_builders() -> None:
    builder = StreamsBuilder()
    for topic in ("in", "in2"):
        store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("x"))
        stream(builder, topic).process(BringsStore(store), name=f"of-{topic}")

    with refused():
        builder.build()


def test_the_aggregations_of_a_cogrouped_stream_share_their_store() -> None:
    builder = StreamsBuilder()
    cogrouped = stream(builder, "in").group_by_key().cogroup(added)
    cogrouped.cogroup(stream(builder, "in2").group_by_key(), added).aggregate(str, materialized="x")

    assert list(builder.build().plan(CONFIG).whole.stores) == ["x"]


def test_two_stores_of_one_name_are_told_with_their_steps_and_the_topics_that_these_come_from() -> None:
    builder = StreamsBuilder()
    builder.table("users", str, str, materialized="x")
    builder.stream("clicks", str, str).filter(lambda user, page: page != "/").group_by_key().count(materialized="x")

    with pytest.raises(TopologyError) as raised:
        builder.build()

    assert str(raised.value) == (
        "Invalid topology: a different store named 'x' has already been added, for KTABLE-SOURCE-0000000001 (below "
        "users), and another is for KSTREAM-AGGREGATE-0000000004 (below clicks); give one of the two another name, or "
        "both the same builder object if processors are to share the store"
    )
