"""Templates for sessions: aggregations over every kind of store, what stands below them, and stores of processors."""

from __future__ import annotations

from random import Random

from tests.conformance.caselib import Step, query, step
from tests.conformance.templates.scenario import Input, Scenario, Template, word
from tests.conformance.templates.shapes import sink, source
from tests.conformance.values import Json

_KEYS = ["a", "b", "ab", ""]
_TEXT = {"key": "string", "value": "string"}
_MAX = 2**63 - 1


def _aggregation(rng: Random) -> tuple[str, str, dict[str, Json]]:
    """Draws an aggregation: its operation, the serde of its result, its parameters."""
    merger = rng.choice(["concat:", "concat:+", "null"]) if rng.random() < 0.9 else "concat:."
    choices: list[tuple[str, str, dict[str, Json]]] = [
        ("count", "long", {}),
        ("reduce", "string", {"reducer": rng.choice(["concat:", "latest", "null_on:c", "first"])}),
        ("aggregate", "string", {"initializer": "empty", "aggregator": "append:", "merger": merger}),
        ("aggregate", "string", {"initializer": "const:=", "aggregator": "append_null_on:b", "merger": merger}),
        ("aggregate", "string", {"initializer": "null", "aggregator": "append_with_key:/", "merger": "concat:"}),
        ("aggregate", "string", {"initializer": "empty", "aggregator": "append_throw_on:b:bad", "merger": merger}),
    ]
    return rng.choice(choices)


def _materialized(rng: Random, needed: int, serde: str, *, on_close: bool) -> dict[str, Json]:
    """Draws where sessions are kept, which is at least as long as needed.

    Users' stores in RocksDB cannot be read by time in Kafka Streams, as is needed where sessions are emitted on close.
    """
    kind = rng.choice([None, None, "in_memory_session" if on_close else "persistent_session", "in_memory_session"])
    store: dict[str, Json] = {"store": "st", "key": "string", "value": serde}
    if kind is not None:
        store |= {"kind": kind, "retention_ms": needed + rng.choice([0, 1, 50])}
    elif rng.random() < 0.3:
        store["retention_ms"] = needed + rng.choice([0, 3, 100])
    elif rng.random() < 0.4:
        store["dsl_store"] = rng.choice(["rocks_db", "in_memory"])
    if rng.random() < 0.6:
        store["caching"] = rng.random() < 0.6
    if rng.random() < 0.2:
        store["logging"] = False
    return store


def _below(rng: Random, serde: str) -> list[Step]:
    """Draws what stands below the table of sessions ``r``."""
    text = step("m", "map_values", "r", fn="show")
    keyed: dict[str, Json] = {"key": "session_windowed:string", "value": serde}
    choices: list[list[Step]] = [
        [step("o", "to_stream", "r"), sink("o", "session_windowed:string", serde)],
        [step("o", "to_stream", "r"), sink("o", "session_windowed:string", serde)],
        [text, step("o", "to_stream", "m"), sink("o", "session_windowed:string")],
        [
            step(
                "f",
                "filter",
                "r",
                fn="value_contains:a",
                materialized={"store": "fs", **keyed},
            ),
            step("o", "to_stream", "f"),
            sink("o", "session_windowed:string", serde),
        ],
        [
            step("h", "group_by", "r", key=["key", "window_key"], value=["value", "show"], grouped=_TEXT),
            step("c", "aggregate", "h", initializer="empty", adder="append:,", subtractor="remove:,"),
            step("o", "to_stream", "c"),
            sink("o"),
        ],
        [
            step("x", "suppress", "r", until="window_closes"),
            step("o", "to_stream", "x"),
            sink("o", "session_windowed:string", serde),
        ],
    ]
    return rng.choice(choices)


