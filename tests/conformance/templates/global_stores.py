"""Random programs around global stores: tables and user processors that feed them, and streams that read them."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

from tests.conformance.caselib import Step, query, step
from tests.conformance.templates.scenario import Input, Scenario, Template, grouped, word
from tests.conformance.templates.shapes import KEYS, sink, source
from tests.conformance.values import Json

_TEXT = {"key": "string", "value": "string"}
_ROWS = ["x", "y", "z", "a", "b"]
_CACHES = [0, 0, 10485760, 120, 300]
_SELECTORS: list[Json] = [
    ["value", "part:0:|"],
    ["value", "part:0:|", "null_if_eq:z"],
    "key",
    ["key", "null_if_eq:b"],
    "value",
    "null",
]
_PRESENT: list[Json] = [["value", "part:0:|", "or_else:x"], ["key", "or_else:y"], ["value", "or_else:z"]]
"""Selectors that never give null, which no store takes for a key."""

_KINDS = ["persistent_kv", "in_memory_kv", "persistent_timestamped_kv", "in_memory_timestamped_kv"]
_WRITERS = ["kv_put", "kv_put", "kv_put", "kv_put_if_absent", "kv_delete", "dedup"]


class _Draw:
    """One program while it is drawn."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.steps: list[Step] = []
        self.tables: list[str] = []
        self.stores: list[str] = []
        self.inputs: dict[str, Input] = {}
        self.queries: list[Step] = []
        self.config: dict[str, Json] = {}
        self.cache = rng.choice(_CACHES)
        self.scans = False

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def read(self, store: str) -> None:
        reads = [query(store, "all"), query(store, "get", key="x"), query(store, "reverse_range", to="y")]
        self.queries.append(self.rng.choice(reads))

    def table(self, number: int) -> None:
        topic = f"glob{number}"
        parameters: dict[str, Any] = {}
        if self.chance(0.7):
            store = f"gs{number}"
            content: dict[str, Json] = {"store": store}
            if self.chance(0.4):
                content["kind"] = self.rng.choice([*_KINDS, "lru_timestamped_kv"])
                if content["kind"].startswith("lru"):
                    content["max_entries"] = 2
            elif self.chance(0.3):
                content["dsl_store"] = self.rng.choice(["in_memory", "rocks_db"])
            if self.chance(0.3):
                content["caching"] = self.chance(0.5)
            if self.chance(0.2):
                content["logging"] = self.rng.choice([False, {"retention.ms": "77"}])
            parameters["materialized"] = content
            self.stores.append(store)
            self.read(store)
        elif self.chance(0.05):
            parameters["materialized"] = {"caching": False}  # without a name: refused
        if self.chance(0.4):
            parameters["consumed"] = {**_TEXT, **({"name": f"named{number}"} if self.chance(0.4) else {})}
        if self.chance(0.1):
            parameters.setdefault("consumed", {})["timestamp_extractor"] = "add:7"
        self.tables.append(f"t{number}")
        self.steps.append(step(f"t{number}", "global_table", topic=topic, **parameters))
        self.inputs[topic] = Input(_ROWS, word)

    def store(self, number: int) -> None:
        name, topic = f"us{number}", f"feed{number}"
        kind = self.rng.choice([*_KINDS, "lru_kv"])
        store: dict[str, Json] = {"name": name, "kind": kind, **_TEXT}
        if kind.startswith("lru"):
            store["max_entries"] = 3
        if self.chance(0.3):
            store["caching"] = True
        if self.chance(0.3):
            store["logging"] = False
        processor: dict[str, Json] = {"name": self.rng.choice(_WRITERS), "store": name}
        if self.stores and self.chance(0.2):  # any global store may be written by any of their processors
            processor["store"] = self.rng.choice(self.stores)
        if self.chance(0.1):
            processor = {"name": "throw_if", "when": "value_eq:h", "message": "no h"}
            self.config["processing.exception.handler.global.enabled"] = True
            self.config["processing.exception.handler"] = "log_and_continue"
        self.stores.append(name)
        self.read(name)
        self.steps.append(
            step(f"g{number}", "add_global_store", store=store, topic=topic, consumed=_TEXT, processor=processor)
        )
        self.inputs[topic] = Input(_ROWS, word)

    def stream(self, number: int) -> None:
        on, topic = f"s{number}", f"in{number}"
        self.steps.append(source(topic, on))
        self.inputs[topic] = Input(KEYS, grouped, 3)
        self.scans = False
        for part in range(self.rng.randint(1, 3)):
            on = self._further(on, f"{number}p{part}")
        self.steps.append(sink(on, topic=self._target(number), identifier=f"to{number}"))

    def _target(self, number: int) -> str:
        topics = sorted(self.inputs.keys() - {"in0", "in1"})
        fed = self.rng.choice(topics) if self.chance(0.15) else None
        # a store that is fed with all that it has doubles with each record
        return f"out{number}" if fed is None or self.scans else fed

    def _further(self, on: str, name: str) -> str:
        if self.tables and self.chance(0.6):
            parameters: dict[str, Any] = {"joiner": self.rng.choice(["concat:+", "concat:-"])}
            if self.chance(0.3):
                parameters["joiner_with_key"] = True
            if self.chance(0.3):
                parameters["named"] = f"join-{name}"
            table, op = self.rng.choice(self.tables), self.rng.choice(["join", "left_join"])
            chosen = self.rng.choice(_SELECTORS)
            self.steps.append(step(f"j{name}", op, on, with_=table, key_selector=chosen, **parameters))
            return f"j{name}"
        if self.stores and self.chance(0.6):
            store = self.rng.choice(self.stores)
            read: dict[str, Json] = {"name": "kv_get", "store": store, "key": self.rng.choice(_PRESENT)}
            if self.chance(0.3):
                read = {"name": "kv_scan", "store": store, "scan": self.rng.choice(["all", "reverse_all"])}
                self.scans = True
            op = self.rng.choice(["process", "process_values"])
            self.steps.append(step(f"p{name}", op, on, processor=read))
            return f"p{name}"
        if self.chance(0.3):
            self.steps.append(step(f"r{name}", "repartition", on))
            return f"r{name}"
        if self.chance(0.4):
            self.steps.append(step(f"k{name}", "select_key", on, fn=["value", "part:0:|", "null_if_eq:y"]))
            return f"k{name}"
        self.steps.append(step(f"m{name}", "map_values", on, fn="append:!"))
        return f"m{name}"


