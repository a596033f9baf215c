"""The same topologies as in ``java/Interop.java``, for ``pykstreams run applications.py:count``.

Topics are named with the setting ``app.prefix``; windows are shown by their time within the hour, as there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pykstreams import (
    BufferConfig,
    BufferFullStrategy,
    BuiltInDslStoreSuppliers,
    Consumed,
    EmitStrategy,
    Grouped,
    Joined,
    JoinWindows,
    Materialized,
    Processor,
    Produced,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
    TableJoined,
    TimeWindows,
    Topology,
)

Fill: TypeAlias = Callable[[StreamsBuilder, str], None]


def application(fill: Fill) -> Callable[[StreamsConfig], Topology]:
    """What ``pykstreams run`` calls, from a function that fills a builder."""

    def build(config: StreamsConfig) -> Topology:
        builder = StreamsBuilder(config)
        fill(builder, str(config["app.prefix"]))
        return builder.build(config)

    return build


S, L = Serdes.string(), Serdes.long()
HOUR = 3_600_000
READ, WRITE, WRITE_L = (
    Consumed(key_serde=S, value_serde=S),
    Produced(key_serde=S, value_serde=S),
    Produced(key_serde=S, value_serde=L),
)
GROUPED = Grouped(key_serde=S, value_serde=S)
TUMBLING = TimeWindows(100, grace=50)
M_L, M_S = Materialized(key_serde=S, value_serde=L), Materialized(key_serde=S, value_serde=S)


def text(w: Any, _: object) -> str:
    return f"{w.key}@{w.window.start % HOUR}"


def session(w: Any, _: object) -> str:
    return f"{w.key}@{w.window.start % HOUR}-{w.window.end % HOUR}"


def pair(a: str | None, b: str | None) -> str:
    return f"{'null' if a is None else a}+{'null' if b is None else b}"


POISON = "poison-for-python"


def head(v: str) -> str:
    if v == POISON:
        raise ValueError(POISON)
    return v.split(" ")[0]


def fk(v: str | None) -> str | None:
    return None if v is None or v.startswith("-") else head(v)


@application
def count(b: StreamsBuilder, x: str) -> None:
    b.stream(x + "in", READ).group_by(lambda k, v: head(v), GROUPED).count().to_stream().to(x + "out", WRITE_L)


@application
def counts_of_three_partitions(b: StreamsBuilder, x: str) -> None:
    (
        b.stream(x + "in", READ)
        .group_by(lambda k, v: head(v), GROUPED.replace(name="by-word"))
        .count(materialized=M_L.replace(store="counts"))
        .to_stream()
        .to(x + "out", WRITE_L)
    )


@application
def aggregate(b: StreamsBuilder, x: str) -> None:
    (
        b.stream(x + "in", READ)
        .group_by(lambda k, v: head(v), GROUPED)
        .aggregate(str, lambda k, v, a: v if len(a) > 60 else a + "|" + v, materialized=M_S)
        .to_stream()
        .to(x + "out", WRITE)
    )


@application
def suppressed_windows(b: StreamsBuilder, x: str) -> None:
    (
        b.stream(x + "in", READ)
        .group_by_key(GROUPED)
        .windowed_by(TUMBLING)
        .count(materialized=M_L)
        .suppress(Suppressed.until_window_closes(BufferConfig.UNBOUNDED))
        .to_stream(text)
        .to(x + "out", WRITE_L)
    )


@application
def suppress_until_time_limit(b: StreamsBuilder, x: str) -> None:
    early = BufferConfig(max_records=3, when_full=BufferFullStrategy.EMIT_EARLY)
    (
        b.stream(x + "in", READ)
        .group_by_key(GROUPED)
        .count(materialized=M_L)
        .suppress(Suppressed.until_time_limit(80, early, name="limit"))
        .to_stream()
        .to(x + "out", WRITE_L)
    )


@application
def emit_on_window_close(b: StreamsBuilder, x: str) -> None:
    (
        b.stream(x + "in", READ)
        .group_by_key(GROUPED)
        .windowed_by(TimeWindows(100, advance_by=50, grace=50))
        .emit_strategy(EmitStrategy.ON_WINDOW_CLOSE)
        .count()
        .to_stream(text)
        .to(x + "out", WRITE_L)
    )


JOINED = StreamJoined(key_serde=S, value_serde=S, other_value_serde=S)


@application
def left_stream_join(b: StreamsBuilder, x: str) -> None:
    left, right = b.stream(x + "left", READ), b.stream(x + "right", READ)
    left.left_join(right, pair, windows=JoinWindows(50, grace=30), stream_joined=JOINED).to(x + "out", WRITE)


@application
def outer_stream_join(b: StreamsBuilder, x: str) -> None:
    left, right = b.stream(x + "left", READ), b.stream(x + "right", READ)
    options = JOINED.replace(name="oj", store_name="ojs")
    left.outer_join(right, pair, windows=JoinWindows(50, grace=30), stream_joined=options).to(x + "out", WRITE)


@application
def left_foreign_key_join(b: StreamsBuilder, x: str) -> None:
    left, right = b.table(x + "left", READ), b.table(x + "right", READ)
    left.left_join(right, pair, foreign_key_extractor=fk).to_stream().to(x + "out", WRITE)


@application
def inner_foreign_key_join(b: StreamsBuilder, x: str) -> None:
    left, right = b.table(x + "left", READ), b.table(x + "right", READ)
    joined = left.join(
        right,
        pair,
        foreign_key_extractor=fk,
        table_joined=TableJoined(name="fk"),
        materialized=M_S.replace(store="joined"),
    )
    joined.to_stream().to(x + "out", WRITE)


@application
def versioned_table_with_grace(b: StreamsBuilder, x: str) -> None:
    prices = b.table(
        x + "right", READ, materialized=Materialized(Stores.persistent_versioned_key_value_store("prices", 300))
    )
    joined = Joined(key_serde=S, value_serde=S, other_value_serde=S, name="pj", grace_period=50)
    b.stream(x + "left", READ).left_join(prices, pair, joined=joined).to(x + "out", WRITE)


@application
def versioned_table(b: StreamsBuilder, x: str) -> None:
    prices = b.table(
        x + "right", READ, materialized=Materialized(Stores.persistent_versioned_key_value_store("prices", 300))
    )
    prices.to_stream().to(x + "out2", WRITE)
    joined = Joined(key_serde=S, value_serde=S, other_value_serde=S)
    b.stream(x + "left", READ).left_join(prices, pair, joined=joined).to(x + "out", WRITE)


@application
def sessions(b: StreamsBuilder, x: str) -> None:
    (
        b.stream(x + "in", READ)
        .group_by_key(GROUPED)
        .windowed_by(SessionWindows(40, grace=60))
        .aggregate(str, lambda k, v, a: a + "|" + v, lambda k, a, c: a + "&" + c, materialized=M_S)
        .to_stream(session)
        .to(x + "out", WRITE)
    )


@application
def table_aggregate(b: StreamsBuilder, x: str) -> None:
    (
        b.table(x + "in", READ)
        .group_by(lambda k, v: (head(v), v), GROUPED)
        .aggregate(str, lambda k, v, a: f"{a}+{len(v)}", lambda k, v, a: f"{a}-{len(v)}", materialized=M_S)
        .to_stream()
        .to(x + "out", WRITE)
    )


@application
def cogroup(b: StreamsBuilder, x: str) -> None:
    one = b.stream(x + "left", READ).group_by_key(GROUPED)
    two = b.stream(x + "right", READ).group_by(lambda k, v: head(v), GROUPED)
    both = one.cogroup(lambda k, v, a: f"{a}l{len(v)}").cogroup(two, lambda k, v, a: f"{a}r{len(v)}")
    both.aggregate(str, materialized=M_S.replace(store="both")).to_stream().to(x + "out", WRITE)


@application
def stores_in_memory(b: StreamsBuilder, x: str) -> None:
    grouped = b.stream(x + "in", READ).group_by_key(GROUPED)
    kept = M_L.replace(store_type=BuiltInDslStoreSuppliers.IN_MEMORY)
    grouped.count(materialized=kept).to_stream().to(x + "out", WRITE_L)
    grouped.windowed_by(TUMBLING).count(materialized=kept).to_stream(text).to(x + "out2", WRITE_L)


@application
def sliding_windows(b: StreamsBuilder, x: str) -> None:
    (
        b.stream(x + "in", READ)
        .group_by_key(GROUPED)
        .windowed_by(SlidingWindows(40, grace=60))
        .count(materialized=M_L)
        .to_stream(session)
        .to(x + "out", WRITE_L)
    )


@application
def table_joins(b: StreamsBuilder, x: str) -> None:
    one = b.table(x + "left", READ)
    two = b.table(x + "right", READ, materialized=Materialized("two"))
    one.outer_join(two, pair).to_stream().to(x + "out", WRITE)
    b.stream(x + "in", READ).left_join(two, pair).to(x + "out2", WRITE)


@application
def shared_repartition(b: StreamsBuilder, x: str) -> None:
    keyed = b.stream(x + "in", READ).select_key(lambda k, v: head(v))
    keyed.group_by_key(GROUPED).count(materialized=M_L).to_stream().to(x + "out", WRITE_L)
    keyed.group_by_key(GROUPED).reduce(lambda a, v: v + "<" + head(a), materialized=M_S).to_stream().to(
        x + "out2", WRITE
    )
    table = b.table(x + "right", READ)
    left = b.stream(x + "left", READ)
    left.join(table, pair).to(x + "out3", WRITE)
    left.join(left, pair, windows=JoinWindows(50, grace=30), stream_joined=JOINED).to(x + "out4", WRITE)


class Own(Processor[str, str, str, str]):
    """Counts in one store, and lists in the other what it has seen lately."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.seen = context.get_state_store("my-own.store")
        self.windows = context.get_state_store("my_windows")

    def process(self, r: Any) -> None:
        if r.key is None:
            return
        if r.value is None:
            self.seen.delete(r.key)
            self.context.forward(r.replace(value="gone"))
            return
        n = self.seen.get(r.key)
        self.seen.put(r.key, 1 if n is None else n + 1)
        start = r.timestamp // 100 * 100
        before = self.windows.fetch_one(r.key, start)
        self.windows.put(r.key, f"{before or ''}.{len(r.value)}", start)
        with self.windows.fetch(r.key, r.timestamp - 250, r.timestamp) as found:
            rows = list(found)
        shown = "".join(f"{at % HOUR}{value};" for at, value in rows)
        self.context.forward(r.replace(value=f"{self.seen.get(r.key)}:{shown}"))


@application
def own_stores(b: StreamsBuilder, x: str) -> None:
    b.add_state_store(Stores.key_value_store_builder(Stores.persistent_key_value_store("my-own.store"), S, L))
    b.add_state_store(
        Stores.window_store_builder(
            Stores.persistent_window_store("my_windows", 400, 100, retain_duplicates=False), S, S
        )
    )
    b.stream(x + "in", READ).process(Own, "my-own.store", "my_windows").to(x + "out", WRITE)
