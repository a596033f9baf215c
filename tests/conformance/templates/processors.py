"""Templates for processors with their own stores, punctuators and versioned stores."""

from __future__ import annotations

from tests.conformance.caselib import Step, query, step
from tests.conformance.templates.scenario import Input, Template, fixed, grouped
from tests.conformance.templates.shapes import KEYS, WORDS, sink, source, table, versioned
from tests.conformance.values import Json

_TEXT = {"key": "string", "value": "string"}


def _window_store(kind: str, **fetch: Json) -> list[Step]:
    store = {"name": "ws", "kind": kind, "retention_ms": 30, "window_size_ms": 5, **_TEXT}
    read = {"name": "window_fetch", "store": "ws", "before_ms": 12, "after_ms": 12, **fetch}
    return [
        step("st", "add_state_store", store=store),
        source(),
        step("x", "process", "s", processor={"name": "window_put", "store": "ws"}, stores=["ws"]),
        step("y", "process", "x", processor=read, stores=["ws"]),
        sink("y"),
    ]


TEMPLATES: dict[str, Template] = {
    "versioned_store": fixed(
        "versioned",
        4,
        [
            step(
                "st",
                "add_state_store",
                store={
                    "name": "vs",
                    "kind": "versioned",
                    "history_retention_ms": 30,
                    "segment_interval_ms": 10,
                    **_TEXT,
                },
            ),
            source(),
            step("x", "process", "s", processor={"name": "versioned_put", "store": "vs"}, stores=["vs"]),
            sink("x", value="long"),
        ],
        WORDS,
        time_step=5,
        late=0.5,
        back=45,
        nulls=0.3,
        null_keys=0,
        queries=[
            query("vs", "get", key="a"),
            query("vs", "get", key="a", as_of=20),
            query("vs", "history", key="b"),
            query("vs", "get", key="b", as_of=40),
        ],
    ),
    "versioned_group": fixed(
        "versioned",
        4,
        [
            table("in", "t", materialized=versioned("vs")),
            step("g", "group_by", "t", key=["value", "part:0:|"], value=["value", "part:1:|"]),
            step("c", "aggregate", "g", initializer="empty", adder="append:,", subtractor="remove:,"),
            step("o", "to_stream", "c"),
            sink("o"),
        ],
        {"in": Input(KEYS, grouped)},
    ),
    "punctuate": fixed(
        "processor",
        2,
        [
            step("st", "add_state_store", store={"name": "kv", "kind": "persistent_kv", **_TEXT}),
            source(),
            step(
                "x",
                "process",
                "s",
                processor={"name": "buffer", "store": "kv", "interval_ms": 10, "type": "stream_time"},
                stores=["kv"],
            ),
            step(
                "y",
                "process",
                "s",
                processor={"name": "tick", "interval_ms": 15, "type": "wall_clock_time"},
            ),
            step("m", "merge", "x", with_="y"),
            sink("m"),
        ],
        WORDS,
        clock=0.15,
        null_keys=0,
    ),
    "window_store": fixed("processor", 2, _window_store("persistent_window"), WORDS, null_keys=0),
    "window_store_in_memory": fixed(
        "processor", 2, _window_store("in_memory_window", backward=True), WORDS, null_keys=0
    ),
}