def _program(rng: Random) -> Scenario:
    draw = _Draw(rng)
    parts = [partial(draw.table, number) for number in range(rng.randint(0, 2))]
    parts += [partial(draw.store, number) for number in range(rng.randint(0 if parts else 1, 2))]
    rng.shuffle(parts)
    for part in parts:
        part()
    for number in range(rng.randint(1, 2)):
        draw.stream(number)
    draw.config["topology.optimization"] = rng.choice(["none", "all"])
    reads_stores = any(made["op"].startswith("process") for made in draw.steps)
    if draw.chance(0.1) and not reads_stores:  # how a value with headers looks as text is Java's own business
        draw.config["dsl.store.format"] = "HEADERS"
    if draw.chance(0.2):
        draw.config["processing.exception.handler"] = "log_and_continue"
    null_keys = 0.0 if any(name.startswith("us") for name in draw.stores) and draw.chance(0.9) else 0.05
    return Scenario(
        draw.steps,
        draw.inputs,
        nulls=0.2,
        null_keys=null_keys,
        headers=0.1,
        queries=draw.queries,
        config=draw.config,
        cache=draw.cache,
    )


def _low_level(rng: Random) -> Scenario:
    """A read-only store, or a global one of the low-level call, read by a processor beside it."""
    store: dict[str, Json] = {"name": "kv", "kind": rng.choice(_KINDS), **_TEXT}
    if rng.random() < 0.3:
        store["caching"] = True
    if rng.random() < 0.3:
        store["logging"] = rng.choice([False, {"retention.ms": "77"}])
    op = rng.choice(["add_read_only_state_store", "add_global_store"])
    forward = rng.choice(["none", "new", "old"])
    parts = [
        step(
            "kv",
            op,
            store=store,
            source_name="rs",
            consumed=_TEXT,
            topic="table",
            processor_name="writer",
            processor={"name": "kv_put", "store": "kv", "forward": forward},
        ),
        step("src", "add_source", name="src", topics=["in"]),
    ]
    if rng.random() < 0.3:
        parts.reverse()
    reader = {"name": "kv_get", "store": "kv", "key": rng.choice(_PRESENT)}
    parts.append(step("get", "add_processor", name="get", processor=reader, parents=["src"]))
    if op == "add_read_only_state_store" or rng.random() < 0.1:
        parts.append(step("cn", "connect", processor="get", stores=["kv"]))
    parts.append(step("sk", "add_sink", name="sink", topic="out", parents=["get"]))
    return Scenario(
        parts,
        {"in": Input(KEYS, grouped, 2), "table": Input(_ROWS, word)},
        nulls=0.1,
        null_keys=0.0 if rng.random() < 0.8 else 0.03,
        headers=0.1,
        queries=[query("kv", "all")],
        cache=rng.choice(_CACHES),
    )


TEMPLATES: dict[str, Template] = {
    "global_programs": Template("global_table", 2, _program),
    "read_only_and_global_stores": Template("processor", 2, _low_level),
}
