"""Changes of a topology, each with what it does to state and records, and the verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pykstreams import (
    Grouped,
    KStream,
    Materialized,
    Repartitioned,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
)
from pykstreams.core.errors import TopologyError
from pykstreams.topology.changes.comparison import Verdict, compare, verdict_of
from pykstreams.topology.changes.shape import TopologyShape, shape_from, shape_of

Build = Callable[[StreamsBuilder], object]
TEXT, LONG = Serdes.string(), Serdes.long()
SAFE, NAMES, RESET = Verdict.SAFE, Verdict.NEEDS_NAMES, Verdict.NEEDS_RESET


def shape(build: Build, name: str = "shop") -> TopologyShape:
    config = StreamsConfig({"application.id": name, "default.key.serde": TEXT, "default.value.serde": TEXT})
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
    ("longer windows", windowed(10**9), windowed(10**10), RESET, [("broken", "counts")]),
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


def test_other_json_is_no_shape() -> None:
    with pytest.raises(TopologyError, match="describe --format json"):
        shape_from({"format": 1, "stores": []})
    with pytest.raises(TopologyError, match="another format"):
        shape_from({"format": 99})
