"""What readers are told of the stores of a topology."""

from __future__ import annotations

import pytest

from pykstreams import Materialized, Serdes, StreamsBuilder
from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.queries.catalog import described


@pytest.mark.parametrize(("optimization", "topic"), [("none", "shop-prices-changelog"), ("all", "in")])
def test_serdes_get_the_topic_from_which_a_store_is_restored(optimization: str, topic: str) -> None:
    serdes = {"default.key.serde": Serdes.string(), "default.value.serde": Serdes.string()}
    config = StreamsConfig({"application.id": "shop", "topology.optimization": optimization, **serdes})
    builder = StreamsBuilder()
    builder.table("in", materialized=Materialized("prices"))
    builder.stream("clicks").group_by_key().count(materialized=Materialized("counts", logging=False))
    builder.global_table("rates-by-day", materialized="rates")
    plan = builder.build(config).plan(config)

    expected = {"prices": topic, "counts": "shop-counts-changelog", "rates": "rates-by-day"}
    assert {name: plan.serde_topic(name) for name in expected} == expected
    assert {one.name: one.serde_topic for one in described(plan, config).values()} == expected
