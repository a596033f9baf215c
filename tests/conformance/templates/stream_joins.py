"""Random programs of stream-stream joins: which sides, which windows, which stores, and what comes after them."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.conformance.caselib import Step, step
from tests.conformance.templates.scenario import Input, Scenario, Template, grouped
from tests.conformance.values import Json

_KEYS = ["a", "b", "c"]
_OPTIMIZATIONS = ["none", "none", "all", "all", "single.store.self.join", "merge.repartition.topics"]
_CONTINUE = {"processing.exception.handler": "log_and_continue"}
_WINDOW_KINDS = ["persistent_window", "in_memory_window", "persistent_timestamped_window"]
_KEY_CHANGES = ["value", "part:0:|", ["part:1:|", "null_if_eq:3"], ["key", "append:!"], ["part:0:|", "null_if_eq:z"]]


@dataclass(slots=True)
class _Joins:
    rng: Random
    failing: bool
    steps: list[Step] = field(default_factory=list)
    streams: list[str] = field(default_factory=list)
    inputs: dict[str, Input] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    counter: int = 0

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def add(self, op: str, on: str | None = None, **parameters: Any) -> str:
        self.counter += 1
        identifier = f"s{self.counter}"
        self.steps.append(step(identifier, op, on, **parameters))
        if on is not None:
            self.used.add(on)
        return identifier

    def name(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def source(self, topic: str) -> str:
        self.inputs[topic] = Input(_KEYS, grouped)
        return self.add("stream", topic=topic)

    def side(self) -> str:
        """A stream to join: one that is there, a source, or a step behind one."""
        rng = self.rng
        if self.streams and self.chance(0.6):
            stream = rng.choice(self.streams[-4:])
        else:
            stream = self.source(rng.choice(["a", "b", "c"]))
            self.streams.append(stream)
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
            stream = self.changed(stream)
            self.streams.append(stream)
        return stream

    def changed(self, on: str) -> str:
        match self.rng.choice(["select_key", "select_key", "map_values", "filter", "merge", "repartition", "flat_map"]):
            case "select_key":
                return self.add("select_key", on, fn=self.rng.choice(_KEY_CHANGES))
            case "map_values":
                return self.add("map_values", on, fn=self.rng.choice(["upper", "null_if_contains:4", "append:~"]))
            case "filter":
                return self.add(
                    "filter", on, fn=self.rng.choice(["value_not_null", "key_not_null", "value_contains:x"])
                )
            case "merge":
                others = [stream for stream in self.streams if stream != on]
                return self.add("merge", on, with_=self.rng.choice(others)) if others else on
            case "repartition":
                return self.add("repartition", on, repartitioned={"name": self.name("rp")})
            case _:
                return self.add("flat_map", on, fn="repeat:2")

    def join(self) -> None:
        rng = self.rng
        left = self.side()
        right = left if self.chance(0.2) else self.side()
        op = rng.choice(["join", "left_join", "outer_join"])
        windows = self.windows()
        parameters: dict[str, Json] = {"windows": windows}
        if self.chance(0.7):
            parameters["stream_joined"] = self.options(windows)
        joiner = rng.choice(["concat:+", "concat:+", "concat:+", "left", "right", "null_if_left_eq:x|3"])
        if self.chance(0.3):
            joiner = "concat_with_key:="
            parameters["joiner_with_key"] = self.chance(0.8)
        if self.failing and self.chance(0.15):
            joiner = "throw:boom"
        self.used.add(right)
        self.streams.append(self.add(op, left, with_=right, joiner=joiner, **parameters))

    def windows(self) -> dict[str, Json]:
        """Windows that are not empty whichever bound is set first; longer than 0 ms, as Java cannot show others."""
        rng = self.rng
        both = rng.choice([1, 2, 4, 8, 15]) if self.chance(0.8) else 0
        windows: dict[str, Json] = {"difference_ms": both} if both else {}
        if self.chance(0.3):
            windows["before_ms"] = rng.choice([1 - both, 0, 1, 9])
        if self.chance(0.3):
            windows["after_ms"] = rng.choice([1 - windows.get("before_ms", both), 2, 12])
        if windows.get("before_ms", both) + windows.get("after_ms", both) < 1:
            windows["after_ms"] = 7 - windows.get("before_ms", both)
        if self.chance(0.7):
            windows["grace_ms"] = rng.choice([0, 1, 5, 20])
        return windows

    def options(self, windows: dict[str, Json]) -> dict[str, Json]:
        rng = self.rng
        options: dict[str, Json] = {}
        if self.chance(0.4):
            options["name"] = self.name("join-")
        if self.chance(0.4):
            options["store_name"] = self.name("st-")
        if self.chance(0.2):
            options["logging"] = rng.choice([False, {"segment.bytes": "1000", "retention.ms": "77"}])
        if self.chance(0.3):
            options["dsl_store"] = rng.choice(["in_memory", "rocks_db"])
        for side in ("this_store", "other_store"):
            if self.chance(0.25):
                options[side] = self.supplier(windows)
        if self.chance(0.3):
            options.update(key="string", value="string", other_value="string")
        return options

    def supplier(self, windows: dict[str, Json]) -> Json:
        both: int = windows.get("difference_ms", 0)
        size = windows.get("before_ms", both) + windows.get("after_ms", both)
        retention = size + windows.get("grace_ms", 0)
        wrong = self.chance(0.05)
        return {
            "name": self.name("own-"),
            "kind": self.rng.choice(_WINDOW_KINDS),
            "retention_ms": max(0, retention + wrong),
            "window_size_ms": max(0, size),
            "retain_duplicates": not self.chance(0.03),
        }

    def after(self) -> None:
        """Something behind a join: a step, or an aggregation."""
        on = self.rng.choice(self.streams)
        if self.failing and self.chance(0.5):
            self.streams.append(self.add("map_values", on, fn="throw_if_null:none"))
        elif self.chance(0.4):
            table = self.add("aggregate", self.add("group_by_key", on), initializer="empty", aggregator="append:,")
            self.streams.append(self.add("to_stream", table))
        else:
            self.streams.append(self.changed(on))

    def finish(self) -> None:
        for number, stream in enumerate(self.streams):
            if stream not in self.used:
                self.add("to", stream, topic=f"out{number}")

    def config(self) -> dict[str, Json]:
        rng = self.rng
        config: dict[str, Json] = {"topology.optimization": rng.choice(_OPTIMIZATIONS)}
        if self.chance(0.15):
            config["dsl.store.suppliers.class"] = rng.choice(["in_memory", "rocks_db"])
        if self.chance(0.1):
            config["dsl.store.format"] = "HEADERS"
        if self.chance(0.04):
            config["ensure.explicit.internal.resource.naming"] = True
        if self.failing:
            config.update(_CONTINUE)
        return config


def _program(rng: Random) -> Scenario:
    made = _Joins(rng, failing=rng.random() < 0.2)
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3])):
        made.join()
    if made.chance(0.4):
        made.after()
    made.finish()
    equal = made.chance(0.15)
    return Scenario(
        made.steps,
        made.inputs,
        time_step=0 if equal else rng.choice([1, 4, 10]),
        late=0.0 if equal else rng.choice([0.0, 0.3]),
        nulls=rng.choice([0.0, 0.1]),
        null_keys=rng.choice([0.0, 0.1]),
        headers=rng.choice([0.05, 0.4]),
        config=made.config(),
        cache=rng.choice([0, 0, 10485760]),
    )


def _self_join(rng: Random) -> Scenario:
    """A stream joined with itself, by the same object or by reading the topic twice."""
    made = _Joins(rng, failing=False)
    left = made.source("a")
    right = left if made.chance(0.5) else made.source("a")
    if made.chance(0.3):
        left = made.add("select_key", left, fn=rng.choice(_KEY_CHANGES))
        right = left if made.chance(0.6) else made.add("map_values", right, fn="upper")
    windows = made.windows()
    options = {"stream_joined": made.options(windows)} if made.chance(0.4) else {}
    op = rng.choice(["join", "join", "left_join", "outer_join"])
    joiner = rng.choice(["concat:+", "concat_with_key:="])
    made.streams.append(made.add(op, left, with_=right, joiner=joiner, windows=windows, **options))
    made.finish()
    config: dict[str, Json] = {"topology.optimization": rng.choice(_OPTIMIZATIONS)}
    return Scenario(made.steps, made.inputs, time_step=rng.choice([0, 1, 4]), nulls=0.1, null_keys=0.1, config=config)


TEMPLATES: dict[str, Template] = {
    "ss_program": Template("stream_stream_join", 2, _program),
    "ss_self_join": Template("stream_stream_join", 2, _self_join),
}
