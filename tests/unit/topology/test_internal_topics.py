"""Names of topics that an application owns are made of those of stores and steps, and must be names of topics."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams import Grouped, Materialized, Processor, Record, Stores, StreamsBuilder, StreamsConfig, Topology
from pykstreams.errors import TopologyError

CONFIG = StreamsConfig({"application.id": "shop"})
LONGEST = 249


def counting(store: str, *, logging: bool = True) -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count(materialized=Materialized(store, logging=logging))
    return builder.build()


def test_a_changelog_may_have_the_longest_name() -> None:
    store = "x" * (LONGEST - len("shop--changelog"))

    (topic,) = counting(store).plan(CONFIG).internal_topics

    assert len(topic.name) == LONGEST


def test_a_changelog_whose_name_is_too_long_is_refused() -> None:
    store = "x" * (LONGEST - len("shop--changelog") + 1)

    with pytest.raises(TopologyError, match=r"changelog topic 'shop-x+-changelog' has 250 characters; at most 249"):
        counting(store).plan(CONFIG)


def test_a_store_without_changelog_may_have_any_name() -> None:
    assert counting("x" * LONGEST, logging=False).plan(CONFIG).internal_topics == ()


def test_a_repartition_topic_whose_name_is_too_long_is_refused() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by(lambda k, v: v, Grouped(name="x" * 240)).count(materialized="s")

    with pytest.raises(TopologyError, match=r"repartition topic 'shop-x+-repartition' has 257 characters"):
        builder.build().plan(CONFIG)


class Ends(Processor[Any, Any, Any, Any]):
    def process(self, record: Record[Any, Any]) -> None:
        """Hands nothing on."""


def test_a_store_whose_changelog_cannot_be_named_after_it_is_refused() -> None:
    topology = Topology().add_source("source", "in").add_processor("processor", Ends, "source")
    topology.add_state_store(Stores.key_value_store_builder(Stores.in_memory_key_value_store("a b")), "processor")

    with pytest.raises(TopologyError, match="changelog topic 'shop-a b-changelog' has characters other than"):
        topology.plan(CONFIG)
