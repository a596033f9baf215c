"""One topology of each family, for workers of their own: windows, sessions, suppression, joins, cogroup, versions.

``python -m pykstreams run families.py --set app.prefix=... --set app.folder=...``. Results are texts, windows in their
keys are told from the full hour on: ``a@100`` is key ``a`` in the window that starts 100 ms after it.

A record in the topic ``crash`` kills the worker, once in the life of ``app.folder``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pykstreams import (
    BufferConfig,
    BuiltInDslStoreSuppliers,
    Consumed,
    EmitStrategy,
    Grouped,
    Joined,
    JoinWindows,
    KGroupedStream,
    KStream,
    Materialized,
    Produced,
    Serdes,
    SessionWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
    TimeWindows,
    Topology,
    Windowed,
)
from pykstreams.serdes import WindowedSerdes
from tests.integration.crashes import crash_once

HOUR_MS = 3_600_000
TEXT = Serdes.string()
READ: Consumed[str, str] = Consumed(key_serde=TEXT, value_serde=TEXT)
WRITE: Produced[str, str] = Produced(key_serde=TEXT, value_serde=TEXT)
GROUPED: Grouped[str, str] = Grouped(key_serde=TEXT, value_serde=TEXT)

config = {
    "statestore.cache.max.bytes": 0,
    "repartition.purge.interval.ms": 100,
    # windows that have closed are looked for after every record
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": 0,
    "__emit.interval.ms.kstreams.windowed.aggregation__": 0,
}


def build(settings: StreamsConfig) -> Topology:
    """All families side by side: each is a sub-topology, or two, with topics of its own."""
    prefix, folder = str(settings["app.prefix"]), Path(str(settings["app.folder"]))

    def topic(name: str) -> str:
        return f"{prefix}-{name}"

    builder = StreamsBuilder()
    windowed_count(builder, topic)
    sessions(builder, topic)
    closed_windows(builder, topic)
    stream_joins(builder, topic)
    table_joins(builder, topic)
    cogroup(builder, topic)
    versioned_joins(builder, topic)
    builder.stream(topic("crash"), READ).foreach(lambda key, value: crash_once(folder / "crashed"))
    return builder.build(settings)


def windowed_count(builder: StreamsBuilder, topic: Callable[[str], str]) -> None:
    """Words, counted in windows behind a repartition topic; sent on with windowed keys."""
    words = builder.stream(topic("words"), READ).group_by(lambda _, word: word, GROUPED.replace(name="by-word"))
    counts = words.windowed_by(TimeWindows(100, grace=50)).count(
        materialized=Materialized("counts"), late_records_to=topic("late-words")
    )
    written = Produced(key_serde=WindowedSerdes.time_windowed(TEXT, 100), value_serde=TEXT)
    counts.to_stream().map_values(str).to(topic("counts"), written)


def sessions(builder: StreamsBuilder, topic: Callable[[str], str]) -> None:
    visits = builder.stream(topic("visits"), READ).group_by_key(GROUPED)
    counts = visits.windowed_by(SessionWindows(50, grace=20)).count(materialized=Materialized("sessions"))
    counts.to_stream(session_text).map_values(str).to(topic("sessions"), WRITE)


def closed_windows(builder: StreamsBuilder, topic: Callable[[str], str]) -> None:
    """Final results in three ways: windows and sessions that are emitted on close, and a suppression."""
    amounts: KGroupedStream[str, str] = builder.stream(topic("amounts"), READ).group_by_key(GROUPED)
    windows, on_close = TimeWindows(100), EmitStrategy.ON_WINDOW_CLOSE
    closed = amounts.windowed_by(windows).emit_strategy(on_close).count(materialized=Materialized("closed"))
    closed.to_stream(window_text).map_values(str).to(topic("closed"), WRITE)

    by_gaps = amounts.windowed_by(SessionWindows(50)).emit_strategy(on_close)
    ended = by_gaps.count(materialized=Materialized("ended"))
    ended.to_stream(session_text).map_values(str).to(topic("ended"), WRITE)

    counts = amounts.windowed_by(windows).count(materialized=Materialized("amounts"))
    finals = counts.suppress(Suppressed.until_window_closes(BufferConfig.UNBOUNDED, name="finals"))
    finals.to_stream(window_text).map_values(str).to(topic("finals"), WRITE)


def stream_joins(builder: StreamsBuilder, topic: Callable[[str], str]) -> None:
    """A left join over stores on disk and an outer join over stores in memory, of the same streams."""
    left, right = builder.stream(topic("left"), READ), builder.stream(topic("right"), READ)
    windows = JoinWindows(100)
    options: StreamJoined[str, str, str] = StreamJoined(key_serde=TEXT, value_serde=TEXT, other_value_serde=TEXT)
    on_disk = options.replace(store_name="left-join")
    left.left_join(right, pair, windows=windows, stream_joined=on_disk).to(topic("left-joined"), WRITE)
    in_memory = options.replace(store_name="outer-join", dsl_store_suppliers=BuiltInDslStoreSuppliers.IN_MEMORY)
    left.outer_join(right, pair, windows=windows, stream_joined=in_memory).to(topic("outer-joined"), WRITE)


def table_joins(builder: StreamsBuilder, topic: Callable[[str], str]) -> None:
    """A stream joined with a table, and this table with another one."""
    names = builder.table(topic("names"), READ, materialized=Materialized("names"))
    cities = builder.table(topic("cities"), READ, materialized=Materialized("cities"))
    orders: KStream[str, str] = builder.stream(topic("orders"), READ)
    orders.left_join(names, pair).to(topic("named"), WRITE)
    profiles = names.outer_join(cities, pair, materialized=Materialized("profiles", value_serde=TEXT))
    profiles.to_stream().to(topic("profiles"), WRITE)


def cogroup(builder: StreamsBuilder, topic: Callable[[str], str]) -> None:
    """Two streams in one aggregate, whole and by window; the second comes through a repartition topic."""
    seconds = builder.stream(topic("seconds"), READ).group_by_key(GROUPED)
    pages = builder.stream(topic("pages"), READ)
    by_customer = pages.group_by(lambda _, page: page.partition(":")[0], GROUPED.replace(name="by-customer"))
    customers = seconds.cogroup(lambda key, value, seen: f"{seen} s{value}".strip()).cogroup(
        by_customer, lambda key, page, seen: f"{seen} p{page.partition(':')[2]}".strip()
    )
    whole = customers.aggregate(str, materialized=Materialized("customers", key_serde=TEXT, value_serde=TEXT))
    whole.to_stream().to(topic("customers"), WRITE)
    by_window = customers.windowed_by(TimeWindows(100, grace=100)).aggregate(
        str, materialized=Materialized("customers-by-window", key_serde=TEXT, value_serde=TEXT)
    )
    by_window.to_stream(window_text).to(topic("customers-by-window"), WRITE)


def versioned_joins(builder: StreamsBuilder, topic: Callable[[str], str]) -> None:
    """A stream joined with a table as of the time of its records, at once and after a grace."""
    history = Materialized[str, str](Stores.persistent_versioned_key_value_store("prices", 300))
    prices = builder.table(topic("prices"), READ, materialized=history)
    sales: KStream[str, str] = builder.stream(topic("sales"), READ)
    sales.left_join(prices, pair).to(topic("priced"), WRITE)
    later: Joined[str, str, str] = Joined(name="priced-later", key_serde=TEXT, value_serde=TEXT, grace_period=50)
    sales.left_join(prices, pair, joined=later).to(topic("priced-later"), WRITE)


def pair(one: str | None, other: str | None) -> str:
    return f"{one}+{other}"


def window_text(windowed: Windowed[str], value: Any) -> str:
    return f"{windowed.key}@{windowed.window.start % HOUR_MS}"


def session_text(windowed: Windowed[str], value: Any) -> str:
    return f"{windowed.key}@{windowed.window.start % HOUR_MS}-{windowed.window.end % HOUR_MS}"
