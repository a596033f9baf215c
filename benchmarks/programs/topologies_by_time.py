"""The workloads that turn on time, as topology scripts: sessions, sliding windows, suppression, joins in windows and
with versions.
"""

from __future__ import annotations

from datetime import timedelta

from benchmarks.programs.event_serdes import Event, json, number, text
from pykstreams import (
    BufferConfig,
    Consumed,
    Grouped,
    Joined,
    JoinWindows,
    KTable,
    Materialized,
    Produced,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    Windowed,
)
from pykstreams.serdes import WindowedSerdes

GRACE = timedelta(hours=1)
"""Longer than the events span, so that none is late, in whatever order partitions are read."""


def count_in_sessions(source: str, sink: str) -> Topology:
    """sessions."""
    builder = StreamsBuilder()
    sessions = SessionWindows(timedelta(seconds=20), grace=GRACE)
    (
        builder.stream(source, Consumed(key_serde=text, value_serde=json))
        .group_by_key(Grouped(key_serde=text, value_serde=json))
        .windowed_by(sessions)
        .count(materialized=Materialized("counts", key_serde=text, value_serde=number))
        .to_stream()
        .to(sink, Produced(key_serde=WindowedSerdes.session_windowed(text), value_serde=number))
    )
    return builder.build()


def count_in_sliding_windows(source: str, sink: str) -> Topology:
    """sliding."""
    builder = StreamsBuilder()
    span = timedelta(seconds=20)
    counts = (
        builder.stream(source, Consumed(key_serde=text, value_serde=json))
        .group_by_key(Grouped(key_serde=text, value_serde=json))
        .windowed_by(SlidingWindows(span, grace=GRACE))
        .count(materialized=Materialized("counts", key_serde=text, value_serde=number))
    )
    _write_windows(counts, sink, span)
    return builder.build()


def count_until_closed(source: str, sink: str) -> Topology:
    """suppressed."""
    builder = StreamsBuilder()
    minute = timedelta(minutes=1)
    counts = (
        builder.stream(source, Consumed(key_serde=text, value_serde=json))
        .group_by_key(Grouped(key_serde=text, value_serde=json))
        .windowed_by(TimeWindows(minute))
        .count(materialized=Materialized("counts", key_serde=text, value_serde=number))
        .suppress(Suppressed.until_window_closes(BufferConfig()))
    )
    _write_windows(counts, sink, minute)
    return builder.build()


def join_streams(source: str, sink: str) -> Topology:
    """stream-join."""

    def add(event: Event, other: Event) -> Event:
        event["amount"] += other["amount"]
        return event

    builder = StreamsBuilder()
    first, second = (
        builder.stream(f"{source}-{number}", Consumed(key_serde=text, value_serde=json)) for number in (1, 2)
    )
    (
        first.join(
            second,
            add,
            windows=JoinWindows(timedelta(seconds=20), grace=GRACE),
            stream_joined=StreamJoined(key_serde=text, value_serde=json, other_value_serde=json, store_name="near"),
        ).to(sink, Produced(key_serde=text, value_serde=json))
    )
    return builder.build()


def join_versions(source: str, sink: str) -> Topology:
    """versioned-join."""

    def name(event: Event, customer: Event) -> Event:
        event["note"] = customer["name"]
        return event

    builder = StreamsBuilder()
    customers = builder.table(
        f"{source}-table",
        Consumed(key_serde=text, value_serde=json),
        materialized=Materialized(Stores.persistent_versioned_key_value_store("customers", GRACE)),
    )
    (
        builder.stream(source, Consumed(key_serde=text, value_serde=json))
        .join(customers, name, joined=Joined(key_serde=text, value_serde=json))
        .to(sink, Produced(key_serde=text, value_serde=json))
    )
    return builder.build()


def _write_windows(counts: KTable[Windowed[str], int], sink: str, size: timedelta) -> None:
    windows = WindowedSerdes.time_windowed(text, size)
    counts.to_stream().to(sink, Produced(key_serde=windows, value_serde=number))
