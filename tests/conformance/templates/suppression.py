"""Templates for suppressed tables: random limits and buffers over tables, groups, windows and joins."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.conformance.caselib import Step, step
from tests.conformance.templates.scenario import Input, Scenario, Template, csv, grouped, small, word
from tests.conformance.templates.shapes import sink, source, table
from tests.conformance.values import Json

_MANY_KEYS = [*"abcdefghijklmn", "long-key-1", "long-key-2", "é", ""]
_FEW_KEYS = [*"abcd"]
_CACHE = 10485760


def _buffer(rng: Random, *, strict: bool) -> Json:
    buffer: dict[str, Json] = {}
    if rng.random() < 0.6:
        if rng.random() < 0.7:
            buffer["max_records"] = rng.choice([0, 1, 2, 3, 5, 20])
        if rng.random() < 0.6:
            buffer["max_bytes"] = rng.choice([0, 40, 90, 200, 400, 2000])
        if strict or rng.random() < 0.3:
            buffer["when_full"] = rng.choice(["shut_down", "shut_down" if strict else "emit_early"])
    if "max_records" not in buffer and "max_bytes" not in buffer:
        buffer = {"unbounded": True}
    match rng.randint(0, 5):
        case 0:
            buffer["logging"] = False
        case 1:
            buffer["logging"] = {"cleanup.policy": "compact,delete", "retention.ms": "1000"}
    return buffer


def _suppressed(rng: Random, on: str, identifier: str = "x", *, windowed: bool = False) -> Step:
    parameters: dict[str, Any] = {}
    if rng.random() < 0.4:
        parameters["named"] = f"sup-{identifier}"
    if windowed and rng.random() < 0.8:
        parameters.update(until="window_closes", buffer=_buffer(rng, strict=True))
    else:
        limit = rng.choice([0, 1, 5, 12, 30, 1000])
        parameters.update(until="time_limit", time_limit_ms=limit, buffer=_buffer(rng, strict=False))
    return step(identifier, "suppress", on, **parameters)


def _stored(rng: Random, store: str) -> dict[str, Json]:
    if rng.random() < 0.4:
        return {}
    materialized: dict[str, Json] = {"store": store, "caching": rng.random() < 0.5}
    if rng.random() < 0.4:
        materialized["dsl_store"] = rng.choice(["rocks_db", "in_memory"])
    return {"materialized": materialized}


def _views(rng: Random, on: str, name: str) -> tuple[list[Step], str]:
    """Up to two filters and maps, stored or not."""
    made: list[Step] = []
    for number in range(rng.choice([0, 0, 1, 2])):
        identifier = f"{name}{number}"
        stored = _stored(rng, f"st-{identifier}") if rng.random() < 0.4 else {}
        if rng.random() < 0.5:
            fn: Json = rng.choice(["value_contains:1", "value_gt:2", "true", "key_contains:a"])
            made.append(step(identifier, rng.choice(["filter", "filter_not"]), on, fn=fn, **stored))
        else:
            fn = rng.choice(["append:!", ["null_if_eq:7", "append:1"]])
            made.append(step(identifier, "map_values", on, fn=fn, **stored))
        on = identifier
    return made, on


def _rules(rng: Random) -> dict[str, Any]:
    return {
        "headers": rng.choice([0.0, 0.4]),
        "late": rng.choice([0.0, 0.3, 0.6]),
        "cache": rng.choice([0, _CACHE, 300]),
        "config": {} if rng.random() < 0.7 else {"topology.optimization": "all"},
        "nulls": rng.choice([0.0, 0.15, 0.4]),
    }


def _of_table(rng: Random) -> Scenario:
    """A table, views of it, a suppression, views of that."""
    first: list[Step]
    match rng.randint(0, 2):
        case 0:
            first = [table("in", "t", **_stored(rng, "tab"))]
        case 1:
            first = [source(), step("t", "to_table", "s", **_stored(rng, "tab"))]
        case _:
            first = [
                source(),
                step("g", "group_by_key", "s", grouped={"key": "string", "value": "string"}),
                step("t", "reduce", "g", reducer="null_on:5", **_stored(rng, "tab")),
            ]
    before, on = _views(rng, "t", "b")
    after, last = _views(rng, "x", "a")
    topology = [*first, *before, _suppressed(rng, on), *after, step("o", "to_stream", last), sink("o")]
    if rng.random() < 0.3:
        topology += [step("o2", "to_stream", on), sink("o2", topic="out2", identifier="to2")]
    keys = rng.choice([_MANY_KEYS, _FEW_KEYS])
    return Scenario(topology, {"in": Input(keys, small)}, **_rules(rng))


def _grouped(rng: Random) -> Scenario:
    """A suppressed table whose rows are grouped, so that old values matter."""
    before, on = _views(rng, "t", "b")
    after, last = _views(rng, "x", "a")
    topology = [
        table("in", "t", **_stored(rng, "tab")),
        *before,
        _suppressed(rng, on),
        *after,
        step("g", "group_by", last, key=["value", "part:0:|"], value=["value", "part:1:|"]),
        step("c", "aggregate", "g", initializer="empty", adder="append:,", subtractor="remove:,"),
        step("o", "to_stream", "c"),
        sink("o"),
    ]
    return Scenario(topology, {"in": Input(_FEW_KEYS, grouped)}, **_rules(rng))


def _bursts(rng: Random) -> Scenario:
    """Several changes in one step, and two suppressions one after the other."""
    topology = [
        source(),
        step("f", "flat_map", "s", fn="split_kv:,:="),
        step("t", "to_table", "f", materialized={"key": "string", "value": "string"}),
        _suppressed(rng, "t"),
        _suppressed(rng, "x", "y"),
        step("o", "to_stream", "y"),
        sink("o"),
    ]

    def pairs(rng: Random) -> str:
        return ",".join(f"{rng.choice(_MANY_KEYS)}={word(rng)}" for _ in range(rng.randint(0, 20)))

    return Scenario(topology, {"in": Input(_FEW_KEYS, pairs)}, **_rules(rng))


def _windowed(rng: Random) -> Scenario:
    """A suppressed windowed aggregation."""
    grace = {"grace_ms": rng.choice([0, 4, 15])} if rng.random() < 0.8 else {}
    aggregation: tuple[str, dict[str, Json]] = rng.choice(
        [
            ("count", {}),
            ("reduce", {"reducer": "null_on:c"}),
            ("aggregate", {"initializer": "empty", "aggregator": "append_null_on:b"}),
        ]
    )
    windows: Json
    key = "time_windowed:string:10"
    match rng.randint(0, 3):
        case 0:
            windows = {"type": "time", "size_ms": 10, **grace}
        case 1:
            windows = {"type": "time", "size_ms": 10, "advance_ms": rng.choice([3, 5]), **grace}
        case 2:
            windows = {"type": "sliding", "difference_ms": 10, **grace}
        case _:
            windows, key = {"type": "session", "gap_ms": rng.choice([3, 6]), **grace}, "session_windowed:string"
            if aggregation[0] == "aggregate":
                aggregation = ("aggregate", {**aggregation[1], "merger": "concat:"})
    op, parameters = aggregation
    value = "long" if op == "count" else "string"
    stored = _stored(rng, "win") if rng.random() < 0.6 else {}
    between = [step("f", "filter", "r", fn="value_not_null")] if rng.random() < 0.3 else []
    topology = [
        source(),
        step("g", "group_by_key", "s", grouped={"key": "string", "value": "string"}),
        step("w", "windowed_by", "g", windows=windows),
        step("r", op, "w", **parameters, **stored),
        *between,
        _suppressed(rng, "f" if between else "r", windowed=True),
        step("o", "to_stream", "x"),
        sink("o", key, value),
    ]
    if rng.random() < 0.3:
        topology.insert(1, step("s2", "flat_map_values", "s", fn="split:,"))
        topology[2]["on"] = "s2"
    content, rules = rng.choice([word, csv]), _rules(rng)
    if windows["type"] == "sliding" and 0 < rules["cache"] < _CACHE:
        rules["cache"] = 0  # Kafka Streams loses rows of long sliding windows in a full one (``time_windows``)
    return Scenario(topology, {"in": Input(_FEW_KEYS, content)}, **rules)


def _joined(rng: Random) -> Scenario:
    """A suppressed table that others read: joined with a stream, or with a table."""
    before, on = _views(rng, "t", "b")
    after, last = _views(rng, "x", "a")
    topology = [table("in", "t", **_stored(rng, "tab")), *before, _suppressed(rng, on), *after]
    joiner = "concat:+"
    if rng.random() < 0.4:
        topology += [source("l", "l"), step("j", rng.choice(["join", "left_join"]), "l", with_=last, joiner=joiner)]
        topology += [sink("j")]
    else:
        sides = [("u", last), (last, "u")][rng.randint(0, 1)]
        op = rng.choice(["join", "left_join", "outer_join"])
        topology += [
            table("l", "u", **_stored(rng, "other")),
            step("j", op, sides[0], with_=sides[1], joiner=joiner, **_stored(rng, "joined")),
            step("o", "to_stream", "j"),
            sink("o"),
        ]
    return Scenario(topology, {"in": Input(_FEW_KEYS, small), "l": Input(_FEW_KEYS, word)}, **_rules(rng))


TEMPLATES: dict[str, Template] = {
    "suppress_table": Template("table", 2, _of_table),
    "suppress_grouped": Template("table", 2, _grouped),
    "suppress_bursts": Template("table", 2, _bursts),
    "suppress_windowed": Template("window", 2, _windowed),
    "suppress_joined": Template("table_table_join", 2, _joined),
}
