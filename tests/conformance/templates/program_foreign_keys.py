"""Random programs with foreign-key joins: of any table with any other, or itself, in chains and between other steps.

Parts of values are foreign keys, of one type or another, so that joins find partners.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.conformance.templates import program_parts as parts
from tests.conformance.templates.program_joins import JoinProgram
from tests.conformance.templates.program_parts import SERDES, Shape
from tests.conformance.templates.programs import Profile, program
from tests.conformance.templates.scenario import Input, Template
from tests.conformance.values import Json

_KINDS = ["text", "text", "text", "long", "integer"]


def _reference(rng: Random) -> str:
    """A value that refers to a text key and to a number: ``ab|2``; some refer to nothing.

    None begins with an empty part: a right value without bytes is read as none, and then a table joined with what was
    made of it is asked for anew (see docs/internals/foreign-key-joins.md).
    """
    return f"{rng.choice(['a', 'b', 'c', 'ab', 'zz'])}|{rng.choice('12123')}"


class ForeignKeyProgram(JoinProgram):
    """A program that also joins on foreign keys."""

    def source(self) -> None:
        key = self.rng.choice(_KINDS)
        consumed = self.serdes(Shape(key, "text"))
        if self.chance(self.profile.named):
            consumed["name"] = self.new("source-")
        shape = Shape(key, "text", "key" in consumed, "value" in consumed)
        topic = self.new("in")
        self.inputs[topic] = Input(parts.keys_of(key), _reference, self.rng.randint(1, 2))
        options = self.option("consumed", consumed)
        if self.chance(0.15):
            self.streams.append((self.add("stream", topic=topic, **options), shape))
            stored = self.materialized(shape)
            made = self.add("to_table", self.streams[-1][0], **self.named(), **stored)
            self.tables.append((made, self._stored(shape, stored)))
            return
        stored = self.materialized(replace(shape, key_known=True, value_known=True))
        self.tables.append((self.add("table", topic=topic, **options, **stored), shape))

    def foreign_key(self, left: Shape, right: Shape) -> tuple[Json, bool]:
        """Draws a selector of keys of the right table; gives it, and whether it must see the key of the row."""
        same_keys = SERDES[left.key] == SERDES[right.key]
        if same_keys and self.chance(0.15):
            return ["key"], True
        if SERDES[left.value] == SERDES[right.key] and SERDES[left.value] != "string":
            return ["value"], self.chance(0.3)
        if SERDES[left.value] != "string":
            if right.key == "text":
                return ["value", "show"], self.chance(0.3)
            return (["key"], True) if same_keys else (["null"], False)
        path: list[str] = {
            "text": ["value", self.rng.choice(["part:0:|", "part:0:|", "first:1"])],
            "digits": ["value", "part:0:|"],
            "long": ["length"],
            "integer": ["length", "to_int"],
            "double": ["length", "to_double"],
        }[right.key]
        if right.key in ("long", "integer") and left.value == "text" and self.chance(0.3):
            path = ["value", "first:1", "length", *path[1:]]
        if right.key == "text" and self.chance(0.4):
            path += [self.rng.choice(["null_if_eq:b", "null_if_eq:zz", "or_else:a"])]
        if self.chance(self.profile.failing):
            path = ["value", self.rng.choice(["throw_if_eq:b|2:boom", "throw_if_eq:a|1:one"]), *path]
        return path, self.chance(0.3)

    def do_fk_join(self) -> None:
        found, other = self.pick_table(), self.rng.choice(self.tables)
        if found is None:
            return
        (left, shape), (right, theirs) = found, other
        kind, joiner = self.joiner(shape, theirs)
        result = Shape(shape.key, kind, shape.key_known)
        stored = self.materialized(result, 0.4) if self.chance(0.6) else {}
        select, with_key = self.foreign_key(shape, theirs)
        options: dict[str, Json] = {"fk_with_key": True} if with_key else {}
        if self.chance(0.3):
            options["table_joined"] = self._table_joined()
        self.used.add(right)
        op = self.rng.choice(["join", "left_join"])
        made = self.add(op, left, with_=right, joiner=joiner, fk=select, **options, **stored)
        # The table has the key serde of the left one, whatever its store has.
        known = replace(result, value_known="value" in stored.get("materialized", {}))
        self.tables.append((made, known))

    def _table_joined(self) -> dict[str, Json]:
        content: dict[str, Json] = {}
        if self.chance(0.6):
            content["name"] = self.rng.choice([self.new("fk-"), self.new("fk-"), "fk-twice"])
        for field in ("partitioner", "other_partitioner"):
            if self.chance(0.3):
                content[field] = self.rng.choice(["default", "fixed:0", "key_length", "num_partitions"])
        if self.chance(0.03):
            content["partitioner"] = self.rng.choice(["multi:0,1", "drop"])
        return content


_STEPS = {
    "fk_join": 8,
    "table_join": 2,
    "table_filter": 2,
    "table_map_values": 2,
    "table_aggregate": 2,
    "table_to_stream": 1,
    "transform_values": 1,
    "stream_table_join": 1,
    "to_table": 1,
}
_JOINS = {"fk_join": 6, "table_filter": 1, "table_map_values": 1}
_CACHES = (0, 0, 10485760)


def _template(profile: Profile) -> Template:
    return Template("fk_join", 3, program(replace(profile, caches=_CACHES), ForeignKeyProgram))


TEMPLATES: dict[str, Template] = {
    "program_fk": _template(Profile(_STEPS, size=(2, 7), sources=(2, 4))),
    "program_fk_chain": _template(Profile(_JOINS, size=(2, 5), sources=(2, 3))),
    "program_fk_errors": _template(Profile(_JOINS, size=(1, 4), sources=(2, 3), failing=0.4, equal_times=0.0)),
    "program_fk_headers_format": _template(Profile(_JOINS, size=(1, 4), sources=(2, 3), headers_format=1.0)),
}
