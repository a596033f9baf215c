"""Templates for aggregations of streams and for tables."""

from __future__ import annotations

from tests.conformance.caselib import query, step
from tests.conformance.templates.scenario import Input, Template, csv, fixed, grouped, small, word
from tests.conformance.templates.shapes import KEYS, WORDS, sink, source, table

_BY_GROUP = {"key": ["value", "part:0:|"], "value": ["value", "part:1:|"]}

TEMPLATES: dict[str, Template] = {
    "count": fixed(
        "aggregate",
        1,
        [
            source(),
            step("g", "group_by_key", "s"),
            step("c", "count", "g", materialized={"store": "st"}),
            step("o", "to_stream", "c"),
            sink("o", value="long"),
        ],
        WORDS,
        queries=[query("st", "all")],
    ),
    "aggregate_rekeyed": fixed(
        "aggregate",
        1,
        [
            source(),
            step("g", "group_by", "s", fn=["value", "part:0:|"]),
            step(
                "c",
                "aggregate",
                "g",
                initializer="const:^",
                aggregator="append_null_on:x|5",
                materialized={"store": "st"},
            ),
            step("o", "to_stream", "c"),
            sink("o"),
        ],
        {"in": Input(KEYS, grouped)},
    ),
    "reduce_cached_burst": fixed(
        "aggregate",
        1,
        [
            source(),
            step("f", "flat_map_values", "s", fn="split:,"),
            step("g", "group_by_key", "f"),
            step("c", "reduce", "g", reducer="concat:", materialized={"store": "st", "caching": True}),
            step("o", "to_stream", "c"),
            sink("o"),
        ],
        {"in": Input(KEYS, csv)},
        cache=10485760,
    ),
    "gtable": fixed(
        "table",
        1,
        [
            table("in", "t"),
            step("g", "group_by", "t", **_BY_GROUP),
            step(
                "c",
                "aggregate",
                "g",
                initializer="empty",
                adder="append:,",
                subtractor="remove:,",
                materialized={"store": "st"},
            ),
            step("o", "to_stream", "c"),
            sink("o"),
            step("c2", "count", "g"),
            step("o2", "to_stream", "c2"),
            sink("o2", value="long", topic="out2", identifier="to2"),
        ],
        {"in": Input(KEYS, grouped)},
    ),
    "table_views": fixed(
        "table",
        1,
        [
            table("in", "t", materialized={"store": "st"}),
            step("f", "filter", "t", fn="value_gt:3"),
            step("m", "map_values", "f", fn=["null_if_eq:7", "append:!"], materialized={"store": "m"}),
            step("n", "filter_not", "m", fn="value_contains:1"),
            step("o", "to_stream", "n"),
            sink("o"),
        ],
        {"in": Input(KEYS, small)},
    ),
    "suppress": fixed(
        "table",
        2,
        [
            table("in", "t"),
            step("x", "suppress", "t", until="time_limit", time_limit_ms=8, buffer={"max_records": 2}),
            step("o", "to_stream", "x"),
            sink("o"),
        ],
        {"in": Input([*KEYS, "d"], word)},
    ),
}
