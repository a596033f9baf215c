"""The serdes of a topology that write with a schema registry, and the topics that they are told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pykstreams import (
    Consumed,
    Grouped,
    JoinWindows,
    Materialized,
    Produced,
    Serdes,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
)
from pykstreams.serdes import SchemaRegistryAvroSerde
from pykstreams.serdes.registry.schema_registry import registry_client
from pykstreams.testing import TopologyTestDriver
from pykstreams.topology.checks.written_subjects import schema_uses
from tests.registries.http_registry import HttpRegistry, http_registry

SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
CONFIG = StreamsConfig({"application.id": "app", "bootstrap.servers": "x:1"})

KEYS: Any = SchemaRegistryAvroSerde("mock://uses", SCHEMA, is_key=True)
VALUES: Any = SchemaRegistryAvroSerde("mock://uses", SCHEMA)


@pytest.fixture
def registry() -> Iterator[HttpRegistry]:
    with http_registry() as found:
        yield found


def used(builder: StreamsBuilder, config: StreamsConfig = CONFIG) -> list[str]:
    return [str(one) for one in schema_uses(builder.build().plan(config), config)]


BOTH: Any = {"key_serde": KEYS, "value_serde": VALUES}


def test_topics_that_are_only_read_register_nothing() -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", KEYS, VALUES)
    orders.map(lambda key, value: ("", "")).to("out", Produced(key_serde=Serdes.string(), value_serde=Serdes.string()))

    assert used(builder) == []


def test_sinks_repartition_topics_and_changelogs_are_found_for_both_sides() -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", KEYS, VALUES)
    orders.to("copies", Produced(**BOTH))
    windows = orders.group_by(lambda key, value: key, Grouped(**BOTH, name="g")).windowed_by(TimeWindows(5))
    latest = windows.reduce(lambda one, other: other, materialized=Materialized("latest", **BOTH))
    latest.to_stream().to("windows")

    assert sorted(used(builder)) == [
        "key of app-g-repartition",
        "key of app-latest-changelog",
        "key of copies",
        "key of windows",
        "value of app-g-repartition",
        "value of app-latest-changelog",
        "value of copies",
        "value of windows",
    ]


def test_a_store_that_logs_nothing_is_told_its_changelog_all_the_same() -> None:
    builder = StreamsBuilder()
    builder.table("orders", KEYS, VALUES, materialized=Materialized("rows", **BOTH, logging=False))

    assert used(builder) == ["key of app-rows-changelog", "value of app-rows-changelog"]


def test_default_serdes_of_the_configuration_write_too() -> None:
    builder = StreamsBuilder()
    builder.stream("orders", Consumed()).to("copies")
    config = CONFIG.replace({"default.key.serde": Serdes.string(), "default.value.serde": VALUES})

    assert used(builder, config) == ["value of copies"]
    assert used(builder) == []


def test_a_topic_that_is_chosen_per_record_is_told_as_such() -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", KEYS, VALUES)
    orders.to(lambda key, value, context: "anywhere", Produced(key_serde=Serdes.string(), value_serde=VALUES))

    assert used(builder) == ["value of chosen per record"]


def test_serdes_inside_subscriptions_of_foreign_key_joins_are_found() -> None:
    builder = StreamsBuilder()
    orders = builder.table("orders", KEYS, VALUES)
    customers = builder.table("customers", KEYS, VALUES)
    orders.join(customers, lambda one, other: other, foreign_key_extractor=lambda order: {"id": 1})

    found = used(builder)

    assert any(one.startswith("key of ") and one.endswith("-fk") for one in found)
    assert any(one.startswith("value of ") and one.endswith("-pk") for one in found)


@pytest.mark.parametrize("optimized", [False, True])
def test_subjects_that_a_run_registers_are_those_that_were_found(optimized: bool, registry: HttpRegistry) -> None:
    client = registry_client(registry.settings())
    keys: Any = SchemaRegistryAvroSerde(client, SCHEMA, is_key=True)
    values: Any = SchemaRegistryAvroSerde(client, SCHEMA)
    both: Any = {"key_serde": keys, "value_serde": values}
    config = CONFIG.replace({"topology.optimization": "all" if optimized else "none"})
    builder = StreamsBuilder()
    orders = builder.table("orders", keys, values, materialized=Materialized("orders", **both))
    customers = builder.table("customers", keys, values)
    orders.join(
        customers,
        lambda one, other: other,
        foreign_key_extractor=lambda order: order,
        materialized=Materialized("joined", **both),
    ).to_stream().to("joined")
    stream = builder.stream("clicks", keys, values).select_key(lambda key, value: key)
    stream.outer_join(
        builder.stream("views", keys, values),
        lambda one, other: one or other,
        windows=JoinWindows(5),
        stream_joined=StreamJoined(key_serde=keys, value_serde=values, other_value_serde=values),
    ).to("pairs", Produced(**both))
    grouped = stream.group_by(lambda key, value: value, Grouped(**both, name="g")).windowed_by(TimeWindows(5))
    grouped.reduce(lambda one, other: other, materialized=Materialized("latest", **both)).to_stream().to("windows")
    orders.group_by(lambda key, value: (key, value), Grouped(**both, name="h")).reduce(
        lambda one, other: other, lambda one, other: one, materialized=Materialized("again", **both)
    )
    topology = builder.build(config)
    found = {
        request.subject
        for use in schema_uses(topology.plan(config), config)
        for request in use.serde.first_requests(use.topic)
    }
    before = dict(registry.subjects)
    producers = {"subject.name.strategy": lambda context, name: "outside"}
    written: Any = SchemaRegistryAvroSerde(client, SCHEMA, serializer_config=producers)

    with TopologyTestDriver(topology, config) as driver:
        for topic in ("customers", "orders", "clicks", "views", "clicks"):
            driver.create_input_topic(topic, written, written).pipe_input({"id": 1}, {"id": 1}, timestamp=1000)

    assert before == {}
    hashes = "app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000005-topic-vh-value"  # no topic has them
    assert registry.subjects.keys() - {"outside", hashes} == found
