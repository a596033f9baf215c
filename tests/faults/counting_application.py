"""What the workers run that count: one operator of each kind whose results can be checked from outside, one by one.

    mapped    each line once more: stateless
    counts    lines by group, so re-keyed: every count from 1 to n
    windows   lines by key and window of ten seconds: every count from 1 to n
    merged    lines by group, by way of a topic of their own, together with notes: a task with two inputs, one of which
              is written in transactions under exactly-once

Caches are off, so that each intermediate count is a result. Lines and notes that are poisoned become dead letters.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pykstreams import (
    Consumed,
    Grouped,
    Materialized,
    Produced,
    Repartitioned,
    Serdes,
    StreamsBuilder,
    TimeWindows,
    Topology,
)
from tests.faults.shifted_clock import follow
from tests.faults.topics import LINES, NOTES, WINDOW_MS, Output, checked

text, number = Serdes.string(), Serdes.long()
grouped = Grouped(key_serde=text, value_serde=text)


def build(config: Any) -> Topology:
    follow(config)
    builder = StreamsBuilder()

    def counted(output: Output) -> tuple[str, Produced[str, int]]:
        return output.topic(config.application_id), Produced(key_serde=text, value_serde=number)

    lines = builder.stream(LINES, Consumed(key_serde=text, value_serde=text)).map_values(checked)
    notes = builder.stream(NOTES, Consumed(key_serde=text, value_serde=number)).map_values(str)

    lines.to(Output.MAPPED.topic(config.application_id), Produced(key_serde=text, value_serde=text))
    by_group = lines.select_key(lambda _, line: line.partition("|")[2])
    counts = by_group.group_by_key(Grouped(name="groups", key_serde=text, value_serde=text)).count(
        materialized=Materialized(Output.COUNTS.store, key_serde=text, value_serde=number)
    )
    counts.to_stream().to(*counted(Output.COUNTS))
    windows = (
        lines.group_by_key(grouped)
        .windowed_by(TimeWindows(timedelta(milliseconds=WINDOW_MS), grace=timedelta(days=1)))
        .count(materialized=Materialized(Output.WINDOWS.store, key_serde=text, value_serde=number))
    )
    windows.to_stream(lambda key, _: f"{key.key}@{key.window.start}").to(*counted(Output.WINDOWS))
    moved = by_group.repartition(Repartitioned(name="moved", key_serde=text, value_serde=text))
    merged = moved.merge(notes).group_by_key(grouped)
    merged.count(materialized=Materialized(Output.MERGED.store, key_serde=text, value_serde=number)).to_stream().to(
        *counted(Output.MERGED)
    )
    return builder.build(config)
