"""A topology that reads nothing: refused where it is to run, and accepted by the test driver, as in Kafka Streams."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykstreams import KafkaStreams, Stores, StreamsBuilder, Topology
from pykstreams.core.errors import TopologyError
from pykstreams.testing import TopologyTestDriver

MESSAGE = (
    "Invalid topology: Topology has no stream threads and no global threads, must subscribe to at least one source "
    "topic or global table; read a topic with StreamsBuilder.stream, table or global_table, or Topology.add_source, "
    "on the builder or topology that is given"
)


def nothing() -> Topology:
    return StreamsBuilder().build()


def store_only() -> Topology:
    builder = StreamsBuilder()
    store = Stores.in_memory_key_value_store("counts")
    return builder.add_state_store(Stores.key_value_store_builder(store, str, int)).build()


def global_table_only() -> Topology:
    builder = StreamsBuilder()
    builder.global_table("countries", str, str)
    return builder.build()


def stream_only() -> Topology:
    builder = StreamsBuilder()
    builder.stream("orders", str, str)
    return builder.build()


def pattern_only() -> Topology:
    builder = StreamsBuilder()
    builder.stream(re.compile("orders-.*"), str, str)
    return builder.build()


def application(topology: Topology, folder: Path) -> KafkaStreams:
    return KafkaStreams(
        topology, {"application.id": "shop", "bootstrap.servers": "nowhere:1", "state.dir": str(folder)}
    )


@pytest.mark.parametrize("make", [nothing, store_only, Topology])
def test_an_application_that_reads_nothing_is_refused_with_what_to_do(
    make: Callable[[], Topology], tmp_path: Path
) -> None:
    with pytest.raises(TopologyError) as found:
        application(make(), tmp_path)

    assert str(found.value) == MESSAGE


@pytest.mark.parametrize("make", [global_table_only, stream_only, pattern_only])
def test_an_application_that_reads_a_topic_only_is_accepted(make: Callable[[], Topology], tmp_path: Path) -> None:
    application(make(), tmp_path)


@pytest.mark.parametrize("make", [nothing, store_only, Topology])
def test_a_test_driver_takes_a_topology_that_reads_nothing(
    make: Callable[[], Topology], topology_test_driver: Callable[..., TopologyTestDriver]
) -> None:
    """As that of Kafka Streams, which has no task then (``TopologyTestDriver.setupTask``, 4.3.1)."""
    driver = topology_test_driver(make())
    driver.advance_wall_clock_time(5)
    source: Any = driver.create_input_topic("in", str, str)

    assert driver.get_all_state_stores() == {}
    with pytest.raises(ValueError, match="topic 'in' is unknown"):
        source.pipe_input("k", "v")
