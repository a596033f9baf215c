"""Global tables and stores in scripts: names, serdes, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams import Consumed, GlobalKTable, Joined, Materialized, Serdes, StreamsBuilder, TopologyError
from pykstreams.core.config import StreamsConfig
from pykstreams.core.windows import JoinWindows
from pykstreams.state import Stores
from tests.unit.user_processors import Put

TEXT, LONG = Serdes.string(), Serdes.long()
CONFIG = StreamsConfig({"application.id": "shop"})


@pytest.fixture
def builder() -> StreamsBuilder:
    return StreamsBuilder()


def test_only_a_named_store_can_be_queried(builder: StreamsBuilder) -> None:
    assert builder.global_table("one").queryable_store_name is None
    assert builder.global_table("two", materialized="rows").queryable_store_name == "rows"


def test_nodes_and_stores_are_named_as_those_of_tables(builder: StreamsBuilder) -> None:
    builder.global_table("one")
    builder.global_table("two", Consumed(name="mine"), materialized="rows")
    store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("kv"), TEXT, TEXT)
    builder.add_global_store(store, "three", Put)
    plans = builder.build().plan(CONFIG).global_stores

    assert [(one.source.name, one.processor.name, one.store.name) for one in plans] == [
        ("KSTREAM-SOURCE-0000000001", "KTABLE-SOURCE-0000000002", "one-STATE-STORE-0000000000"),
        ("mine-source", "mine", "rows"),
        ("KSTREAM-SOURCE-0000000005", "KTABLE-SOURCE-0000000006", "kv"),
    ]


@pytest.mark.parametrize(
    ("consumed", "materialized", "expected"),
    [
        (Consumed(key_serde=TEXT, value_serde=LONG), None, (TEXT, LONG)),
        (None, Materialized("rows", key_serde=TEXT, value_serde=LONG), (TEXT, LONG)),
        (Consumed(key_serde=LONG), Materialized("rows", key_serde=TEXT, value_serde=LONG), (LONG, None)),
        (None, None, (None, None)),
    ],
)
def test_serdes_are_those_of_consumed_or_else_of_the_store(
    builder: StreamsBuilder, consumed: Any, materialized: Any, expected: Any
) -> None:
    builder.global_table("one", consumed, materialized=materialized)
    (plan,) = builder.build().plan(CONFIG).global_stores

    assert (plan.store.key_serde, plan.store.value_serde) == expected
    read = [None if serde is None else serde.deserializer for serde in expected]
    assert [plan.source.key_deserializer, plan.source.value_deserializer] == read


def test_materialized_without_a_name_is_refused(builder: StreamsBuilder) -> None:
    with pytest.raises(ValueError, match=r"global table of 'one' is given .* without the name of a store; name it, or"):
        builder.global_table("one", materialized=Materialized(caching=False))


def test_versioned_store_is_refused(builder: StreamsBuilder) -> None:
    supplier = Stores.persistent_versioned_key_value_store("rows", 5)

    with pytest.raises(TopologyError, match="global table of 'one' is given the versioned store 'rows'; it cannot be"):
        builder.global_table("one", materialized=Materialized(supplier))


def test_generated_store_name_is_refused_where_names_must_be_given() -> None:
    builder = StreamsBuilder({"ensure.explicit.internal.resource.naming": True})
    builder.global_table("one")

    with pytest.raises(TopologyError, match="state stores one-STATE-STORE-0000000000; name them"):
        builder.build()


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (
            {},
            r"^a join with a global table needs key_selector=, a function of \(key, value\)",
        ),
        ({"windows": JoinWindows(5)}, r"^windows=.* the other side of the join is a global table; leave it out"),
        ({"joined": Joined()}, r"^joined=.* the other side of the join is a global table; leave it out"),
    ],
)
def test_join_with_options_that_do_not_fit_is_refused(builder: StreamsBuilder, option: Any, said: str) -> None:
    table: GlobalKTable[Any, Any] = builder.global_table("one")
    stream: Any = builder.stream("in")
    for join in (stream.join, stream.left_join):
        with pytest.raises(TypeError, match=said):
            join(table, min, **option)


def test_name_of_a_join_with_a_global_table_is_refused_for_a_table(builder: StreamsBuilder) -> None:
    stream: Any = builder.stream("in")
    with pytest.raises(TypeError, match="the other side of the join is a table; leave it out"):
        stream.join(builder.table("tab"), min, name="mine")


@pytest.mark.parametrize("option", [{"key_selector": max}, {"name": "mine"}])
def test_options_of_a_join_with_a_global_table_are_refused_for_a_stream(builder: StreamsBuilder, option: Any) -> None:
    stream: Any = builder.stream("in")
    with pytest.raises(TypeError, match="the other side of the join is a stream; leave it out"):
        stream.join(builder.stream("other"), min, windows=JoinWindows(5), **option)
