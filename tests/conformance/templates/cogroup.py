"""Templates for cogrouped streams: whole programs around plain ones, and every kind of window.

Kafka Streams cannot join the windowed table of a cogrouped stream, so nothing here does.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.conformance.caselib import Step, query, step
from tests.conformance.templates import program_parts as parts
from tests.conformance.templates.program_joins import JoinProgram
from tests.conformance.templates.program_parts import SERDES, Shape
from tests.conformance.templates.programs import Profile, program
from tests.conformance.templates.scenario import Input, Scenario, Template, word
from tests.conformance.templates.shapes import sink, source
from tests.conformance.values import Json

_KEYS = ["a", "b", "ab", ""]
_TEXT = {"key": "string", "value": "string"}


class CogroupProgram(JoinProgram):
    """A program that also cogroups streams."""

    def group(self, key: str | None) -> tuple[str, Shape]:
        """Groups a stream, by keys of that type if one is given."""
        on, shape = self.pick_stream()
        if self.chance(0.5) and (key is None or SERDES[shape.key] == SERDES[key]):
            op, parameters, known = "group_by_key", {}, shape.key_known
        else:
            kind, function = parts.key_selector(self.rng, shape)
            if key is not None and SERDES[kind] != SERDES[key]:
                kind, function = key, ["value", "show"] if SERDES[key] == "string" else ["value", "show", "length"]
                if SERDES[key] == "integer":
                    function = [*function, "to_int"]
            shape = replace(shape, key=kind)
            op, parameters, known = "group_by", {"fn": self.guarded(function)}, False
        shape = replace(shape, key_known=known)
        grouped = self.serdes(replace(shape, value_known=False))  # those of the stream do not reach a Grouped
        if self.chance(0.9 if key is not None else 0.3):  # two topics named after one store: an error
            grouped["name"] = self.new("grp")
        return self.add(op, on, **parameters, **self.option("grouped", grouped)), shape

    def aggregator(self, kind: str, shape: Shape) -> str:
        """Draws an aggregator whose result has that type, for the values of a stream."""
        if kind == "text":
            choices = ["append:,", "append:-", "append_null_on:z", "append_null_on:5", "append_with_key:=", "null"]
            if self.chance(self.profile.failing):
                choices = ["append_throw_on:bad:boom", "append_throw_on:5:five"]
        elif shape.value == "text":
            choices = ["count", "uncount"]
        else:
            choices = ["count", "uncount", "sum", "max", "subtract"]
        return self.rng.choice(choices)

    def do_cogroup(self) -> None:
        first, shape = self.group(None)
        kind = self.rng.choice(["text", "text", "long"])
        on = self.add("cogroup", first, aggregator=self.aggregator(kind, shape))
        grouped = [(first, shape)]
        for _ in range(self.rng.choice([0, 1, 1, 1, 2, 3])):
            other, their = self.rng.choice(grouped) if self.chance(0.1) else self.group(shape.key)
            grouped.append((other, their))
            self.used.add(other)
            on = self.add("cogroup", on, with_=other, aggregator=self.aggregator(kind, their))
        result = Shape(shape.key, kind)
        for _ in range(2 if self.chance(0.15) else 1):
            initializer = self.rng.choice(["empty", "const:^", "null"] if kind == "text" else ["zero", "const_long:4"])
            stored = self.materialized(result)
            identifier = self.add("aggregate", on, initializer=initializer, **self.named(), **stored)
            self.tables.append((identifier, self._stored(result, stored)))
        if self.chance(0.1):
            self._aggregation(*self.rng.choice(grouped))


_COGROUP = {
    "cogroup": 6,
    "table_join": 3,
    "stream_table_join": 2,
    "table_filter": 2,
    "table_map_values": 2,
    "table_aggregate": 3,
    "table_to_stream": 1,
    "select_key": 2,
    "merge": 1,
    "map_values": 1,
    "repartition": 1,
    "to_table": 1,
}
_CACHES = (0, 0, 0, 10485760, 10485760)
"""None that has room for some rows only: see ``program_joins``, whose joins are here, too."""
_FULL = 300


def _windows(rng: Random, kind: str, *, full: bool) -> tuple[Json, str, int]:
    """Gives windows, the serde of their keys, and the least retention."""
    grace = rng.choice([0, 3, 10, 40])
    match kind:
        case "session":
            gap = rng.choice([1, 3, 5, 12])
            return {"type": kind, "gap_ms": gap, "grace_ms": grace}, "session_windowed:string", gap + grace
        case "sliding":
            size = rng.choice([1, 4] if full else [1, 4, 10, 25])  # see time_windows
            windows, least = {"type": kind, "difference_ms": size, "grace_ms": grace}, 2 * size + grace
        case _:
            size = rng.choice([1, 5, 10, 20])
            advance = {"advance_ms": rng.randint(1, size)} if kind == "hopping" else {}
            windows, least = {"type": "time", "size_ms": size, **advance, "grace_ms": grace}, size + grace
    return windows, f"time_windowed:string:{size}", least


def _materialized(rng: Random, windows: Json, least: int) -> dict[str, Json]:
    if rng.random() < 0.25:
        return {}
    options: dict[str, Json] = dict(rng.sample(sorted(_TEXT.items()), rng.randint(0, 2)))
    if rng.random() < 0.75:
        options["store"] = "st"
    options["caching"] = rng.random() < 0.5
    if rng.random() < 0.15:
        options["logging"] = rng.choice([False, {"segment.ms": "777"}])
    if rng.random() < 0.3:
        options["retention_ms"] = least + rng.choice([0, 1, 50])
    if "store" in options and rng.random() < 0.3:
        options["retention_ms"] = least + rng.choice([0, 7, 100])
        if windows["type"] == "session":
            options["kind"] = rng.choice(["persistent_session", "in_memory_session"])
        else:
            options["kind"] = rng.choice(["in_memory_window", "persistent_timestamped_window", "persistent_window"])
            options["window_size_ms"] = windows.get("size_ms", windows.get("difference_ms"))
    elif rng.random() < 0.4:
        options["dsl_store"] = rng.choice(["rocks_db", "in_memory"])
    return {"materialized": options}


def _after(rng: Random, key: str) -> list[Step]:
    """What reads the windowed table ``r``."""
    stored = {"materialized": {"store": "view", "key": key, "value": "string"}} if rng.random() < 0.5 else {}
    out = [step("o", "to_stream", "r"), sink("o", key)]
    choices = [
        out,
        out,
        [step("o", "to_stream", "r", fn=["key", "window_key", "show"]), sink("o")],
        [
            step("f", "filter", "r", fn="value_contains:b", **stored),
            step("o", "to_stream", "f"),
            sink("o", key),
        ],
        [
            step("h", "group_by", "r", key=["key", "window_key"], value=["value", "show"], grouped=_TEXT),
            step("i", "aggregate", "h", initializer="empty", adder="append:,", subtractor="remove:,"),
            step("o", "to_stream", "i"),
            sink("o"),
        ],
        [step("x", "suppress", "r", until="window_closes"), step("o", "to_stream", "x"), sink("o", key)],
    ]
    return rng.choice(choices)


def _grouped(rng: Random, topic: str) -> list[Step]:
    """A stream and its grouping ``g<topic>``, which may change the keys."""
    serdes: dict[str, Json] = dict(_TEXT) if rng.random() < 0.7 else {}
    if rng.random() < (0.3 if topic == "a" else 0.9):  # two topics named after one store: an error
        serdes["name"] = f"by-{topic}"
    options = {"grouped": serdes} if serdes else {}
    if rng.random() < 0.35:
        group = step(f"g{topic}", "group_by", topic, fn=["value", "or_else:a"], **options)
    else:
        group = step(f"g{topic}", "group_by_key", topic, **options)
    return [source(topic, topic), group]


def _windowed(rng: Random, kind: str) -> Scenario:
    cache = rng.choice([0, _FULL, 10485760])
    windows, key, least = _windows(rng, kind, full=cache == _FULL)
    stored = _materialized(rng, windows, least)
    below = _after(rng, key)
    if below[0]["op"] == "suppress":
        stored.setdefault("materialized", {}).update(_TEXT)
    topics = ["a", "b", "c"][: rng.choice([1, 2, 2, 3])]
    topology = [part for topic in topics for part in _grouped(rng, topic)]
    aggregators = ["append:", "append:-", "append_with_key:/", "append_null_on:b"]
    last = ""
    for topic in topics:
        on = {"with_": f"g{topic}"} if last else {}
        cogrouped = step(f"c{topic}", "cogroup", last or f"g{topic}", **on, aggregator=rng.choice(aggregators))
        topology.append(cogrouped)
        last = f"c{topic}"
    merger = {"merger": rng.choice(["concat:", "concat:+", "null"])} if kind == "session" else {}
    named = {"named": "agg"} if rng.random() < 0.2 else {}
    initializer = rng.choice(["empty", "null", "const:^"])
    topology += [
        step("w", "windowed_by", last, windows=windows),
        step("r", "aggregate", "w", initializer=initializer, **merger, **named, **stored),
        *below,
    ]
    config: dict[str, Json] = {"topology.optimization": rng.choice(["none", "all"])}
    if rng.random() < 0.2:
        config["dsl.store.suppliers.class"] = "in_memory"
    if rng.random() < 0.2:
        config["dsl.store.format"] = "HEADERS"
    queries: list[Step] = []
    if "store" in stored.get("materialized", {}):
        window = {} if kind == "session" else {"time_from": 0, "time_to": 60}
        queries = [query("st", "fetch" if kind == "session" else "fetch_range", key="a", **window)]
    return Scenario(
        topology,
        {topic: Input(_KEYS, word) for topic in topics},
        late=rng.choice([0.0, 0.3, 0.6]),
        back=rng.choice([3, 12, 40]),
        time_step=rng.choice([1, 4, 12]),
        nulls=rng.choice([0.0, 0.15]),
        headers=rng.choice([0.0, 0.4]),
        cache=cache,
        queries=queries,
        config=config,
    )


def _template(kind: str) -> Template:
    return Template("cogroup", 2, lambda rng: _windowed(rng, kind))


def _program(profile: Profile) -> Template:
    return Template("cogroup", 2, program(replace(profile, caches=_CACHES), CogroupProgram))


TEMPLATES: dict[str, Template] = {
    "program_cogroup": _program(Profile(_COGROUP, sources=(2, 4), size=(3, 8))),
    "program_cogroup_errors": _program(Profile(_COGROUP, sources=(2, 3), failing=0.4, equal_times=0.0)),
    "program_cogroup_headers_format": _program(Profile(_COGROUP, sources=(2, 3), headers_format=1.0)),
    "cogroup_any_tumbling": _template("tumbling"),
    "cogroup_any_hopping": _template("hopping"),
    "cogroup_any_sliding": _template("sliding"),
    "cogroup_any_session": _template("session"),
}
