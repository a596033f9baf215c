"""Topology scripts that come in sizes: so many operators, stores or sub-topologies."""

from __future__ import annotations

from benchmarks.programs.event_serdes import json, number, text
from pykstreams import Consumed, Grouped, KStream, Materialized, Produced, StreamsBuilder, Topology


def chain(source: str, sink: str, operators: int) -> Topology:
    """chain: so many operators one behind the other, filters and mappings in turn, which change nothing."""

    def same(line: str) -> str:
        return line

    def not_empty(_: str, line: str) -> bool:
        return line != ""

    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream(source, Consumed(key_serde=text, value_serde=text))
    for place in range(operators):
        stream = stream.map_values(same) if place % 2 else stream.filter(not_empty)
    stream.to(sink, Produced(key_serde=text, value_serde=text))
    return builder.build()


def relay(source: str, sink: str, subtopologies: int) -> Topology:
    """relay: the newest value of each key in a store, behind a repartition topic when there are two sub-topologies."""
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream(source, Consumed(key_serde=text, value_serde=text))
    grouping = Grouped(key_serde=text, value_serde=text, name="by-key")
    grouped = stream.group_by_key(grouping) if subtopologies == 1 else stream.group_by(lambda key, _: key, grouping)
    (
        grouped.reduce(lambda _, newer: newer, materialized=Materialized("newest", key_serde=text, value_serde=text))
        .to_stream()
        .to(sink, Produced(key_serde=text, value_serde=text))
    )
    return builder.build()


def stores(source: str, sink: str, count: int) -> Topology:
    """stores: so many stores with a count of the records of each key; the first one's go to the sink."""
    builder = StreamsBuilder()
    grouped = builder.stream(source, Consumed(key_serde=text, value_serde=json)).group_by_key(
        Grouped(key_serde=text, value_serde=json)
    )
    for place in range(count):
        counts = grouped.count(materialized=Materialized(f"counts-{place}", key_serde=text, value_serde=number))
        if place == 0:
            counts.to_stream().to(sink, Produced(key_serde=text, value_serde=number))
    return builder.build()
