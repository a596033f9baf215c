"""Global and read-only stores in a topology: what is refused, how they are described and drawn, and their plan."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pykstreams import Serdes, StreamsBuilder, Topology, TopologyError
from pykstreams.core.config import StreamsConfig
from pykstreams.state import Stores
from tests.unit.user_processors import Put

TEXT = Serdes.string()
CONFIG = StreamsConfig({"application.id": "shop", "statestore.cache.max.bytes": 0})


class Providing(Put):
    """Brings a store, which topologies do not add for a processor that feeds one."""

    @staticmethod
    def stores() -> list[Any]:
        return [builder("other")]


def builder(name: str = "kv", **options: Any) -> Any:
    return Stores.key_value_store_builder(Stores.in_memory_key_value_store(name), TEXT, TEXT, **options)


def with_global(**options: Any) -> Topology:
    return Topology().add_global_store(builder(**options), "source", "feed", "writer", Put)


def with_read_only(**options: Any) -> Topology:
    return Topology().add_read_only_state_store(builder(**options), "source", "feed", "writer", Put)


def add_reader(topology: Topology) -> Topology:
    return topology.add_source("in", "orders").add_processor("reader", Put, "in")


@pytest.mark.parametrize(
    ("add", "said"),
    [
        (lambda t: t.add_source("other", "feed"), "topic 'feed' of source 'other' is read by source 'source' already"),
        (lambda t: t.add_source("source", "x"), "a node named 'source' has already been added"),
        (lambda t: t.add_state_store(builder()), "a global store named 'kv' has already been added"),
        (lambda t: t.add_processor("p", Put, "source"), "'source' feeds a global store and nothing else, so it cannot"),
        (lambda t: t.add_sink("p", "x", "writer"), "'writer' feeds a global store .* context.get_state_store"),
        (
            lambda t: add_reader(t).connect_processor_and_state_stores("reader", "kv"),
            "global store 'kv' need not be connected to 'reader', and cannot be: any processor may read it",
        ),
        (
            lambda t: t.add_global_store(builder(), "s2", "x", "w2", Put),
            "a store named 'kv' has already been added; give one of the two another name",
        ),
        (
            lambda t: t.add_global_store(builder("k2"), "s2", "feed", "w2", Put),
            "topic 'feed' of source 's2' is read by source 'source' already",
        ),
        (
            lambda t: t.add_global_store(builder("k2"), "same", "x", "same", Put),
            "source and processor of global store 'k2' are both named 'same'",
        ),
        (lambda t: t.add_global_store(builder("k2"), "s2", "x", "writer", Put), "a node named 'writer' has already"),
    ],
)
def test_what_does_not_go_together_with_a_global_store_is_refused(add: Any, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        add(with_global())


def test_store_of_tasks_and_global_store_cannot_share_a_name() -> None:
    with pytest.raises(TopologyError, match="a store named 'kv' has already been added"):
        Topology().add_state_store(builder()).add_global_store(builder(), "s", "x", "w", Put)


def test_supplier_that_cannot_be_called_is_refused() -> None:
    for add in (Topology().add_global_store, Topology().add_read_only_state_store):
        with pytest.raises(TypeError, match=r"supplier of processor 'w' is 5; expected a callable without arguments"):
            add(builder(), "s", "x", "w", 5)  # type: ignore[arg-type]


def test_topic_of_a_global_store_may_be_read_by_a_pattern_that_comes_later() -> None:
    with_global().add_source("in", re.compile("f.*"))

    with pytest.raises(TopologyError, match=r"topic 'feed' .* matches the pattern 'f\.\*'"):
        Topology().add_source("in", re.compile("f.*")).add_global_store(builder(), "s", "feed", "w", Put)


def test_global_stores_are_described_between_the_sub_topologies() -> None:
    topology = Topology().add_source("first", "orders")
    topology.add_global_store(builder(), "source", "feed", "writer", Put).add_source("second", "returns")
    description = topology.describe()

    assert [part.id for part in description.subtopologies] == [0, 2]
    assert [(one.id, one.source.name, one.processor.name) for one in description.global_stores] == [
        (1, "source", "writer")
    ]
    assert str(description) == (
        "Topologies:\n"
        "   Sub-topology: 0\n    Source: first (topics: [orders])\n      --> none\n\n"
        "  Sub-topology: 1 for global store (will not generate tasks)\n"
        "    Source: source (topics: [feed])\n      --> writer\n"
        "    Processor: writer (stores: [kv])\n      --> none\n      <-- source\n"
        "  Sub-topology: 2\n    Source: second (topics: [returns])\n      --> none\n\n"
    )


def test_global_stores_are_drawn_in_boxes_of_their_own() -> None:
    description = add_reader(with_global()).describe()

    assert 'subgraph s0["Global store 0"]' in description.to_mermaid()
    assert 'subgraph s1["Sub-topology 1"]' in description.to_mermaid()
    assert 'label="Global store 0";' in description.to_dot()
    assert description.to_dot().count("{") == description.to_dot().count("}")
    assert [part["id"] for part in description.to_dict()["global_stores"]] == [0]
    assert [node["name"] for node in description.to_dict()["global_stores"][0]["nodes"]] == ["source", "writer"]


def test_plan_keeps_global_stores_out_of_the_sub_topologies() -> None:
    plan = add_reader(with_global(logging=True, caching=True)).plan(CONFIG)

    assert [part.id for part in plan.subtopologies] == [1]
    assert set(plan.whole.nodes) == {"in", "reader"}
    assert plan.internal_topics == ()
    (store,) = plan.global_stores
    assert (store.topic, store.source.name, store.processor.name, store.reprocesses) == (
        "feed",
        "source",
        "writer",
        True,
    )
    assert (store.store.logging, store.store.caching) == (False, False)


def test_global_table_is_restored_as_it_is() -> None:
    script = StreamsBuilder()
    script.global_table("feed")

    assert [store.reprocesses for store in script.build().plan(CONFIG).global_stores] == [False]


def test_topic_is_the_changelog_of_a_read_only_store() -> None:
    topology = add_reader(with_read_only(logging=True)).connect_processor_and_state_stores("reader", "kv")
    (part,) = topology.plan(CONFIG).subtopologies

    assert part.changelogs == {"kv": "feed"}
    assert part.changelog_topics == {}
    assert not part.stores["kv"].logging
    assert part.sources[0].offset_reset is not None and part.sources[0].offset_reset.strategy == "earliest"


def test_stores_of_a_supplier_are_not_added_where_it_feeds_a_store() -> None:
    read_only = Topology().add_read_only_state_store(builder(), "source", "feed", "writer", Providing)
    kept = Topology().add_global_store(builder(), "source", "feed", "writer", Providing)

    assert set(read_only.plan(CONFIG).whole.stores) == {"kv"}
    assert [store.store.name for store in kept.plan(CONFIG).global_stores] == ["kv"]
