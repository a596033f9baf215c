"""Random programs whose tables are versioned, mostly: joined, filtered, mapped, grouped, suppressed (and so refused).

Records come late, segments are short, and histories are read as of times before and after.
"""

from __future__ import annotations

from dataclasses import replace

from tests.conformance.caselib import query
from tests.conformance.templates import program_parts as parts
from tests.conformance.templates.program_foreign_keys import ForeignKeyProgram
from tests.conformance.templates.program_joins import JoinProgram
from tests.conformance.templates.program_parts import Shape
from tests.conformance.templates.programs import Profile, Program, program
from tests.conformance.templates.scenario import Template
from tests.conformance.values import Json


class _Versioned(Program):
    """What makes the stores of a program versioned."""

    def _store(self, content: dict[str, Json], shape: Shape) -> None:
        if self.chance(0.3):
            super()._store(content, shape)
            return
        store = content["store"] = self.new("st")
        content["kind"] = "versioned"
        content["history_retention_ms"] = self.rng.choice([0, 8, 20, 50, 1000])
        if self.chance(0.7):
            content["segment_interval_ms"] = self.rng.choice([1, 5, 20, 1000])
        key = self.rng.choice(parts.keys_of(shape.key))
        reads = [query(store, "get", key=key), query(store, "history", key=key)]
        reads += [query(store, "get", key=key, as_of=self.rng.randint(0, 150)) for _ in range(3)]
        self.queries += self.rng.sample(reads, 2)

    def do_suppress(self) -> None:
        if (found := self.pick_table()) is None:
            return
        on, shape = found
        limit: dict[str, Json] = {"until": "time_limit", "time_limit_ms": self.rng.choice([0, 10])}
        self.tables.append((self.add("suppress", on, **limit, buffer={"unbounded": True}), shape))


class VersionedProgram(_Versioned, JoinProgram):
    """A program of tables, joins with tables, and transformed tables."""

    grace = 0.15


class VersionedForeignKeyProgram(_Versioned, ForeignKeyProgram):
    """A program that also joins on foreign keys."""

    grace = 0.15


_STEPS = {
    "table_filter": 4,
    "table_map_values": 3,
    "transform_values": 1,
    "table_aggregate": 3,
    "table_join": 3,
    "stream_table_join": 4,
    "to_table": 3,
    "aggregate": 2,
    "table_to_stream": 2,
}
_STREAM_TABLE = {"stream_table_join": 6, "table_map_values": 2, "table_filter": 2, "transform_values": 1, "to_table": 2}
_TABLE_TABLE = {"table_join": 6, "table_filter": 2, "table_map_values": 2, "table_aggregate": 2}
_FOREIGN_KEYS = {"fk_join": 6, "table_filter": 1, "table_map_values": 1, "table_join": 1}
_SUPPRESSING = {"table_filter": 2, "table_map_values": 2, "table_join": 1, "table_aggregate": 1, "suppress": 1}
_CACHES = (0, 0, 10485760)


def _template(area: str, profile: Profile, kind: type[Program] = VersionedProgram) -> Template:
    return Template(area, 4, program(replace(profile, caches=_CACHES, equal_times=0.05), kind))


TEMPLATES: dict[str, Template] = {
    "program_versioned": _template("versioned", Profile(_STEPS, size=(2, 8), sources=(2, 4))),
    "program_versioned_stream_table": _template("stream_table_join", Profile(_STREAM_TABLE, sources=(2, 4))),
    "program_versioned_table_table": _template("table_table_join", Profile(_TABLE_TABLE, sources=(2, 4), size=(2, 6))),
    "program_versioned_fk": _template(
        "fk_join", Profile(_FOREIGN_KEYS, sources=(2, 3), size=(1, 5)), VersionedForeignKeyProgram
    ),
    "program_versioned_suppress": _template("versioned", Profile(_SUPPRESSING, sources=(1, 3), size=(2, 5))),
}
