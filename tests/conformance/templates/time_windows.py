"""Templates for aggregations in time windows: every kind of window, store and result, on update and on close.

Left out are long sliding windows with a full cache: Kafka Streams loses updates of rows that leave the cache while it
reads them (docs/reference/differences.md), of which it has several there.
"""

from __future__ import annotations

from random import Random

from tests.conformance.caselib import Step, query, step
from tests.conformance.templates.scenario import Input, Scenario, Template, csv, word
from tests.conformance.templates.shapes import sink, source
from tests.conformance.values import Json

_KEYS = ["a", "b", "c", "ab", ""]
_FULL = 300
_CACHES = [0, 0, _FULL, 10485760]


def _windows(rng: Random, kind: str, *, full: bool) -> tuple[Json, int, int]:
    """Gives windows, their size as serdes write it, and the least retention."""
    grace = rng.choice([None, 0, 3, 10, 40])
    given = {} if grace is None else {"grace_ms": grace}
    if kind == "unlimited":
        return {"type": "unlimited", **rng.choice([{}, {"start_ms": 15}])}, 1, 2**63 - 1
    if kind == "sliding":
        difference = rng.choice([1, 4] if full else [1, 4, 10, 25])
        return {"type": "sliding", "difference_ms": difference, **given}, difference, 2 * difference + (grace or 0)
    size = rng.choice([1, 5, 10, 20])
    advance = {"advance_ms": rng.randint(1, size)} if kind == "hopping" else {}
    return {"type": "time", "size_ms": size, **advance, **given}, size, size + (grace or 0)


def _materialized(rng: Random, size: int, least: int, kind: str, *, serde: str, close: bool) -> dict[str, Json]:
    if rng.random() < 0.25:
        return {}
    options: dict[str, Json] = {"key": "string"} if rng.random() < 0.3 else {}
    if rng.random() < 0.3:
        options["value"] = serde
    if rng.random() < 0.75:
        options["store"] = "win"
    options["caching"] = rng.random() < 0.5
    if rng.random() < 0.15:
        options["logging"] = rng.choice([False, {"segment.ms": "777"}])
    if kind != "unlimited" and "store" in options and rng.random() < 0.2:
        retention = least + rng.choice([0, 7, 100])
        plain = [] if close else ["persistent_window"]  # it loses the timestamps with which windows are emitted
        supplier = rng.choice(["in_memory_window", "persistent_timestamped_window", *plain])
        options.update(kind=supplier, window_size_ms=size, retention_ms=retention)
        return {"materialized": options}
    if kind != "unlimited" and rng.random() < 0.3:
        options["retention_ms"] = least + rng.choice([0, 1, 50])
    if rng.random() < 0.4:
        options["dsl_store"] = rng.choice(["rocks_db", "in_memory"])
    return {"materialized": options}


def _after(rng: Random, size: int, value: str) -> list[Step]:
    """What reads the windowed table."""
    key = f"time_windowed:string:{size}"
    match rng.randint(0, 5):
        case 0:
            part = rng.choice(["window_key", "window_start", "show"])
            return [step("o", "to_stream", "r", fn=["key", part, "show"]), sink("o", "string", value)]
        case 1:
            stored = {"materialized": {"store": "view", "key": key, "value": value}} if rng.random() < 0.5 else {}
            fn = rng.choice(["value_contains:b", "value_eq:a", "true"]) if value == "string" else "value_gt:1"
            return [
                step("f", rng.choice(["filter", "filter_not"]), "r", fn=fn, **stored),
                step("o", "to_stream", "f"),
                sink("o", key, value),
            ]
        case 2:
            return [
                step(
                    "g2",
                    "group_by",
                    "r",
                    key=["key", "window_key"],
                    value=["value", "show"],
                    grouped={"key": "string", "value": "string"},
                ),
                step("c", "aggregate", "g2", initializer="empty", adder="append:,", subtractor="remove:,"),
                step("o", "to_stream", "c"),
                sink("o"),
            ]
        case 3:
            return [
                step("f", "filter", "r", fn="true"),
                step("j", rng.choice(["join", "left_join", "outer_join"]), "r", with_="f", joiner="concat:+"),
                step("o", "to_stream", "j"),
                sink("o", key),
            ]
        case _:
            return [step("o", "to_stream", "r"), sink("o", key, value)]


def _scenario(rng: Random, kind: str, *, close: bool) -> Scenario:
    cache = rng.choice(_CACHES)
    windows, size, least = _windows(rng, kind, full=cache == _FULL)
    op, parameters, value = rng.choice(
        [
            ("count", {}, "long"),
            ("reduce", {"reducer": rng.choice(["concat:", "null_on:c", "latest"])}, "string"),
            (
                "aggregate",
                {
                    "initializer": rng.choice(["empty", "null"]),
                    "aggregator": rng.choice(["append:", "append_null_on:b"]),
                },
                "string",
            ),
        ]
    )
    topology = [source()]
    last = "s"
    if rng.random() < 0.3:
        topology.append(step("s2", "flat_map_values", "s", fn="split:,"))
        last = "s2"
    grouped: dict[str, Json] = {} if rng.random() < 0.2 else {"grouped": {"key": "string", "value": "string"}}
    if grouped and rng.random() < 0.2:
        grouped = {"grouped": {"key": "string", "value": "string", "name": "by-key"}}
    if rng.random() < 0.25:
        topology.append(step("g", "group_by", last, fn="value", **grouped))
    else:
        topology.append(step("g", "group_by_key", last, **grouped))
    topology.append(step("w", "windowed_by", "g", windows=windows))
    if close or rng.random() < 0.1:
        topology.append(step("e", "emit_strategy", "w", strategy="on_window_close" if close else "on_window_update"))
    named = {"named": "agg"} if rng.random() < 0.2 else {}
    stored = _materialized(rng, size, least, kind, serde=value, close=close)
    topology.append(
        step("r", op, "e" if topology[-1]["op"] == "emit_strategy" else "w", **parameters, **named, **stored)
    )
    topology += _after(rng, size, value)
    queries: list[Step] = []
    if stored.get("materialized", {}).get("store"):
        queries = [
            rng.choice(
                [
                    query("win", "all"),
                    query("win", "fetch_range", key="a", time_from=0, time_to=60),
                    query("win", "fetch_all", time_from=10, time_to=40),
                ]
            )
        ]
    config: dict[str, Json] = {}
    if rng.random() < 0.2:
        config["dsl.store.suppliers.class"] = "in_memory"
    if rng.random() < 0.2:
        config["topology.optimization"] = "all"
    if rng.random() < 0.15:
        config["dsl.store.format"] = "HEADERS"
    return Scenario(
        topology,
        {"in": Input(_KEYS, rng.choice([word, csv]))},
        late=rng.choice([0.0, 0.3, 0.6]),
        back=rng.choice([3, 12, 40]),
        time_step=rng.choice([1, 4, 12]),
        nulls=rng.choice([0.0, 0.15]),
        headers=rng.choice([0.0, 0.4]),
        cache=cache,
        queries=queries,
        config=config,
    )


def _template(kind: str, *, close: bool = False) -> Template:
    return Template("window", 2, lambda rng: _scenario(rng, kind, close=close))


TEMPLATES: dict[str, Template] = {
    "any_tumbling": _template("tumbling"),
    "any_hopping": _template("hopping"),
    "any_sliding": _template("sliding"),
    "any_unlimited": _template("unlimited"),
    "any_tumbling_close": _template("tumbling", close=True),
    "any_hopping_close": _template("hopping", close=True),
    "any_sliding_close": _template("sliding", close=True),
}
