"""The plan of a shadow: what feeds stores, and nothing that anybody would see."""

from __future__ import annotations

from typing import Any

from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.runtime.swap.only_stores import only_stores
from pykstreams.topology.plan import ProcessorNode, SinkNode, SubtopologyPlan

TEXT = Serdes.string()
CONFIG = StreamsConfig({"application.id": "shop"})


def planned(build: Any) -> SubtopologyPlan:
    builder = StreamsBuilder()
    build(builder)
    (part,) = builder.build().plan(CONFIG).subtopologies
    return part


def working(part: SubtopologyPlan) -> set[str]:
    """The nodes that do something."""
    shadow = only_stores(part)
    assert list(shadow.nodes) == list(part.nodes)
    return {name for name, node in shadow.nodes.items() if node is part.nodes[name]}


def test_sinks_and_what_leads_to_no_store_are_dead_ends() -> None:
    def build(builder: StreamsBuilder) -> None:
        orders = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=TEXT))
        orders.foreach(lambda key, value: None)
        orders.filter(lambda key, value: True).to("copies", Produced(key_serde=TEXT, value_serde=TEXT))
        upper = orders.map_values(str.upper)
        counts = upper.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT)).count(
            materialized=Materialized("counts")
        )
        counts.to_stream().to("out", Produced(key_serde=TEXT, value_serde=Serdes.long()))

    part = planned(build)

    assert working(part) == {
        "KSTREAM-SOURCE-0000000000",
        "KSTREAM-MAPVALUES-0000000004",
        "KSTREAM-AGGREGATE-0000000005",
    }
    assert not any(isinstance(node, SinkNode) for node in only_stores(part).nodes.values())


def test_a_source_that_feeds_no_store_is_read_and_forgotten() -> None:
    def build(builder: StreamsBuilder) -> None:
        given = Consumed(key_serde=TEXT, value_serde=TEXT)
        table = builder.table("customers", given, materialized=Materialized("customers"))
        builder.stream("orders", given).join(table, lambda order, customer: order).foreach(lambda key, value: None)
        builder.stream("notes", given).merge(builder.stream("orders2", given)).foreach(lambda key, value: None)

    builder = StreamsBuilder()
    build(builder)
    parts = builder.build().plan(CONFIG).subtopologies
    shadows = [only_stores(part) for part in parts]
    ends = [
        node
        for shadow in shadows
        for node in shadow.nodes.values()
        if isinstance(node, ProcessorNode) and not node.children and not node.stores
    ]

    assert all(type(node.supplier).__name__ == "_DeadEnd" for node in ends)
    assert all(part.stores.keys() == shadow.stores.keys() for part, shadow in zip(parts, shadows, strict=True))
