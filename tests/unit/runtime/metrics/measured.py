"""Topologies whose metrics are looked at."""

from __future__ import annotations

from collections.abc import Mapping

from pykstreams import Consumed, Materialized, Produced, Serdes, StreamsBuilder
from pykstreams.core.metrics import MetricName
from pykstreams.testing import TestInputTopic, TopologyTestDriver

TEXT = Serdes.string()
READ = Consumed(key_serde=TEXT, value_serde=TEXT)
WRITE = Produced(key_serde=TEXT, value_serde=TEXT)
SOURCE, SINK = "KSTREAM-SOURCE-0000000000", "KSTREAM-SINK-0000000002"
START = 100_000


def pipeline() -> StreamsBuilder:
    """Copies a topic, in upper case."""
    builder = StreamsBuilder()
    builder.stream("in", READ).map_values(lambda value: value.upper()).to("out", WRITE)
    return builder


def counting() -> StreamsBuilder:
    """Counts by key, in the store ``counts``."""
    builder = StreamsBuilder()
    builder.stream("in", READ).group_by_key().count(materialized=Materialized("counts")).to_stream().foreach(
        lambda key, value: None
    )
    return builder


def driver(
    builder: StreamsBuilder, level: str = "INFO", settings: Mapping[str, object] | None = None
) -> TopologyTestDriver:
    return TopologyTestDriver(
        builder.build(), {"metrics.recording.level": level, **(settings or {})}, initial_wall_clock_time=START
    )


def texts(on: TopologyTestDriver, topic: str = "in") -> TestInputTopic[str, str]:
    return on.create_input_topic(topic, TEXT, TEXT)


def named(on: TopologyTestDriver, name: str, **tags: str) -> float:
    """The one metric of a name that has these tags."""
    (found,) = all_named(on, name, **tags).values()
    return found


def all_named(on: TopologyTestDriver, name: str, **tags: str) -> dict[MetricName, float]:
    wanted = {(tag.replace("_", "-"), value) for tag, value in tags.items()}
    return {key: metric.value for key, metric in on.metrics().items() if key.name == name and wanted <= set(key.tags)}
