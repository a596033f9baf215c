"""Templates for windowed aggregations and cogrouped streams."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.conformance.caselib import Step, query, step
from tests.conformance.templates.scenario import Input, Template, fixed, word
from tests.conformance.templates.shapes import KEYS, WORDS, WORDS_AB, sink, source
from tests.conformance.values import Json

_GROUPED = step("g", "group_by_key", "s", grouped={"key": "string"})
_CONCAT: tuple[str, dict[str, Json]] = ("reduce", {"reducer": "concat:"})
_TUMBLING = {"type": "time", "size_ms": 10, "grace_ms": 6}
_CACHE = 10485760


def _windowed(
    windows: Json,
    aggregation: tuple[str, dict[str, Json]] = _CONCAT,
    key: str = "time_windowed:string:10",
    value: str = "string",
    **materialized: Any,
) -> list[Step]:
    op, parameters = aggregation
    store = {"materialized": materialized} if materialized else {}
    return [
        source(),
        _GROUPED,
        step("w", "windowed_by", "g", windows=windows),
        step("r", op, "w", **parameters, **store),
        step("o", "to_stream", "r"),
        sink("o", key, value),
    ]


def _on_close(windows: Json, op: str, key: str, value: str, **parameters: Any) -> list[Step]:
    return [
        source(),
        _GROUPED,
        step("w", "windowed_by", "g", windows=windows),
        step("e", "emit_strategy", "w", strategy="on_window_close"),
        step("r", op, "e", **parameters),
        step("o", "to_stream", "r"),
        sink("o", key, value),
    ]


def _key(rng: Random) -> str:
    return rng.choice(KEYS)


_APPEND: tuple[str, dict[str, Json]] = (
    "aggregate",
    {"initializer": "empty", "aggregator": "append:", "merger": "concat:"},
)

TEMPLATES: dict[str, Template] = {
    "tumbling": fixed(
        "window",
        2,
        _windowed({"type": "time", "size_ms": 10, "grace_ms": 10}, store="st"),
        WORDS,
        queries=[query("st", "all")],
    ),
    "hopping": fixed("window", 2, _windowed({"type": "time", "size_ms": 10, "advance_ms": 3, "grace_ms": 5}), WORDS),
    "hopping_cached": fixed(
        "window",
        2,
        _windowed({"type": "time", "size_ms": 10, "advance_ms": 4, "grace_ms": 15}, store="st", caching=True),
        WORDS,
        cache=_CACHE,
    ),
    "sliding": fixed(
        "window",
        2,
        _windowed({"type": "sliding", "difference_ms": 10, "grace_ms": 15}, store="st"),
        WORDS,
        queries=[query("st", "fetch_range", key="a", time_from=0, time_to=1000)],
    ),
    "session": fixed(
        "window",
        2,
        _windowed({"type": "session", "gap_ms": 5, "grace_ms": 20}, _APPEND, "session_windowed:string", store="st"),
        WORDS,
        queries=[query("st", "fetch", key="a")],
    ),
    "session_cached": fixed(
        "window",
        2,
        _windowed(
            {"type": "session", "gap_ms": 4, "grace_ms": 10},
            ("count", {}),
            "session_windowed:string",
            "long",
            store="st",
            caching=True,
        ),
        WORDS,
        cache=_CACHE,
    ),
    "window_close": fixed(
        "window",
        2,
        _on_close(
            {"type": "time", "size_ms": 10, "advance_ms": 5, "grace_ms": 6},
            "reduce",
            "time_windowed:string:10",
            "string",
            reducer="concat:",
        ),
        WORDS,
    ),
    "window_suppress": fixed(
        "window",
        2,
        [
            source(),
            _GROUPED,
            step("w", "windowed_by", "g", windows=_TUMBLING),
            step("r", "reduce", "w", reducer="concat:"),
            step("x", "suppress", "r", until="window_closes"),
            step("o", "to_stream", "x"),
            sink("o", "time_windowed:string:10"),
        ],
        WORDS,
    ),
    "session_close": fixed(
        "window",
        2,
        _on_close({"type": "session", "gap_ms": 4, "grace_ms": 4}, "count", "session_windowed:string", "long"),
        WORDS,
    ),
    "cogroup": fixed(
        "cogroup",
        2,
        [
            source("a", "a"),
            source("b", "b"),
            step("ga", "group_by_key", "a"),
            step("gb", "group_by", "b", fn="value"),
            step("c1", "cogroup", "ga", aggregator="append:"),
            step("c2", "cogroup", "c1", with_="gb", aggregator="append:-"),
            step("r", "aggregate", "c2", initializer="empty", materialized={"store": "st"}),
            step("o", "to_stream", "r"),
            sink("o"),
        ],
        {"a": Input(KEYS, word), "b": Input(KEYS, _key)},
    ),
    "cogroup_session": fixed(
        "cogroup",
        2,
        [
            source("a", "a"),
            source("b", "b"),
            step("ga", "group_by_key", "a", grouped={"key": "string"}),
            step("gb", "group_by_key", "b", grouped={"key": "string"}),
            step("c1", "cogroup", "ga", aggregator="append:"),
            step("c2", "cogroup", "c1", with_="gb", aggregator="append:-"),
            step("w", "windowed_by", "c2", windows={"type": "session", "gap_ms": 5, "grace_ms": 10}),
            step("r", "aggregate", "w", initializer="empty", merger="concat:"),
            step("o", "to_stream", "r"),
            sink("o", "session_windowed:string"),
        ],
        WORDS_AB,
        nulls=0,
    ),
}
