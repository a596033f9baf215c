"""The plan of a topology for one configuration: full topic names, changelogs, groups of topics, global stores."""

from __future__ import annotations

import re
from typing import Any

from pykstreams import Serdes, Stores, StreamsConfig, WallclockTimestampExtractor
from pykstreams.processors import PassThrough
from pykstreams.topology.definition import (
    GlobalStoreDefinition,
    ProcessorDefinition,
    SinkDefinition,
    SourceDefinition,
    TopologyDefinition,
)
from pykstreams.topology.offset_reset import AutoOffsetReset
from pykstreams.topology.plan import SinkNode, SourceNode
from pykstreams.topology.planner import make_plan
from pykstreams.topology.stores import GivenStore

CONFIG = StreamsConfig({"application.id": "app"})


def source(name: str, *topics: str) -> SourceDefinition:
    return SourceDefinition(name, topics, None, None, None, None, None)


def step(name: str, *parents: str, stores: tuple[str, ...] = ()) -> ProcessorDefinition:
    return ProcessorDefinition(name, parents, PassThrough(), list(stores))


def sink(name: str, topic: Any, *parents: str) -> SinkDefinition:
    return SinkDefinition(name, parents, topic, None, None, None)


def store(name: str, **options: Any) -> GivenStore:
    supplier = Stores.in_memory_key_value_store(name)
    return GivenStore(Stores.key_value_store_builder(supplier, Serdes.string(), Serdes.string(), **options))


def defined(*nodes: SourceDefinition | ProcessorDefinition | SinkDefinition) -> TopologyDefinition:
    definition = TopologyDefinition()
    for node in nodes:
        definition.add(node)
    return definition


def test_only_the_topics_of_the_application_get_its_id() -> None:
    definition = defined(
        source("first", "in"),
        sink("out", "rows-repartition", "first"),
        source("second", "rows-repartition"),
        sink("end", "out", "second"),
    )
    definition.internal_topics["rows-repartition"] = 7
    before, after = make_plan(definition, CONFIG).subtopologies

    assert (before.source_topics, before.sink_topics) == (("in",), ("app-rows-repartition",))
    assert (after.source_topics, after.sink_topics) == (("app-rows-repartition",), ("out",))
    assert {name: topic.partitions for name, topic in after.repartition_topics.items()} == {"app-rows-repartition": 7}
    assert not before.repartition_topics


def test_topic_that_decides_on_partitions_is_marked() -> None:
    definition = defined(source("s", "by-name", "by-place"))
    definition.internal_topics.update({"by-name": None, "by-place": None})
    definition.deciding_topics.add("by-place")
    topics = make_plan(definition, CONFIG).whole.repartition_topics

    assert {name: topic.decides for name, topic in topics.items()} == {"app-by-name": False, "app-by-place": True}


def test_topic_that_two_sinks_write_is_named_once() -> None:
    definition = defined(source("s", "in"), *(sink(name, topic, "s") for name, topic in (("a", "x"), ("b", "y"))))
    definition.add(sink("c", "x", "s"))
    definition.add(sink("d", lambda key, value, context: value, "s"))

    assert make_plan(definition, CONFIG).whole.sink_topics == ("x", "y")


def test_source_keeps_its_pattern_and_what_was_given_for_reading() -> None:
    extractor = WallclockTimestampExtractor()
    pattern = re.compile("log-.*")
    given = SourceDefinition("s", (), pattern, AutoOffsetReset.LATEST, extractor, "key", "value")
    whole = make_plan(defined(given), CONFIG).whole
    (found,) = whole.sources

    assert whole.source_patterns == (pattern,)
    assert (found.key_deserializer, found.value_deserializer) == ("key", "value")
    assert (found.timestamp_extractor, found.offset_reset) == (extractor, AutoOffsetReset.LATEST)


def test_children_are_those_that_name_the_node_as_parent() -> None:
    plan = make_plan(defined(source("s", "in"), step("b", "s"), step("a", "s"), sink("out", "t", "a")), CONFIG)
    nodes = plan.whole.nodes

    assert isinstance(nodes["s"], SourceNode) and nodes["s"].children == ("b", "a")
    assert isinstance(nodes["out"], SinkNode)


def test_a_store_is_restored_from_its_changelog_unless_it_has_none() -> None:
    definition = defined(source("s", "in"), step("p", "s", stores=("kept", "forgotten")))
    definition.stores.update(kept=store("kept"), forgotten=store("forgotten", logging=False))
    whole = make_plan(definition, CONFIG).whole

    assert set(whole.stores) == {"kept", "forgotten"}
    assert whole.changelogs == {"kept": "app-kept-changelog"}
    assert list(whole.changelog_topics) == ["app-kept-changelog"]
    assert not whole.reused_changelogs


def test_a_source_topic_that_serves_as_changelog_is_not_logged_to() -> None:
    definition = defined(source("s", "rows"), step("table", "s", stores=("table",)))
    definition.stores["table"] = store("table")
    definition.changelog_sources["table"] = "rows"
    whole = make_plan(definition, CONFIG).whole

    assert not whole.stores["table"].logging
    assert whole.changelogs == {"table": "rows"}
    assert not whole.changelog_topics
    assert list(whole.reused_changelogs) == ["rows"]


def test_repartition_topic_that_serves_as_changelog_has_the_id_of_the_application() -> None:
    definition = defined(source("s", "rows"), step("table", "s", stores=("table",)))
    definition.stores["table"] = store("table")
    definition.changelog_sources["table"] = "rows"
    definition.internal_topics["rows"] = None

    assert make_plan(definition, CONFIG).whole.changelogs == {"table": "app-rows"}


def test_a_store_is_made_once_for_all_that_use_it() -> None:
    definition = defined(source("a", "a"), step("pa", "a", stores=("both",)), step("pb", "a", stores=("both",)))
    definition.stores["both"] = store("both")
    plan = make_plan(definition, CONFIG)

    assert plan.subtopologies[0].stores["both"] is plan.whole.stores["both"]


def test_groups_that_share_a_topic_are_one() -> None:
    definition = defined(source("a", "a"), source("b", "b"), source("c", "c"), source("d", "d"))
    definition.copartitioned.extend([{"a", "b"}, {"d"}, {"b", "c"}])

    assert make_plan(definition, CONFIG).whole.copartition_groups == (frozenset("d"), frozenset("abc"))


def test_a_sub_topology_knows_only_the_groups_of_its_own_topics() -> None:
    definition = defined(source("a", "a"), source("b", "b"), step("p", "a", "b"), source("c", "c"))
    definition.copartitioned.extend([{"a", "b"}, {"c"}])
    joined, alone = make_plan(definition, CONFIG).subtopologies

    assert (joined.copartition_groups, alone.copartition_groups) == ((frozenset("ab"),), (frozenset("c"),))


def test_global_stores_are_in_no_sub_topology_and_their_number_is_left_out() -> None:
    definition = defined(source("gs", "settings"), step("gp", "gs", stores=("g",)), source("s", "in"), step("p", "s"))
    definition.global_stores["g"] = GlobalStoreDefinition("gs", "gp", "settings", store("g"), reprocesses=True)
    plan = make_plan(definition, CONFIG)
    (kept,) = plan.global_stores

    assert [(part.id, list(part.nodes)) for part in plan.subtopologies] == [(1, ["s", "p"])]
    assert list(plan.whole.nodes) == ["s", "p"]
    assert (kept.topic, kept.processor.name, kept.reprocesses, kept.store.logging) == ("settings", "gp", True, False)
