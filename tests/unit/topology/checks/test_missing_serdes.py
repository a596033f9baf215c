"""Serdes that nobody gives are found in the plan: of sources, sinks and stores, global ones included."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams import (
    Consumed,
    ContextualProcessor,
    JoinWindows,
    KeyValue,
    Materialized,
    Produced,
    Serdes,
    Stores,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
)
from pykstreams.core.errors import ConfigError
from pykstreams.state import StateStore, StoreBuilder, StoreSupplier
from pykstreams.topology.checks.missing_serdes import check_serdes

TEXT = Serdes.string()
READ = Consumed(key_serde=TEXT, value_serde=TEXT)


def said(builder: StreamsBuilder, **settings: object) -> list[str]:
    """What lacks a key serde and what lacks a value serde, as far as it is the steps that are named."""
    config = StreamsConfig(application_id="shop", **settings)
    plan = builder.build(config).plan(config)
    try:
        check_serdes(plan, config)
    except ConfigError as error:
        return [line.partition(" and none is set")[0] for line in str(error).splitlines()]
    return []


def test_nothing_is_said_where_all_is_given() -> None:
    builder = StreamsBuilder()
    builder.stream("in", READ).group_by_key().count(materialized=Materialized("counts")).to_stream().to("out")

    assert said(builder) == []


def test_sources_and_sinks_are_named_with_topics_of_the_user_and_the_cure() -> None:
    builder = StreamsBuilder()
    source: Consumed[str, str] = Consumed(key_serde=TEXT)
    builder.stream(["a", "b"], source).to("out", Produced(value_serde=TEXT))
    config = StreamsConfig(application_id="shop")

    with pytest.raises(ConfigError) as raised:
        check_serdes(builder.build(config).plan(config), config)

    assert str(raised.value) == (
        "KSTREAM-SOURCE-0000000000 (topic 'a', 'b') needs a value serde and none is set; give a type or a serde "
        "as value_serde in the options of the step (Consumed, Produced, Grouped, Materialized), annotate the function "
        "before it, or set 'default.value.serde'"
    )
    assert said(builder, default_value_serde=TEXT) == []


def test_a_global_table_is_looked_at() -> None:
    builder = StreamsBuilder()
    builder.global_table("names", Consumed(key_serde=TEXT), materialized=Materialized("rows"))

    assert said(builder) == ["KSTREAM-SOURCE-0000000000 (topic 'names') and store 'rows' need a value serde"]


def test_both_value_serdes_of_a_join_that_waits_are_wanted() -> None:
    builder = StreamsBuilder()
    left, right = builder.stream("left", READ), builder.stream("right", READ)
    joined: StreamJoined[Any, Any, Any] = StreamJoined(key_serde=TEXT, value_serde=TEXT, store_name="pairs")
    left.outer_join(right, KeyValue, windows=JoinWindows(10, grace=0), stream_joined=joined)

    (line,) = said(builder)

    assert "store 'pairs-outer-shared-join-store'" in line
    assert line.endswith("need a value serde")


class Shelf(StateStore):
    """A store of a user, which reads and writes as it likes."""


class ShelfSupplier(StoreSupplier[Any]):
    name = "shelf"
    metrics_scope = "shelf"

    def get(self) -> Any:
        raise AssertionError("nothing is made")


def test_a_store_of_the_processor_api_is_looked_at_and_one_that_a_user_wrote_is_not() -> None:
    builder = StreamsBuilder()
    builder.add_state_store(Stores.key_value_store_builder(Stores.in_memory_key_value_store("seen"), TEXT))
    builder.add_state_store(StoreBuilder(ShelfSupplier()))

    class Look(ContextualProcessor[Any, Any, Any, Any]):
        def process(self, record: Any) -> None:
            raise AssertionError("nothing runs")

    builder.stream("in", READ).process(Look, "seen", "shelf")

    assert said(builder) == ["store 'seen' needs a value serde"]
