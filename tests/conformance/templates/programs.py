"""Random programs of the stateless and aggregating DSL: the topology itself is drawn, not only its input.

A program grows step by step from its sources. The types of keys and values are followed, so that the serdes
named are the right ones; everything else (names, stores, caches, handlers, overloads) is left to chance.
Programs that Kafka Streams refuses are fine: the case then pins down the error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tests.conformance.caselib import Step, query, step
from tests.conformance.templates import program_parts as parts
from tests.conformance.templates.program_parts import SERDES, Shape
from tests.conformance.templates.scenario import Input, Scenario, Template
from tests.conformance.values import Json

_CACHES = [0, 0, 0, 10485760, 10485760, 1, 90, 150, 250, 400]
_OPTIMIZATIONS = ["none", "none", "all", "all", "merge.repartition.topics", "reuse.ktable.source.topics"]
_CONTINUE = {
    "deserialization.exception.handler": "log_and_continue",
    "processing.exception.handler": "log_and_continue",
}


@dataclass(frozen=True, slots=True)
class Profile:
    """What a family of programs leans to: how often each kind of step is drawn, and chances for the rest."""

    operations: dict[str, int]
    size: tuple[int, int] = (3, 9)
    sources: tuple[int, int] = (1, 3)
    caches: tuple[int, ...] = tuple(_CACHES)
    named: float = 0.25
    failing: float = 0.0
    """Chance that a function may throw; handlers and a dead letter queue are drawn too."""
    extractors: float = 0.0
    mixed: float = 0.0
    """Chance that a source of longs gets other bytes too."""
    headers_format: float = 0.05
    idle: float = 0.0
    equal_times: float = 0.1
    """Chance that many records have the same timestamp."""


@dataclass(slots=True)
class Program:
    """A program as far as it has been drawn."""

    rng: Random
    profile: Profile
    steps: list[Step] = field(default_factory=list)
    streams: list[tuple[str, Shape]] = field(default_factory=list)
    tables: list[tuple[str, Shape]] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    inputs: dict[str, Input] = field(default_factory=dict)
    queries: list[Step] = field(default_factory=list)
    counter: int = 0
    config: dict[str, Json] = field(default_factory=dict)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def new(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def add(self, op: str, on: str | None = None, **parameters: Any) -> str:
        identifier = self.new("s")
        self.steps.append(step(identifier, op, on, **parameters))
        if on is not None:
            self.used.add(on)
        return identifier

    def named(self) -> dict[str, Json]:
        if not self.chance(self.profile.named):
            return {}
        if self.chance(0.01):  # a name twice, or one that is not allowed: an error when the topology is built
            return {"named": self.rng.choice(["twice", "twice", "not a/name"])}
        return {"named": self.new("name-")}

    def serdes(self, shape: Shape, *, key: bool = True, value: bool = True, always: bool = False) -> dict[str, Json]:
        """Serdes for an option object: those that are needed, and sometimes those that are not."""
        found: dict[str, Json] = {}
        if key and (always or self._needs(shape.key, shape.key_known)):
            found["key"] = SERDES[shape.key]
        if value and (always or self._needs(shape.value, shape.value_known)):
            found["value"] = SERDES[shape.value]
        return found

    def _needs(self, kind: str, known: bool) -> bool:
        return (SERDES[kind] != "string" and not known) or self.chance(0.3)

    def option(self, name: str, content: dict[str, Json]) -> dict[str, Json]:
        """An option object, left out when it would be empty (mostly)."""
        return {name: content} if content or self.chance(0.1) else {}

    def materialized(self, shape: Shape, chance: float = 0.6) -> dict[str, Json]:
        """A ``materialized`` for a result of that shape; needed when a serde must be named."""
        if self.chance(0.9):  # else it shows which serdes a store inherits
            shape = replace(shape, key_known=False, value_known=False)
        content = self.serdes(shape)
        if not content and not self.chance(chance):
            return {}
        if self.chance(0.75):
            self._store(content, shape)
        if self.chance(0.25):
            content["caching"] = self.chance(0.5)
        if self.chance(0.15):
            content["logging"] = self.rng.choice([False, {}, {"segment.bytes": "1000", "retention.ms": "77"}])
        return {"materialized": content}

    def _store(self, content: dict[str, Json], shape: Shape) -> None:
        store = content["store"] = self.new("st")
        if self.chance(0.4):
            kinds = ["in_memory_kv", "lru_kv", "persistent_timestamped_kv", "in_memory_timestamped_kv"]
            content["kind"] = self.rng.choice([*kinds, "lru_timestamped_kv", "persistent_kv"])
            if content["kind"].startswith("lru"):
                content["max_entries"] = self.rng.randint(1, 3)
        elif self.chance(0.2):
            content["dsl_store"] = self.rng.choice(["in_memory", "rocks_db"])
        if self.chance(0.5):
            key = self.rng.choice(parts.keys_of(shape.key))
            reads = [query(store, "all"), query(store, "get", key=key), query(store, "reverse_all")]
            if shape.key in ("text", "digits"):
                reads.append(query(store, "range", from_="a", to="b"))
                reads.append(query(store, "prefix_scan", prefix="a"))
                reads.append(query(store, "reverse_range", to="c"))
            self.queries += self.rng.sample(reads, 2)

    # ------------------------------------------------------------ sources

    def source(self) -> None:
        kind = self.rng.choices(["text", "digits", "long", "integer", "double"], [6, 2, 2, 1, 1])[0]
        key = self.rng.choices(["text", "long", "integer"], [8, 1, 1])[0]
        consumed = self.serdes(Shape(key, kind))
        topic = self.new("in")
        value = kind
        if kind == "long" and self.chance(self.profile.mixed):
            value = "mixed"
        if self.chance(self.profile.extractors):
            extractors = ["add:7", "add:-4", "const:5", "partition_time", "value_part:1:|"]
            more = [
                "log_and_skip_on_invalid",
                "use_partition_time_on_invalid",
                "value_part_or_partition_time:1:|",
            ]
            consumed["timestamp_extractor"] = self.rng.choice([*extractors, *more])
            if "value_part" in consumed["timestamp_extractor"]:
                kind, value = "text", "stamped"
                consumed["value"] = "string"
        if self.chance(self.profile.named):
            consumed["name"] = self.new("source-")
        if self.chance(0.1):
            consumed["offset_reset"] = self.rng.choice(["earliest", "latest", "none"])
        shape = Shape(key, kind, "key" in consumed, "value" in consumed)
        data = Input(parts.keys_of(key), parts.value_maker(value), self.rng.randint(1, 2))
        options = self.option("consumed", consumed)
        if self.chance(0.3):
            self.inputs[topic] = data
            stored = self.materialized(replace(shape, key_known=True, value_known=True))
            self.tables.append((self.add("table", topic=topic, **options, **stored), shape))
            return
        topics: dict[str, Json] = {"topic": topic}
        self.inputs[topic] = data
        if self.chance(0.15):
            self.inputs[topic + "b"] = data
            topics = self.rng.choice([{"pattern": f"{topic}b?"}, {"topics": [topic, topic + "b"]}])
        self.streams.append((self.add("stream", **topics, **options), shape))

    # ------------------------------------------------------------ streams

    def pick_stream(self) -> tuple[str, Shape]:
        recent = self.streams[-4:]
        return self.rng.choice(recent if self.chance(0.7) else self.streams)

    def guarded(self, function: Json) -> Json:
        """Sometimes lets a selector throw on some values."""
        if not self.chance(self.profile.failing):
            return function
        rest = [function] if isinstance(function, str) else function
        guard = self.rng.choice(["throw_if_eq:bad:boom", "throw_if_eq:5:five", "throw_if_null:none"])
        return [guard, *rest]

    def test(self, shape: Shape) -> str:
        if self.chance(self.profile.failing):
            return self.rng.choice(["throw_if_value_eq:bad:boom", "throw_if_value_eq:5:five"])
        return parts.predicate(self.rng, shape)

    def do_filter(self) -> None:
        on, shape = self.pick_stream()
        op = self.rng.choice(["filter", "filter_not"])
        self.streams.append((self.add(op, on, fn=self.test(shape), **self.named()), shape))

    def do_map(self) -> None:
        on, shape = self.pick_stream()
        key_kind, key = parts.key_selector(self.rng, shape)
        value_kind, value = parts.selector(self.rng, shape.value)
        result = self.add("map", on, key=key, value=self.guarded(value), **self.named())
        self.streams.append((result, Shape(key_kind, value_kind)))

    def do_map_values(self) -> None:
        on, shape = self.pick_stream()
        with_key = self.chance(0.4)
        kind, function = parts.selector(self.rng, shape.value, with_key=with_key)
        flag = {"with_key": True} if with_key else {}
        result = self.add("map_values", on, fn=self.guarded(function), **flag, **self.named())
        self.streams.append((result, replace(shape, value=kind, value_known=False)))

    def do_flat_map(self) -> None:
        on, shape = self.pick_stream()
        if shape.value == "text" and shape.key == "text":
            choices = ["split_kv:,:|", "split:,", "both_keys:2", "repeat:2", "empty"]
        else:
            choices = ["repeat:2", "empty", "repeat:3"]
        function = self.rng.choice(choices)
        result = self.add("flat_map", on, fn=function, **self.named())
        self.streams.append((result, Shape(shape.key, shape.value)))

    def do_flat_map_values(self) -> None:
        on, shape = self.pick_stream()
        choices = ["split:,", "split:,", "repeat:2", "empty"] if shape.value == "text" else ["repeat:2", "repeat:3"]
        flag = {"with_key": True} if self.chance(0.3) else {}
        if flag and shape.key == "text" == shape.value:
            choices = [*choices, "key_then_value"]
        result = self.add("flat_map_values", on, fn=self.rng.choice(choices), **flag, **self.named())
        self.streams.append((result, replace(shape, value_known=False)))

    def do_select_key(self) -> None:
        on, shape = self.pick_stream()
        kind, function = parts.key_selector(self.rng, shape)
        result = self.add("select_key", on, fn=self.guarded(function), **self.named())
        self.streams.append((result, replace(shape, key=kind, key_known=False)))

    def do_peek(self) -> None:
        on, shape = self.pick_stream()
        guard = {"fn": self.test(shape)} if self.chance(0.2) else {}
        if self.chance(0.3):
            self.add("foreach", on, **guard, **self.named())
        else:
            self.streams.append((self.add("peek", on, **guard, **self.named()), shape))

    def do_split(self) -> None:
        on, shape = self.pick_stream()
        branches: list[Json] = []
        for _ in range(self.rng.randint(1, 3)):
            branch: dict[str, Json] = {"fn": self.test(shape)}
            if self.chance(0.1):
                branches.append({**branch, "plain": True})
                continue
            branch["id"] = self.new("b")
            if self.chance(0.4):
                branch["name"] = self.new("br")
            if self.chance(0.15):
                branch["consumer"] = True
            branches.append(branch)
        default: dict[str, Json] = {}
        if self.chance(0.6):
            own = {"id": self.new("b"), **({"name": self.new("dflt")} if self.chance(0.3) else {})}
            default = {"default": self.rng.choice([True, own])}
        self.add("split", on, branches=branches, **default, **self.named())
        found = [branch["id"] for branch in branches if "id" in branch]
        if isinstance(default.get("default"), dict):
            found.append(default["default"]["id"])
        self.streams += [(identifier, shape) for identifier in found]

    def do_merge(self) -> None:
        on, shape = self.pick_stream()
        others = [
            (name, other)
            for name, other in self.streams
            if name != on and (SERDES[other.key], SERDES[other.value]) == (SERDES[shape.key], SERDES[shape.value])
        ]
        if not others:
            return
        other, theirs = self.rng.choice(others)
        self.used.add(other)
        value = shape.value if shape.value == theirs.value else "text"
        key = shape.key if shape.key == theirs.key else "text"
        result = self.add("merge", on, with_=other, **self.named())
        self.streams.append((result, Shape(key, value)))

    def do_repartition(self) -> None:
        on, shape = self.pick_stream()
        content = self.serdes(shape)
        if self.chance(0.5):
            content["name"] = self.new("rp")
        if self.chance(0.2):
            content["partitions"] = self.rng.randint(1, 4)
        if self.chance(0.1):
            content["partitioner"] = self.rng.choice(["default", "fixed:0"])
        known = replace(
            shape,
            key_known=shape.key_known or "key" in content,
            value_known=shape.value_known or "value" in content,
        )
        self.streams.append((self.add("repartition", on, **self.option("repartitioned", content)), known))

    def do_to(self) -> None:
        on, shape = self.pick_stream()
        self.sink(on, shape)

    def sink(self, on: str, shape: Shape) -> None:
        content = self.serdes(shape)
        if self.chance(0.15):
            choices = ["default", "fixed:3", "key_length", "multi:2,0", "num_partitions", "drop"]
            content["partitioner"] = self.rng.choice(choices)
        if self.chance(self.profile.named):
            content["name"] = self.new("sink-")
        topic: dict[str, Json] = {"topic": self.new("out")}
        if self.chance(0.15):
            functions = [
                "prefix_key:out-",
                "const:fixed-out",
                "source_topic_suffix:-out",
                "header:h:no-header",
            ]
            topic = {"topic_fn": self.rng.choice(functions)}
        self.add("to", on, **topic, **self.option("produced", content))

    def do_through(self) -> None:
        """Writes to a topic and reads it again, so that the driver feeds the topology with its own output."""
        on, shape = self.pick_stream()
        topic, produced = self.new("mid"), self.serdes(shape)
        self.add("to", on, topic=topic, **self.option("produced", produced))
        consumed = self.serdes(Shape(shape.key, shape.value))
        known = Shape(shape.key, shape.value, "key" in consumed, "value" in consumed)
        options = self.option("consumed", consumed)
        if self.chance(0.3):
            self.tables.append((self.add("table", topic=topic, **options, **self.materialized(known, 0.3)), known))
        else:
            self.streams.append((self.add("stream", topic=topic, **options), known))

    def do_to_table(self) -> None:
        on, shape = self.pick_stream()
        stored = self.materialized(shape)
        self.tables.append((self.add("to_table", on, **self.named(), **stored), self._stored(shape, stored)))

    @staticmethod
    def _stored(shape: Shape, stored: dict[str, Json]) -> Shape:
        content = stored.get("materialized", {})
        return replace(
            shape,
            key_known=shape.key_known or "key" in content,
            value_known=shape.value_known or "value" in content,
        )

    # ------------------------------------------------------------ aggregations

    def do_aggregate(self) -> None:
        on, shape = self.pick_stream()
        if self.chance(0.5):
            kind, function = parts.key_selector(self.rng, shape)
            shape = replace(shape, key=kind, key_known=False)
            group = ("group_by", {"fn": self.guarded(function)})
        else:
            group = ("group_by_key", {})
        grouped = self.serdes(shape)
        if self.chance(0.3):
            grouped["name"] = self.new("grp")
        op, parameters = group
        on = self.add(op, on, **parameters, **self.option("grouped", grouped))
        shape = replace(
            shape,
            key_known=shape.key_known or "key" in grouped,
            value_known=shape.value_known or "value" in grouped,
        )
        for _ in range(2 if self.chance(0.15) else 1):
            self._aggregation(on, shape)

    def _aggregation(self, on: str, shape: Shape) -> None:
        match self.rng.choice(["count", "reduce", "aggregate"]):
            case "count":
                result = replace(shape, value="long", value_known=True)
                stored = self.materialized(result)
                identifier = self.add("count", on, **self.named(), **stored)
            case "reduce":
                result, stored = shape, self.materialized(shape)
                reducer = parts.stream_reducer(self.rng, shape.value)
                identifier = self.add("reduce", on, reducer=reducer, **self.named(), **stored)
            case _:
                kind, initializer, aggregator = parts.stream_aggregation(self.rng, shape.value)
                if kind == "text" and self.chance(self.profile.failing):
                    aggregator = self.rng.choice(["append_throw_on:bad:boom", "append_throw_on:5:five"])
                result = replace(shape, value=kind, value_known=False)
                stored = self.materialized(result)
                functions = {"initializer": initializer, "aggregator": aggregator}
                identifier = self.add("aggregate", on, **functions, **self.named(), **stored)
        self.tables.append((identifier, self._stored(result, stored)))

    # ------------------------------------------------------------ tables

    def pick_table(self) -> tuple[str, Shape] | None:
        if not self.tables:
            return None
        return self.rng.choice(self.tables[-3:] if self.chance(0.7) else self.tables)

    def do_table_filter(self) -> None:
        if (found := self.pick_table()) is None:
            return
        on, shape = found
        stored = self.materialized(shape, 0.3) if self.chance(0.4) else {}
        op = self.rng.choice(["filter", "filter_not"])
        result = self.add(op, on, fn=self.test(shape), **self.named(), **stored)
        self.tables.append((result, self._stored(shape, stored)))

    def do_table_map_values(self) -> None:
        if (found := self.pick_table()) is None:
            return
        on, shape = found
        with_key = self.chance(0.4)
        kind, function = parts.selector(self.rng, shape.value, with_key=with_key)
        shape = replace(shape, value=kind, value_known=False)
        stored = self.materialized(shape, 0.3) if self.chance(0.4) else {}
        flag = {"with_key": True} if with_key else {}
        result = self.add("map_values", on, fn=self.guarded(function), **flag, **self.named(), **stored)
        self.tables.append((result, self._stored(shape, stored)))

    def do_table_to_stream(self) -> None:
        if (found := self.pick_table()) is not None:
            self.to_stream(*found)

    def to_stream(self, on: str, shape: Shape) -> None:
        mapper: dict[str, Json] = {}
        if self.chance(0.15):
            kind, function = parts.key_selector(self.rng, shape)
            mapper, shape = {"fn": function}, replace(shape, key=kind, key_known=False)
        self.streams.append((self.add("to_stream", on, **mapper, **self.named()), shape))

    def do_table_aggregate(self) -> None:
        if (found := self.pick_table()) is None:
            return
        on, shape = found
        key_kind, key = parts.key_selector(self.rng, shape)
        value_kind, value = parts.selector(self.rng, shape.value)
        shape = Shape(key_kind, value_kind)
        grouped = self.serdes(shape)
        if self.chance(0.3):
            grouped["name"] = self.new("grp")
        on = self.add("group_by", on, key=key, value=value, **self.option("grouped", grouped))
        shape = replace(shape, key_known="key" in grouped, value_known="value" in grouped)
        match self.rng.choice(["count", "reduce", "aggregate"]):
            case "count":
                result = replace(shape, value="long", value_known=True)
                stored = self.materialized(result)
                identifier = self.add("count", on, **self.named(), **stored)
            case "reduce":
                result, stored = shape, self.materialized(shape)
                adder, subtractor = parts.table_reducers(self.rng, shape.value)
                functions = {"adder": adder, "subtractor": subtractor}
                identifier = self.add("reduce", on, **functions, **self.named(), **stored)
            case _:
                kind, initializer, adder, subtractor = parts.table_aggregation(self.rng, shape.value)
                result = replace(shape, value=kind, value_known=False)
                stored = self.materialized(result)
                functions = {"initializer": initializer, "adder": adder, "subtractor": subtractor}
                identifier = self.add("aggregate", on, **functions, **self.named(), **stored)
        self.tables.append((identifier, self._stored(result, stored)))

    # ------------------------------------------------------------ the whole

    def configure(self) -> None:
        config, rng, profile = self.config, self.rng, self.profile
        config["topology.optimization"] = rng.choice(_OPTIMIZATIONS)
        if self.chance(0.15):
            config["dsl.store.suppliers.class"] = rng.choice(["in_memory", "rocks_db"])
        if self.chance(profile.headers_format):
            config["dsl.store.format"] = "HEADERS"
        if profile.failing and self.chance(0.8):
            chosen = rng.sample(sorted(_CONTINUE), rng.randint(1, 2))
            config.update({key: _CONTINUE[key] for key in chosen})
        if profile.failing and self.chance(0.6):
            config["errors.dead.letter.queue.topic.name"] = "dlq"
        if self.chance(profile.extractors):
            names = ["log_and_skip_on_invalid", "use_partition_time_on_invalid", "fail_on_invalid"]
            config["default.timestamp.extractor"] = rng.choice(names)
        if self.chance(profile.idle):
            config["max.task.idle.ms"] = rng.choice([5, 20])
        if self.chance(0.03):
            config["ensure.explicit.internal.resource.naming"] = True

    def finish(self) -> None:
        """Gives every result that nothing reads yet a way out (mostly)."""
        for on, shape in self.tables:
            if on not in self.used and self.chance(0.9):
                self.to_stream(on, shape)
        for on, shape in self.streams:
            if on not in self.used and self.chance(0.9):
                self.sink(on, shape)


def program(profile: Profile, kind: type[Program] = Program) -> Callable[[Random], Scenario]:
    """Gives a maker of random programs of that profile."""

    def make(rng: Random) -> Scenario:
        made = kind(rng, profile)
        for _ in range(rng.randint(*profile.sources)):
            made.source()
        if not made.streams:
            made.to_stream(*made.tables[0])
        names, weights = list(profile.operations), list(profile.operations.values())
        for name in rng.choices(names, weights, k=rng.randint(*profile.size)):
            getattr(made, f"do_{name}")()
        made.finish()
        made.configure()
        equal = rng.random() < profile.equal_times
        return Scenario(
            made.steps,
            made.inputs,
            time_step=0 if equal else rng.choice([1, 4, 10]),
            late=0.0 if equal else rng.choice([0.0, 0.3]),
            nulls=rng.choice([0.0, 0.15, 0.3]),
            null_keys=rng.choice([0.0, 0.05]),
            clock=0.1 if "max.task.idle.ms" in made.config or rng.random() < 0.1 else 0.0,
            headers=rng.choice([0.05, 0.4]),
            queries=made.queries[:4],
            config=made.config,
            cache=rng.choice(profile.caches),
        )

    return make


_STATELESS = {
    "filter": 3,
    "map": 2,
    "map_values": 3,
    "flat_map": 2,
    "flat_map_values": 2,
    "select_key": 2,
    "peek": 2,
    "split": 2,
    "merge": 3,
    "repartition": 2,
    "to": 2,
    "through": 1,
    "to_table": 1,
}
_AGGREGATING = {
    "aggregate": 5,
    "map_values": 1,
    "flat_map_values": 2,
    "select_key": 1,
    "filter": 1,
    "merge": 1,
    "repartition": 1,
    "table_filter": 2,
    "table_map_values": 2,
    "table_to_stream": 1,
    "to_table": 1,
}
_TABLES = {
    "table_filter": 3,
    "table_map_values": 3,
    "table_aggregate": 4,
    "table_to_stream": 2,
    "to_table": 2,
    "aggregate": 1,
    "select_key": 1,
}
_ALL = {**_STATELESS, **_AGGREGATING, **_TABLES}
_ORDER = {
    "flat_map": 3,
    "flat_map_values": 3,
    "repartition": 5,
    "through": 4,
    "merge": 3,
    "split": 2,
    "aggregate": 2,
}

TEMPLATES: dict[str, Template] = {
    "program_stateless": Template("stateless", 1, program(Profile(_STATELESS, size=(3, 10)))),
    "program_aggregate": Template("aggregate", 1, program(Profile(_AGGREGATING))),
    "program_table": Template("table", 1, program(Profile(_TABLES, sources=(2, 3)))),
    "program_mixed": Template("stateless", 1, program(Profile(_ALL, size=(6, 14)))),
    "program_cached": Template(
        "aggregate", 1, program(Profile(_ALL, caches=(1, 60, 90, 120, 150, 200, 250, 300, 400, 600)))
    ),
    "program_named": Template("stateless", 1, program(Profile(_ALL, named=0.8, size=(4, 10)))),
    "program_errors": Template(
        "errors", 1, program(Profile(_ALL, failing=0.5, mixed=0.6, size=(3, 8), equal_times=0.0))
    ),
    "program_time": Template("time", 1, program(Profile(_ALL, extractors=0.7, sources=(2, 3), size=(2, 6)))),
    "program_order": Template(
        "config",
        1,
        program(Profile(_ORDER, sources=(2, 4), size=(4, 9), idle=0.3, equal_times=0.6, caches=(0, 10485760))),
    ),
    "program_headers_format": Template("config", 1, program(Profile(_AGGREGATING | _TABLES, headers_format=1.0))),
}
