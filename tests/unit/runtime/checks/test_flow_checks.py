"""Where records of a topology go: steps whose results nobody takes, and topics that are written to be read again."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams import KStream, StreamsBuilder, StreamsConfig
from pykstreams.runtime.checks.flow_checks import flow_findings


def found(builder: StreamsBuilder) -> list[tuple[str, str]]:
    config = StreamsConfig({"application.id": "shop"})
    return [(one.where, one.what) for one in flow_findings(builder.build().plan(config))]


@pytest.mark.parametrize(
    ("step", "node"),
    [
        (lambda stream: stream.filter(lambda key, value: True), "KSTREAM-FILTER-0000000001"),
        (lambda stream: stream.map_values(str.upper), "KSTREAM-MAPVALUES-0000000001"),
        (lambda stream: stream.map(lambda key, value: (value, key)), "KSTREAM-MAP-0000000001"),
        (lambda stream: stream.flat_map_values(str.split), "KSTREAM-FLATMAPVALUES-0000000001"),
        (lambda stream: stream.select_key(lambda key, value: value), "KSTREAM-KEY-SELECT-0000000001"),
    ],
)
def test_a_step_whose_results_nobody_takes_is_told(step: Any, node: str) -> None:
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("in", str, str)
    step(stream)
    stream.to("out")

    assert found(builder) == [(node, "what it makes goes nowhere")]


def test_a_step_that_is_there_for_what_it_does_is_no_finding() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", str, str)
    stream.foreach(lambda key, value: None)
    stream.peek(lambda key, value: None)
    stream.group_by_key().count()
    stream.filter(lambda key, value: True).to_table()

    assert found(builder) == []


def test_a_topic_that_a_topology_reads_and_writes_without_an_end_is_told() -> None:
    builder = StreamsBuilder()
    builder.stream("one", str, str).map_values(str.upper).to("two")
    builder.stream("two", str, str).group_by(lambda key, value: value).count().to_stream().map_values(str).to("one")
    builder.stream("three", str, str).to("three")

    assert found(builder) == [
        ("one", "what this topology makes of its records comes back to it, without an end"),
        ("three", "what this topology makes of its records comes back to it, without an end"),
        ("two", "what this topology makes of its records comes back to it, without an end"),
    ]


def test_a_topic_between_two_parts_of_a_topology_is_no_finding() -> None:
    builder = StreamsBuilder()
    builder.stream("one", str, str).to("two")
    builder.stream("two", str, str).to("three")

    assert found(builder) == []
