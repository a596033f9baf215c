"""The topology as a member tells it to the brokers, beside what Kafka Streams tells them."""

from __future__ import annotations

import re

import pytest

from pykstreams import KTable, StreamsBuilder, StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.runtime.clients.coordinators.streams_coordinator import topology_bytes
from pykstreams.runtime.clients.coordinators.streams_heartbeat import CopartitionGroup, TopicOfGroup
from pykstreams.runtime.membership.streams.broker_topology import broker_topology
from tests.interop import applications
from tests.interop.programs import OPTIMIZED, PROGRAMS
from tests.unit.runtime.membership.java_topologies import RecordedTopology, recorded_topologies, settings_of

DEFAULT_REPLICATION = -1
RECORDED = recorded_topologies()


def told(program: str, options: dict[str, str]) -> bytes:
    config = StreamsConfig(settings_of(program, options))
    plan = getattr(applications, program)(config).plan(config)
    return topology_bytes(broker_topology(plan, DEFAULT_REPLICATION))


def test_each_application_was_recorded_with_and_without_rewrites() -> None:
    assert {(one["program"], one["optimized"]) for one in RECORDED} == {
        (name, optimized) for name in PROGRAMS for optimized in (False, True)
    }
    assert {one["program"] for one in RECORDED if one["told"] is None} <= {"cogroup"}


@pytest.mark.parametrize(
    "recorded",
    [pytest.param(one, id=f"{one['program']}{' optimized' if one['optimized'] else ''}") for one in RECORDED],
)
def test_the_bytes_of_a_topology_are_those_of_kafka_streams(recorded: RecordedTopology) -> None:
    found = told(recorded["program"], dict(OPTIMIZED) if recorded["optimized"] else {})
    if recorded["told"] is None:
        assert found  # Kafka Streams cannot say it
    else:
        assert found.hex() == recorded["told"]


def test_settings_of_internal_topics_are_told_with_the_replication_that_is_asked_for() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by(lambda key, value: value).count()
    config = StreamsConfig({"application.id": "app", "topic.segment.bytes": 1_000_000})
    first, second = broker_topology(builder.build(config).plan(config), 3)
    name = "app-KSTREAM-AGGREGATE-STATE-STORE-0000000002"

    assert (first.sources, first.repartition_sinks) == (("in",), (f"{name}-repartition",))
    assert second.changelogs == (
        TopicOfGroup(
            f"{name}-changelog",
            0,
            3,
            (("cleanup.policy", "compact"), ("message.timestamp.type", "CreateTime"), ("segment.bytes", "1000000")),
        ),
    )
    assert [(topic.name, topic.partitions, topic.replication) for topic in second.repartition_sources] == [
        (f"{name}-repartition", 0, 3)
    ]


def test_groups_of_topics_are_told_by_their_places() -> None:
    builder = StreamsBuilder()
    left: KTable[str, str] = builder.table("left")
    right: KTable[str, str] = builder.table("right")
    left.join(right, lambda one, two: one)
    config = StreamsConfig({"application.id": "app"})
    [part] = broker_topology(builder.build(config).plan(config), 1)

    assert part.sources == ("left", "right")
    assert [sorted(group.sources) for group in part.copartition_groups] == [[0, 1]]
    assert isinstance(part.copartition_groups[0], CopartitionGroup)


def test_patterns_are_refused_with_the_way_out() -> None:
    builder = StreamsBuilder()
    builder.stream(re.compile("in-.*")).to("out")
    config = StreamsConfig({"application.id": "app"})

    with pytest.raises(ConfigError, match=r"'in-.\*' reads all topics that match a pattern.*group.protocol=classic"):
        broker_topology(builder.build(config).plan(config), 1)
