"""Random programs with joins of streams with tables and of tables, and with transformed tables.

Any two tables may be joined: one with itself, one with what was made of it, stored ones and such as are only computed.
"""

from __future__ import annotations

from dataclasses import replace

from tests.conformance.templates import program_parts as parts
from tests.conformance.templates.program_parts import SERDES, Shape
from tests.conformance.templates.programs import Profile, Program, program
from tests.conformance.templates.scenario import Template
from tests.conformance.values import Json


class JoinProgram(Program):
    """A program that also joins.

    ``grace`` is the chance that a join with a table has a grace period.
    """

    grace = 0.01

    def table_of_keys(self, key: str) -> tuple[str, Shape] | None:
        """A table whose keys have the serde of that type of keys."""
        found = [(name, shape) for name, shape in self.tables if SERDES[shape.key] == SERDES[key]]
        return self.rng.choice(found) if found else None

    def joiner(self, left: Shape, right: Shape) -> tuple[str, str]:
        """Draws a joiner; gives the type of its result and the joiner."""
        if self.chance(self.profile.failing * 0.2):
            return "text", "throw:joined"
        text = [
            "concat:+",
            "concat:+",
            "concat:/",
            "concat_with_key:~",
            "null_if_left_eq:z",
            "null_if_left_eq:5",
            "null",
        ]
        choices = [("text", spec) for spec in text] + [(left.value, "left"), (right.value, "right")]
        if left.value == right.value == "long":
            choices += [("long", "sum")] * 3
        return self.rng.choice(choices)

    def do_table_join(self) -> None:
        if (found := self.pick_table()) is None:
            return
        left, shape = found
        right, other = self.table_of_keys(shape.key) or found
        kind, joiner = self.joiner(shape, other)
        result = replace(shape, value=kind, value_known=False)
        stored = self.materialized(result, 0.3) if self.chance(0.4) else {}
        self.used.add(right)
        op = self.rng.choice(["join", "left_join", "outer_join"])
        identifier = self.add(op, left, with_=right, joiner=joiner, **self.named(), **stored)
        self.tables.append((identifier, self._stored(result, stored)))

    def do_stream_table_join(self) -> None:
        on, shape = self.pick_stream()
        if (found := self.table_of_keys(shape.key)) is None:
            return
        table, other = found
        kind, joiner = self.joiner(shape, other)
        joined = self.serdes(shape)
        if self.chance(0.2):
            joined["other_value"] = SERDES[other.value]
        if self.chance(self.profile.named):
            joined["name"] = self.new("join-")
        if self.chance(self.grace):  # where the table is not versioned an error when the topology is built
            joined["grace_ms"] = self.rng.choice([0, 20])
        with_key: dict[str, Json] = {"joiner_with_key": True} if self.chance(0.3) else {}
        self.used.add(table)
        op = self.rng.choice(["join", "left_join"])
        options = {**with_key, **self.option("joined", joined)}
        identifier = self.add(op, on, with_=table, joiner=joiner, **options)
        known = shape.key_known or "key" in joined
        self.streams.append((identifier, Shape(shape.key, kind, known)))

    def do_transform_values(self) -> None:
        if (found := self.pick_table()) is None:
            return
        on, shape = found
        stores: dict[str, Json] = {}
        match self.rng.choices(["map", "context_to_value", "kv_count", "kv_get"], [4, 3, 1, 1])[0]:
            case "map":
                kind, function = parts.selector(self.rng, shape.value)
                transformer: dict[str, Json] = {"name": "map", "value": function}
            case "context_to_value":
                kind, transformer = "text", {"name": "context_to_value"}
            case name:
                kind = "long" if name == "kv_count" else "text"
                transformer, stores = self._transformer_with_store(name, shape)
        result = replace(shape, value=kind, value_known=False)
        stored = self.materialized(result, 0.3) if self.chance(0.4) else {}
        identifier = self.add("transform_values", on, transformer=transformer, **stores, **self.named(), **stored)
        self.tables.append((identifier, self._stored(result, stored)))

    def _transformer_with_store(self, name: str, shape: Shape) -> tuple[dict[str, Json], dict[str, Json]]:
        kinds = ["persistent_kv", "in_memory_kv", "persistent_timestamped_kv", "in_memory_timestamped_kv"]
        store: dict[str, Json] = {
            "name": self.new("own"),
            "kind": self.rng.choice(kinds),
            "key": SERDES[shape.key],
            "value": "long",
        }
        if self.chance(0.3):
            store["caching"] = True
        self.add("add_state_store", store=store)
        return {"name": name, "store": store["name"]}, {"stores": [store["name"]]}


_JOINS = {
    "table_join": 5,
    "stream_table_join": 4,
    "transform_values": 2,
    "table_filter": 2,
    "table_map_values": 2,
    "table_aggregate": 1,
    "table_to_stream": 1,
    "aggregate": 1,
    "select_key": 2,
    "map_values": 1,
    "to_table": 2,
    "repartition": 1,
}
_STREAM_TABLE = {"stream_table_join": 6, "select_key": 3, "map": 1, "to_table": 2, "aggregate": 2, "map_values": 2}
_TABLE_TABLE = {"table_join": 6, "table_filter": 2, "table_map_values": 2, "table_aggregate": 2, "to_table": 1}
_TRANSFORM = {"transform_values": 5, "table_join": 2, "stream_table_join": 1, "table_filter": 1, "table_aggregate": 2}
_FAILING = {name: weight for name, weight in _JOINS.items() if name not in ("transform_values", "repartition")}

_CACHES = (0, 0, 0, 1, 10485760, 10485760)
"""None that has room for some rows only: Kafka Streams counts rows twice that are read while their cache is flushed."""


def _template(area: str, profile: Profile) -> Template:
    return Template(area, 2, program(replace(profile, caches=_CACHES), JoinProgram))


TEMPLATES: dict[str, Template] = {
    "program_joins": _template("table_table_join", Profile(_JOINS, size=(4, 10), sources=(2, 4))),
    "program_joins_errors": _template(
        "table_table_join", Profile(_FAILING, sources=(2, 4), failing=0.4, equal_times=0.0)
    ),
    "program_stream_table": _template("stream_table_join", Profile(_STREAM_TABLE, sources=(2, 4))),
    "program_table_table": _template("table_table_join", Profile(_TABLE_TABLE, sources=(2, 4), size=(2, 6))),
    "program_transform_values": _template("table", Profile(_TRANSFORM, sources=(2, 3), size=(2, 6))),
    "program_joins_headers_format": _template("config", Profile(_JOINS, sources=(2, 3), headers_format=1.0)),
}