def _queries(rng: Random) -> list[Step]:
    """Draws reads of the store, of the kinds that every layer of Kafka Streams answers."""
    now = rng.choice([0, 10, 40])
    return rng.sample(
        [
            query("st", "fetch", key="a"),
            query("st", "backward_fetch", key="a"),
            query("st", "fetch_keys", from_="a", to="b"),
            query("st", "backward_fetch_keys", from_="", to="b"),
            query("st", "find_sessions", key="b", earliest_end=now, latest_start=now + 30),
            query("st", "find_sessions", key="ab", earliest_end=now, latest_start=_MAX),
            query("st", "find_sessions", from_="a", to="b", earliest_end=now, latest_start=now + 100),
            query("st", "backward_find_sessions", key="a", earliest_end=now, latest_start=_MAX),
            query("st", "fetch_session", key="a", start=now, end=now + 5),
        ],
        3,
    )


def _program(rng: Random) -> Scenario:
    scale = rng.choice([1, 1, 1, 1000, 20_000])
    gap = scale * rng.choice([1, 2] if scale > 1000 else [1, 3, 5, 12])  # before time 0 by a segment, it fails
    grace = scale * rng.choice([0, 1, 6, 20, 100])
    op, serde, parameters = _aggregation(rng)
    on_close = rng.random() < 0.3
    named = rng.random() < 0.7
    if named:
        parameters["materialized"] = _materialized(rng, gap + grace, serde, on_close=on_close)
    windows: Json = {"type": "session", "gap_ms": gap, "grace_ms": grace}
    if rng.random() < 0.1:
        del windows["grace_ms"]
    topology = [
        source(),
        step("g", "group_by_key", "s", grouped={"key": "string"})
        if rng.random() < 0.8
        else step("g", "group_by", "s", fn=["value", "or_else:a"], grouped={"key": "string"}),
        step("w", "windowed_by", "g", windows=windows),
        *([step("e", "emit_strategy", "w", strategy="on_window_close")] if on_close else []),
        step("r", op, "e" if on_close else "w", **parameters),
        *_below(rng, serde),
    ]
    config: dict[str, Json] = {}
    if "throw" in str(parameters):
        config["processing.exception.handler"] = rng.choice(["log_and_continue", "log_and_continue", "log_and_fail"])
    if rng.random() < 0.3:
        config["dsl.store.suppliers.class"] = rng.choice(["in_memory", "rocks_db"])
    if rng.random() < 0.3:
        config["dsl.store.format"] = "HEADERS"
    return Scenario(
        topology,
        {"in": Input(_KEYS, word)},
        time_step=4 * scale,
        late=rng.choice([0.1, 0.3, 0.6]),
        back=25 * scale,
        clock=rng.choice([0.0, 0.1]),
        headers=0.2,
        queries=_queries(rng) if named else (),
        config=config,
        cache=rng.choice([0, 150, 400, 1000, 10_485_760, 10_485_760]),
    )


def _session(rng: Random) -> str:
    """A session to put, or, without a value, to remove."""
    start = rng.randint(0, 30)
    end = start + rng.choice([0, 0, 1, 5, 20])
    return f"{start}|{end}|{rng.choice(['x', 'y', 'z', 'zz', ''])}"


def _store(rng: Random) -> Scenario:
    """Processors that put, remove and find sessions, which may overlap here."""
    store = {
        "name": "st",
        "kind": rng.choice(["persistent_session", "in_memory_session"]),
        "retention_ms": rng.choice([10, 30, 1000]),
        "key": "string",
        "value": "string",
        "caching": rng.random() < 0.5,
        "logging": rng.random() < 0.8,
    }
    find = {"name": "session_find", "store": "st", "before_ms": 12, "after_ms": rng.choice([0, 12, 60])}
    return Scenario(
        [
            step("st", "add_state_store", store=store),
            source(),
            step("x", "process", "s", processor={"name": "session_put", "store": "st"}, stores=["st"]),
            step("y", "process", "x", processor=find, stores=["st"]),
            sink("y"),
        ],
        {"in": Input(_KEYS, _session)},
        nulls=0.0,
        null_keys=0.0,
        queries=_queries(rng),
        cache=rng.choice([0, 150, 400, 10_485_760]),
    )


TEMPLATES: dict[str, Template] = {
    "session_program": Template("session", 2, _program),
    "session_store": Template("session", 2, _store),
}
