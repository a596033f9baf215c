"""Changes of a topology, each with what it does to state and records, and the verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pykstreams import (
    BufferConfig,
    CountWindows,
    EmitStrategy,
    Grouped,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    Repartitioned,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamJoined,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
    TimeWindows,
)
from pykstreams.core.errors import TopologyError
from pykstreams.serdes.primitives import StringSerde
from pykstreams.topology.changes.change import Change, Verdict
from pykstreams.topology.changes.comparison import compare, verdict_of
from pykstreams.topology.changes.shape import TopologyShape, shape_from, shape_of

Build = Callable[[StreamsBuilder], object]
TEXT, LONG = Serdes.string(), Serdes.long()
ON_CLOSE = EmitStrategy.ON_WINDOW_CLOSE
WINDOWS: dict[str, Any] = {
    "windows": TimeWindows(60_000, grace=60_000),
    "sliding windows": SlidingWindows(60_000, grace=60_000),
    "sessions": SessionWindows(60_000, grace=60_000),
}
SAFE, NAMES, RESET = Verdict.SAFE, Verdict.NEEDS_NAMES, Verdict.NEEDS_RESET


def shape(build: Build, name: str = "shop", **settings: object) -> TopologyShape:
    config = StreamsConfig({"application.id": name, "default.key.serde": TEXT, "default.value.serde": TEXT, **settings})
    builder = StreamsBuilder()
    build(builder)
    return shape_of(builder.build().plan(config), config)


def orders(builder: StreamsBuilder) -> KStream[Any, Any]:
    return builder.stream("orders")


def counted(builder: StreamsBuilder) -> None:
    orders(builder).group_by_key().count(materialized=Materialized("counts"))


def regrouped(builder: StreamsBuilder, **options: Any) -> None:
    grouped = orders(builder).group_by(lambda key, value: value, Grouped(name="by-item", **options))
    grouped.count(materialized=Materialized("counts"))


def unnamed(builder: StreamsBuilder) -> None:
    orders(builder).group_by_key().count()


def unnamed_below_a_filter(builder: StreamsBuilder) -> None:
    orders(builder).filter(lambda key, value: True).group_by_key().count()


def regrouped_without_name(builder: StreamsBuilder) -> None:
    orders(builder).group_by(lambda key, value: value).count(materialized=Materialized("counts"))


def regrouped_without_name_below_a_filter(builder: StreamsBuilder) -> None:
    kept = orders(builder).filter(lambda key, value: True)
    kept.group_by(lambda key, value: value).count(materialized=Materialized("counts"))


def counted_and_reduced(builder: StreamsBuilder) -> None:
    grouped = orders(builder).group_by_key()
    grouped.count(materialized=Materialized("counts"))
    grouped.reduce(lambda one, other: one, materialized=Materialized("last"))


def counted_beside_returns(builder: StreamsBuilder) -> None:
    counted(builder)
    returns: KStream[Any, Any] = builder.stream("returns")
    returns.group_by_key().count(materialized=Materialized("returned"))


def counted_after_returns(builder: StreamsBuilder) -> None:
    builder.stream("returns").foreach(print)
    counted(builder)


def reduced(builder: StreamsBuilder) -> None:
    orders(builder).group_by_key().reduce(lambda one, other: one, materialized=Materialized("counts"))


def windowed(size_ms: int) -> Build:
    def build(builder: StreamsBuilder) -> None:
        windows = TimeWindows(timedelta(milliseconds=size_ms))
        orders(builder).group_by_key().windowed_by(windows).count(materialized=Materialized("counts"))

    return build


def in_windows(windows: Any, *, emit: EmitStrategy | None = None, logging: bool = True) -> Build:
    def build(builder: StreamsBuilder) -> None:
        windowed: Any = orders(builder).group_by_key().windowed_by(windows)
        windowed = windowed if emit is None else windowed.emit_strategy(emit)
        windowed.count(materialized=Materialized("counts", logging=logging))

    return build


def joined(windows: JoinWindows) -> Build:
    def build(builder: StreamsBuilder) -> None:
        payments: KStream[Any, Any] = builder.stream("payments")
        options: StreamJoined[Any, Any, Any] = StreamJoined(name="paid", store_name="paid")
        orders(builder).join(payments, lambda one, other: one, windows=windows, stream_joined=options)

    return build


def versioned(history_ms: int | None) -> Build:
    store = (
        Stores.persistent_key_value_store("prices")
        if history_ms is None
        else Stores.persistent_versioned_key_value_store("prices", history_ms)
    )
    return lambda builder: builder.table("prices", materialized=Materialized(store))


def by_value(name: str, topic: str = "orders") -> Build:
    def build(builder: StreamsBuilder) -> None:
        stream: KStream[Any, Any] = builder.stream(topic)
        stream.group_by(lambda key, value: value).count(materialized=Materialized(name))

    return build


def through(name: str) -> Build:
    """Orders are written to a topic of their own, and counted as they are read from it."""

    def build(builder: StreamsBuilder) -> None:
        orders(builder).to("paid")
        paid: KStream[Any, Any] = builder.stream("paid")
        paid.group_by_key().count(materialized=Materialized(name))

    return build


def suppressed(name: str | None) -> Build:
    def build(builder: StreamsBuilder) -> None:
        windows = TimeWindows(timedelta(minutes=1))
        grouped = orders(builder).group_by(lambda key, value: value)
        counts = grouped.windowed_by(windows).count(materialized=Materialized("counts"))
        counts.suppress(Suppressed.until_window_closes(BufferConfig(), name=name))

    return build


def never_suppressed(builder: StreamsBuilder) -> None:
    grouped = orders(builder).group_by(lambda key, value: value)
    grouped.windowed_by(TimeWindows(timedelta(minutes=1))).count(materialized=Materialized("counts"))


def with_table_of_new_topic(builder: StreamsBuilder) -> None:
    counted(builder)
    customers: KTable[Any, Any] = builder.table("customers", materialized=Materialized("customers"))
    orders(builder).join(customers, lambda order, customer: order).foreach(print)


def in_memory(name: str) -> Build:
    store = Stores.in_memory_key_value_store(name)
    return lambda builder: orders(builder).group_by_key().count(materialized=Materialized(store, logging=False))


def counted_in_memory(builder: StreamsBuilder) -> None:
    orders(builder).group_by_key().count(materialized=Materialized(Stores.in_memory_key_value_store("counts")))


def unlogged(builder: StreamsBuilder) -> None:
    orders(builder).group_by_key().count(materialized=Materialized("counts", logging=False))


def repartitioned(count: int) -> Build:
    return lambda builder: orders(builder).repartition(Repartitioned(name="x", num_partitions=count)).foreach(print)


def filtered(builder: StreamsBuilder) -> None:
    orders(builder).filter(lambda key, value: True).group_by_key().count(materialized=Materialized("counts"))


CASES: list[tuple[str, Build, Build, Verdict, list[tuple[str, str]]]] = [
    ("nothing", counted, counted, SAFE, []),
    ("step between named ones", counted, filtered, SAFE, []),
    (
        "step before a generated store",
        unnamed,
        unnamed_below_a_filter,
        NAMES,
        [("renamed", "KSTREAM-AGGREGATE-STATE-STORE-0000000001")],
    ),
    (
        "step before a repartition topic that its store names",
        regrouped_without_name,
        regrouped_without_name_below_a_filter,
        SAFE,
        [],
    ),
    ("store that is new over old input", counted, counted_and_reduced, RESET, [("empty", "last")]),
    ("store that is gone", counted_and_reduced, counted, SAFE, [("orphaned", "last")]),
    ("store over new input", counted, counted_beside_returns, SAFE, [("new", "returned"), ("new", "returns")]),
    ("other sub-topology", counted, counted_after_returns, SAFE, [("moved", "counts"), ("new", "returns")]),
    ("other value serde of a store", counted, reduced, RESET, [("broken", "counts")]),
    ("windows instead of keys", counted, windowed(1000), RESET, [("broken", "counts")]),
    (
        "longer windows",
        windowed(10**9),
        windowed(10**10),
        RESET,
        [("broken", "counts"), ("broken", "counts"), ("moved", "counts")],
    ),
    (
        "store behind a repartition topic has another name",
        by_value("counts"),
        by_value("totals"),
        RESET,
        [
            ("orphaned", "counts"),
            ("empty", "totals"),
            ("orphaned", "counts-repartition"),
        ],
    ),
    (
        "store and its topic are others",
        by_value("counts"),
        by_value("totals", "returns"),
        SAFE,
        [
            ("orphaned", "counts"),
            ("new", "totals"),
            ("orphaned", "counts-repartition"),
            ("gone", "orders"),
            ("new", "returns"),
        ],
    ),
    (
        "store over a topic that only the new one writes",
        counted,
        through("totals"),
        RESET,
        [("orphaned", "counts"), ("empty", "totals"), ("new", "paid")],
    ),
    (
        "store over a topic that the old one wrote",
        lambda builder: orders(builder).to("paid"),
        through("totals"),
        SAFE,
        [("new", "totals"), ("new", "paid")],
    ),
    ("table of a new topic beside an old one", counted, with_table_of_new_topic, SAFE, [("new", "customers")] * 2),
    (
        "suppression loses its name",
        suppressed("final"),
        suppressed(None),
        RESET,
        [("orphaned", "final-store"), ("empty", "KTABLE-SUPPRESS-STATE-STORE-0000000007")],
    ),
    (
        "suppression is gone",
        suppressed("final"),
        never_suppressed,
        RESET,
        [("orphaned", "final-store")],
    ),
    (
        "store that nothing is kept of has another name",
        in_memory("one"),
        in_memory("two"),
        SAFE,
        [("orphaned", "one"), ("new", "two")],
    ),
    (
        "another size, and the same retention",
        in_windows(TimeWindows(300_000, grace=60_000)),
        in_windows(TimeWindows(240_000, grace=120_000)),
        RESET,
        [("broken", "counts")],
    ),
    (
        "another advance",
        in_windows(TimeWindows(300_000)),
        in_windows(TimeWindows(300_000, advance_by=60_000)),
        RESET,
        [("broken", "counts")],
    ),
    (
        "another kind of windows",
        in_windows(TimeWindows(300_000, grace=600_000)),
        in_windows(SlidingWindows(300_000, grace=300_000)),
        RESET,
        [("broken", "counts")],
    ),
    (
        "another gap",
        in_windows(SessionWindows(60_000, grace=60_000)),
        in_windows(SessionWindows(30_000, grace=90_000)),
        RESET,
        [("broken", "counts")],
    ),
    (
        "shorter grace, and so other segments",
        in_windows(SessionWindows(60_000, grace=3_600_000)),
        in_windows(SessionWindows(60_000, grace=60_000)),
        SAFE,
        [("moved", "counts")],
    ),
    (
        "longer grace, for which the changelog topic keeps rows",
        in_windows(SessionWindows(60_000, grace=60_000)),
        in_windows(SessionWindows(60_000, grace=3_600_000)),
        SAFE,
        [("changed", "counts"), ("moved", "counts")],
    ),
    (
        "longer grace than the changelog topic keeps rows",
        in_windows(SessionWindows(60_000, grace=60_000)),
        in_windows(SessionWindows(60_000, grace=2 * 86_400_000)),
        RESET,
        [("broken", "counts"), ("moved", "counts")],
    ),
    (
        "longer join windows",
        joined(JoinWindows(60_000)),
        joined(JoinWindows(1_800_000)),
        SAFE,
        [(kind, f"paid-{side}-join-store") for side in ("other", "this") for kind in ("changed", "changed", "moved")],
    ),
    *(
        (f"{name} on close", in_windows(windows), in_windows(windows, emit=ON_CLOSE), SAFE, [("moved", "counts")])
        for name, windows in WINDOWS.items()
    ),
    *(
        (f"{name} at once", in_windows(windows, emit=ON_CLOSE), in_windows(windows), SAFE, [("moved", "counts")])
        for name, windows in WINDOWS.items()
    ),
    (
        "windows on close, and no changelog",
        in_windows(TimeWindows(60_000), logging=False),
        in_windows(TimeWindows(60_000), logging=False, emit=ON_CLOSE),
        RESET,
        [("broken", "counts")],
    ),
    (
        "windows on close, and a changelog at last",
        in_windows(TimeWindows(60_000), logging=False),
        in_windows(TimeWindows(60_000), emit=ON_CLOSE),
        RESET,
        [("orphaned", "counts"), ("broken", "counts")],
    ),
    ("from disk into memory", counted, counted_in_memory, RESET, [("broken", "counts")]),
    (
        "grace that leaves segments as they are",
        in_windows(TimeWindows(30_000, grace=60_000)),
        in_windows(TimeWindows(30_000, grace=10_000)),
        SAFE,
        [],
    ),
    (
        "other join windows",
        joined(JoinWindows(60_000, grace=60_000)),
        joined(JoinWindows(before=60_000, after=30_000, grace=90_000)),
        SAFE,
        [("changed", "paid-other-join-store"), ("changed", "paid-this-join-store")],
    ),
    (
        "another number of records",
        in_windows(CountWindows(3)),
        in_windows(CountWindows(5)),
        SAFE,
        [("changed", "counts")],
    ),
    ("longer history", versioned(10**9), versioned(10**10), RESET, [("broken", "prices"), ("moved", "prices")]),
    ("history at last", versioned(None), versioned(10**9), RESET, [("broken", "prices")]),
    ("no changelog any more", counted, unlogged, RESET, [("orphaned", "counts")]),
    ("a changelog now", unlogged, counted, SAFE, [("orphaned", "counts")]),
    ("other repartition count", repartitioned(2), repartitioned(3), RESET, [("broken", "x-repartition")]),
    (
        "other serde in a repartition topic",
        regrouped,
        lambda builder: regrouped(builder, value_serde=LONG),
        RESET,
        [("broken", "by-item-repartition")],
    ),
]


@pytest.mark.parametrize(("old", "new", "verdict", "kinds"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_change_has_its_consequences_and_verdict(
    old: Build, new: Build, verdict: Verdict, kinds: list[tuple[str, str]]
) -> None:
    changes = compare(shape(old), shape(new))

    assert (verdict_of(changes), [(one.kind, one.where) for one in changes]) == (verdict, kinds)


def test_other_application_id_begins_from_nothing() -> None:
    (change,) = compare(shape(counted), shape(counted, "shop-2"))

    assert (change.verdict, change.where) == (RESET, "shop")


def test_shape_is_read_back_from_json() -> None:
    found = shape(windowed(1000))

    assert shape_from(json.loads(json.dumps(found.as_dict()))) == found


def of_older_release(found: TopologyShape) -> TopologyShape:
    """As a release has kept it that knew nothing of windows, and of what leads where."""
    data = json.loads(json.dumps(found.as_dict()))
    for store in data["stores"]:
        for name in ("windows", "window_size_ms", "segment_interval_ms", "history_retention_ms", "fed_by", "disk_form"):
            del store[name]
    del data["written"]
    return shape_from({**data, "format": 1})


def test_shape_of_an_older_release_is_read_and_what_it_does_not_tell_is_said() -> None:
    old = of_older_release(shape(in_windows(TimeWindows(300_000, grace=60_000))))
    (change,) = compare(old, shape(in_windows(TimeWindows(240_000, grace=120_000))))

    assert (change.kind, change.where, change.verdict) == ("unknown", "counts", SAFE)
    assert "does not tell the definition of the windows" in change.what


@pytest.mark.parametrize("both", [False, True])
def test_renamed_store_of_an_older_release_is_found(both: bool) -> None:
    new = shape(by_value("totals"))
    changes = compare(of_older_release(shape(by_value("counts"))), of_older_release(new) if both else new)

    assert verdict_of(changes) is RESET


def of_kind(changes: tuple[Change, ...], kind: str) -> list[Change]:
    return [change for change in changes if change.kind == kind]


def test_lost_name_is_told_with_all_ways_out() -> None:
    orphaned, _ = of_kind(compare(shape(by_value("counts")), shape(by_value("totals"))), "orphaned")

    assert orphaned.what == (
        "the store is gone with its rows, which stay in shop-counts-changelog; without them begins totals, which may "
        "be meant to be the same"
    )
    assert orphaned.cure == (
        "keep the name 'counts', in the Materialized or StreamJoined of the step that it comes from, or as its name=; "
        "or begin anew with 'pykstreams reset', or make the rows with 'pykstreams backfill'"
    )


def with_customers(name: str) -> Build:
    def build(builder: StreamsBuilder) -> None:
        customers: KTable[str, str] = builder.table("customers")
        placed: KTable[str, str] = builder.table("orders")
        placed.join(customers, lambda order, customer: order, foreign_key_extractor=str.upper, name=name)

    return build


def test_lost_name_of_a_foreign_key_join_is_told_as_it_is_given() -> None:
    changes = compare(shape(with_customers("placed-by")), shape(with_customers("ordered-by")))
    [orphaned] = [one for one in of_kind(changes, "orphaned") if one.where == "placed-by-subscription-store"]

    assert orphaned.cure.startswith("keep name='placed-by' at the foreign-key join that it comes from; or begin anew")


@pytest.mark.parametrize("build", [counted, *map(in_windows, WINDOWS.values())], ids=["keys", *WINDOWS])
def test_stores_with_headers_are_restored(build: Build) -> None:
    plain, with_headers = shape(build), shape(build, **{"dsl.store.format": "HEADERS"})
    changes = [*compare(plain, with_headers), *compare(with_headers, plain)]

    assert [(one.kind, one.where, one.verdict) for one in changes] == [("moved", "counts", SAFE)] * 2


def test_form_that_an_older_release_does_not_tell_is_said() -> None:
    data = json.loads(json.dumps(shape(in_windows(TimeWindows(60_000))).as_dict()))
    for store in data["stores"]:
        del store["disk_form"], store["changelog_retention_ms"]
    (change,) = compare(shape_from({**data, "format": 3}), shape(in_windows(TimeWindows(60_000), emit=ON_CLOSE)))

    assert (change.kind, change.where, change.verdict) == ("unknown", "counts", SAFE)
    assert "does not tell in which form rows lie on disk" in change.what


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (counted, unlogged, "the store was restored from counts-changelog, and has none any more"),
        (unlogged, counted, "the store had no changelog, and is restored from counts-changelog now"),
        (
            versioned(10**9),
            versioned(None),
            "the store keeps old versions, and the new one keeps none: rows have another form",
        ),
        (
            versioned(None),
            versioned(10**9),
            "the store keeps no old versions, and the new one keeps them: rows have another form",
        ),
        (
            repartitioned(1),
            repartitioned(3),
            "the repartition topic had 1 partition and is to have 3: keys change their partitions",
        ),
    ],
)
def test_what_has_changed_is_told_in_whole_sentences(old: Build, new: Build, what: str) -> None:
    assert [one.what for one in compare(shape(old), shape(new))] == [what]


def test_changed_window_size_says_what_happens_to_rows() -> None:
    old = shape(in_windows(TimeWindows(300_000, grace=60_000)))
    (change,) = compare(old, shape(in_windows(TimeWindows(240_000, grace=120_000))))

    assert change.what.startswith(
        "the windows were TimeWindows(size_ms=300000, advance_ms=300000) and are TimeWindows(size_ms=240000, "
        "advance_ms=240000): a row has only the start of its window"
    )
    assert "pykstreams reset" in change.cure


def test_other_json_is_no_shape() -> None:
    with pytest.raises(TopologyError, match="describe --format json"):
        shape_from({"format": 1, "stores": []})
    with pytest.raises(TopologyError, match="another format"):
        shape_from({"format": 99})


def test_function_whose_result_no_annotation_tells_leaves_the_default_serdes_as_they_are() -> None:
    """A topology that was kept by a release which did not tell the reason has not changed."""
    found = shape(regrouped_without_name)
    (store,), (repartitioned,) = found.stores, found.repartition_topics

    assert store.key_serde == "StringSerde"
    assert repartitioned.key_serde == "StringSerde"


@pytest.mark.parametrize("given", [StringSerde, "pykstreams.serdes.primitives:StringSerde"])
def test_default_serde_is_known_by_what_it_is_however_it_is_set(given: Any) -> None:
    assert shape(regrouped, **{"default.key.serde": given}) == shape(regrouped)


def test_other_default_serde_that_is_set_as_text_is_found() -> None:
    text, number = "pykstreams.serdes.primitives:StringSerde", "pykstreams.serdes.primitives:LongSerde"
    changes = compare(
        shape(regrouped, **{"default.value.serde": text}), shape(regrouped, **{"default.value.serde": number})
    )

    assert verdict_of(changes) is RESET
    assert any("StringSerde" in change.what and "LongSerde" in change.what for change in changes)
