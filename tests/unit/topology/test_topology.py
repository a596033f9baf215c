"""What ``Topology`` accepts and refuses, and what its plan says."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pykstreams import Serdes, Stores, StreamsConfig, Topology
from pykstreams.errors import TopologyError
from pykstreams.state import StoreBuilder
from pykstreams.testing import TopologyTestDriver
from pykstreams.testing.records import ProducedRecord
from pykstreams.topology.plan import SourceNode
from tests.unit.user_processors import Forward, Put

CONFIG = StreamsConfig({"application.id": "app"})


def store(name: str = "counts", **options: Any) -> StoreBuilder[Any]:
    return Stores.key_value_store_builder(
        Stores.in_memory_key_value_store(name), Serdes.string(), Serdes.long(), **options
    )


def topology() -> Topology:
    return Topology().add_source("source", "in").add_processor("processor", Forward, "source")


def test_a_name_can_be_used_once() -> None:
    with pytest.raises(TopologyError, match=r"a node named 'source' has already been added"):
        topology().add_source("source", "other")


def test_a_topic_has_one_source() -> None:
    with pytest.raises(
        TopologyError, match=r"topic 'in' of source 'again' is read by source 'source' already.*to_table\(\)"
    ):
        topology().add_source("again", "in")


def test_a_pattern_must_not_match_a_topic_of_another_source() -> None:
    with pytest.raises(TopologyError, match=r"pattern 'i\.' of source 'p' matches topic 'in'"):
        topology().add_source("p", re.compile("i."))


def test_a_topic_must_not_match_the_pattern_of_another_source() -> None:
    patterns = Topology().add_source("p", re.compile("i."))

    with pytest.raises(TopologyError, match=r"topic 'in' of source 's' matches the pattern 'i\.' of source 'p'"):
        patterns.add_source("s", "in")


@pytest.mark.parametrize("topics", [(), (re.compile("a"), re.compile("b")), (re.compile("a"), "b")])
def test_a_source_needs_topics_or_one_pattern(topics: tuple[str | re.Pattern[str], ...]) -> None:
    with pytest.raises(TopologyError, match="needs topic names or exactly one compiled pattern"):
        Topology().add_source("source", *topics)


def test_types_may_stand_for_serdes_of_sources_and_sinks() -> None:
    by_type = (
        Topology()
        .add_source("source", "in", key_deserializer=int, value_deserializer=dict[str, int])
        .add_processor("processor", Forward, "source")
        .add_sink("sink", "out", "processor", key_serializer=int, value_serializer=dict[str, int])
    )

    with TopologyTestDriver(by_type) as driver:
        driver.create_input_topic("in", int, dict[str, int]).pipe_input(2, {"red": 3}, timestamp=5)

        assert driver.take_produced() == [
            ProducedRecord("out", None, Serdes.long().serializer.serialize("out", 2, ()), b'{"red":3}', 5, ())
        ]


def test_types_may_stand_for_serdes_of_the_topics_of_read_only_and_global_stores() -> None:
    for add in Topology.add_read_only_state_store, Topology.add_global_store:
        by_type = Topology()
        add(by_type, store("kv"), "source", "in", "writer", Put, key_deserializer=str, value_deserializer=int)

        with TopologyTestDriver(by_type) as driver:
            driver.create_input_topic("in", str, int).pipe_input("red", 3)

            kept = driver.get_key_value_store("kv")
            assert kept is not None
            assert kept.get("red") == 3


def test_a_type_without_a_serde_is_refused_with_the_name_of_its_source() -> None:
    with pytest.raises(TypeError, match=r"key_deserializer of 'source': .*object"):
        Topology().add_source("source", "in", key_deserializer=object)


def test_a_processor_needs_parents() -> None:
    with pytest.raises(TopologyError, match="node 'p' has no parents"):
        Topology().add_processor("p", Forward)


def test_a_parent_must_be_known() -> None:
    with pytest.raises(TopologyError, match="parent 'nobody' of node 'p' is unknown; add it first"):
        topology().add_processor("p", Forward, "nobody")


def test_a_node_cannot_be_its_own_parent() -> None:
    with pytest.raises(TopologyError, match="it cannot be its own parent"):
        topology().add_processor("p", Forward, "p")


def test_a_sink_cannot_be_a_parent() -> None:
    with pytest.raises(TopologyError, match="'sink' is a sink and cannot be a parent of 'p'"):
        topology().add_sink("sink", "out", "processor").add_processor("p", Forward, "sink")


def test_a_supplier_must_be_callable() -> None:
    with pytest.raises(TypeError, match="supplier of processor 'p' is 3; expected a callable"):
        topology().add_processor("p", 3, "source")  # type: ignore[arg-type]  # a number is no supplier


def shared_processor() -> Forward:
    return SHARED


SHARED = Forward()


@pytest.mark.parametrize("add", ["processor", "global store", "read-only store"])
@pytest.mark.parametrize(
    ("supplier", "error", "message"),
    [
        (shared_processor, ValueError, r"shared_processor \(line \d+\) gave the same object twice"),
        (lambda: SHARED.process, TypeError, "gave <bound method .*; expected a Processor"),
        (SHARED, TypeError, "expected a callable without arguments"),
    ],
)
def test_a_bad_supplier_is_refused_when_it_is_added(
    add: str, supplier: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        if add == "processor":
            topology().add_processor("p", supplier, "source")
        elif add == "global store":
            topology().add_global_store(store(logging=False), "s", "topic", "p", supplier)
        else:
            topology().add_read_only_state_store(store(), "s", "topic", "p", supplier)


@pytest.mark.parametrize("supplier", [Forward, lambda: Forward(), partial(Forward), type("Derived", (Forward,), {})])
def test_any_callable_that_gives_new_processors_is_a_supplier(supplier: Callable[[], Forward]) -> None:
    assert "p" in topology().add_processor("p", supplier, "source").plan(CONFIG).whole.nodes


def test_a_store_is_added_before_it_is_connected() -> None:
    with pytest.raises(TopologyError, match="store 'counts' of processor 'processor' is unknown"):
        topology().connect_processor_and_state_stores("processor", "counts")


def test_the_same_store_may_be_added_twice_but_not_another_of_its_name() -> None:
    counts = store()
    twice = topology().add_state_store(counts, "processor").add_state_store(counts, "processor")

    with pytest.raises(TopologyError, match=r"a different store named 'counts'.* or both the same builder"):
        twice.add_state_store(store())


def test_a_source_cannot_have_a_store() -> None:
    with pytest.raises(TopologyError, match="'source' is a source or a sink"):
        topology().add_state_store(store()).connect_processor_and_state_stores("source", "counts")


def test_some_store_must_be_named() -> None:
    with pytest.raises(TopologyError, match="no store was named"):
        topology().connect_processor_and_state_stores("processor")


def test_a_suppliers_stores_are_added_and_connected() -> None:
    class WithStore(Forward):
        @staticmethod
        def stores() -> list[StoreBuilder[Any]]:
            return [store("own")]

    plan = Topology().add_source("s", "in").add_processor("p", WithStore, "s").plan(CONFIG)

    assert list(plan.whole.stores) == ["own"]
    assert dict(plan.whole.changelogs) == {"own": "app-own-changelog"}


def test_stores_of_what_a_partial_calls_are_added() -> None:
    class WithStore(Forward):
        def __init__(self, greeting: str) -> None:
            self.greeting = greeting

        @classmethod
        def stores(cls) -> list[StoreBuilder[Any]]:
            return [store("own")]

    plan = Topology().add_source("s", "in").add_processor("p", partial(WithStore, "hello"), "s").plan(CONFIG)

    assert list(plan.whole.stores) == ["own"]


def test_stores_must_not_need_a_processor() -> None:
    class WithStore(Forward):
        def stores(self) -> list[StoreBuilder[Any]]:
            return [store("own")]

    with pytest.raises(TypeError, match=r"WithStore supplies processors, so its stores\(\) is called before"):
        topology().add_processor("p", WithStore, "source")


def test_nodes_that_share_a_store_are_one_sub_topology() -> None:
    built = (
        Topology()
        .add_source("a", "a")
        .add_source("b", "b")
        .add_processor("pa", Forward, "a")
        .add_processor("pb", Forward, "b")
    )
    apart = len(built.plan(CONFIG).subtopologies)
    together = len(built.add_state_store(store(), "pa", "pb").plan(CONFIG).subtopologies)

    assert (apart, together) == (2, 1)


def test_children_stand_in_the_order_of_adding() -> None:
    built = Topology().add_source("s", "in")
    for name in ("c", "a", "b"):
        built.add_processor(name, Forward, "s")

    source = built.plan(CONFIG).whole.nodes["s"]

    assert isinstance(source, SourceNode)
    assert source.children == ("c", "a", "b")


def test_a_store_has_no_cache_where_the_worker_has_none() -> None:
    built = topology().add_state_store(store(caching=True), "processor")

    assert built.plan(CONFIG).whole.stores["counts"].caching
    assert not built.plan(CONFIG.replace(statestore_cache_max_bytes=0)).whole.stores["counts"].caching


@pytest.mark.parametrize(
    ("own", "everywhere", "retention_ms"),
    [
        ({}, {}, "86460000"),
        ({"retention.ms": "7"}, {}, "7"),
        ({}, {"topic.retention.ms": "7"}, "86460000"),
        ({}, {"windowstore.changelog.additional.retention.ms": 5}, "60005"),
        ({}, {"windowstore.changelog.additional.retention.ms": 2**63 - 1}, "9223372036854775807"),
    ],
)
def test_changelog_of_windows_is_compacted_and_deleted_some_time_after_the_retention_of_the_store(
    own: dict[str, str], everywhere: dict[str, object], retention_ms: str
) -> None:
    config = CONFIG.replace(everywhere)
    supplier = Stores.in_memory_window_store("counts", 60_000, 1_000)
    built = topology().add_state_store(Stores.window_store_builder(supplier, topic_config=own), "processor")
    topic = built.plan(config).internal_topics[0]

    assert topic.config == {
        "cleanup.policy": "compact,delete",
        "message.timestamp.type": "CreateTime",
        "retention.ms": retention_ms,
    }


def test_settings_of_internal_topics_can_be_given_for_all_and_for_one() -> None:
    config = CONFIG.replace({"topic.segment.bytes": "1000", "topic.min.insync.replicas": "2"})
    built = topology().add_state_store(store(topic_config={"segment.bytes": "5"}), "processor")
    topic = built.plan(config).internal_topics[0]

    assert topic.config == {
        "cleanup.policy": "compact",
        "message.timestamp.type": "CreateTime",
        "min.insync.replicas": "2",
        "segment.bytes": "5",
    }


def test_description_names_an_extractor_that_does_not_describe_itself() -> None:
    class ByKey:
        def __call__(self, key: object, value: object, context: object) -> str:
            return "out"

    texts = []
    for extractor in (by_key, ByKey()):
        topology = Topology().add_source("source", "in").add_sink("sink", extractor, "source")
        texts.append(re.findall(r"extractor class: (.*)\)", str(topology.describe())))

    here = "tests.unit.topology.test_topology"
    name = "test_description_names_an_extractor_that_does_not_describe_itself.<locals>.ByKey"
    assert texts == [[f"{here}.by_key"], [f"{here}.{name}"]]


def by_key(key: object, value: object, context: object) -> str:
    return "out"
