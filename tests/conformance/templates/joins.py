"""Templates for joins of streams, tables and global tables."""

from __future__ import annotations

from typing import Any

from tests.conformance.caselib import Step, step
from tests.conformance.templates.scenario import Input, Template, fixed, foreign, grouped, word
from tests.conformance.templates.shapes import (
    KEYS,
    WORDS_AB,
    WORDS_LEFT_RIGHT,
    sink,
    source,
    table,
    versioned,
)
from tests.conformance.values import Json

_CACHE = 10485760
_STREAM_TABLE = {"in": Input(KEYS, word), "tab": Input(KEYS, word)}
_FOREIGN = {"l": Input(["a", "b", "ab", "c"], foreign, 2), "r": Input(["x", "y", "z", "xx"], word)}
_FK = ["value", "part:0:|"]


def _streams(op: str, windows: Json, **parameters: Any) -> list[Step]:
    joined = step("j", op, "a", with_="b", joiner="concat:+", windows=windows, **parameters)
    return [source("a", "a"), source("b", "b"), joined, sink("j")]


def _stream_table(materialized: Json = None, **parameters: Any) -> list[Step]:
    stored = {"materialized": materialized} if materialized else {}
    joined = step("j", "left_join", "s", with_="t", joiner="concat:+", **parameters)
    return [source(), table("tab", "t", **stored), joined, sink("j")]


def _tables(op: str, left: Json = None, right: Json = None, **parameters: Any) -> list[Step]:
    return [
        table("l", "l", **({"materialized": left} if left else {})),
        table("r", "r", **({"materialized": right} if right else {})),
        step("j", op, "l", with_="r", joiner="concat:+", **parameters),
        step("o", "to_stream", "j"),
        sink("o"),
    ]


_STREAM_JOIN, _TABLE_JOIN = "stream_stream_join", "table_table_join"

TEMPLATES: dict[str, Template] = {
    "ss_inner": fixed(_STREAM_JOIN, 2, _streams("join", {"difference_ms": 6, "grace_ms": 10}), WORDS_AB),
    "ss_left": fixed(_STREAM_JOIN, 2, _streams("left_join", {"difference_ms": 6, "grace_ms": 5}), WORDS_AB),
    "ss_outer": fixed(_STREAM_JOIN, 2, _streams("outer_join", {"difference_ms": 6, "grace_ms": 5}), WORDS_AB),
    "ss_outer_asymmetric": fixed(
        _STREAM_JOIN,
        2,
        _streams("outer_join", {"difference_ms": 0, "before_ms": 1, "after_ms": 9, "grace_ms": 8}),
        WORDS_AB,
    ),
    "ss_outer_in_memory": fixed(
        _STREAM_JOIN,
        2,
        _streams("outer_join", {"difference_ms": 4, "grace_ms": 3}, stream_joined={"dsl_store": "in_memory"}),
        WORDS_AB,
    ),
    "st_left": fixed("stream_table_join", 2, _stream_table(), _STREAM_TABLE),
    "st_versioned": fixed("stream_table_join", 4, _stream_table(versioned("vt")), _STREAM_TABLE),
    "st_grace": fixed(
        "stream_table_join",
        4,
        _stream_table(versioned("vt"), joined={"grace_ms": 12}),
        _STREAM_TABLE,
        null_keys=0,
    ),
    "global_left": fixed(
        "global_table",
        2,
        [
            source(),
            step("t", "global_table", topic="glob", materialized={"store": "gs"}),
            step("j", "left_join", "s", with_="t", key_selector=_FK, joiner="concat:+"),
            sink("j"),
        ],
        {"in": Input(KEYS, grouped), "glob": Input(["x", "y"], word)},
    ),
    "tt_inner": fixed(_TABLE_JOIN, 2, _tables("join"), WORDS_LEFT_RIGHT),
    "tt_left": fixed(_TABLE_JOIN, 2, _tables("left_join", materialized={"store": "res"}), WORDS_LEFT_RIGHT),
    "tt_outer": fixed(_TABLE_JOIN, 2, _tables("outer_join"), WORDS_LEFT_RIGHT),
    "tt_outer_cached": fixed(
        _TABLE_JOIN,
        2,
        _tables("outer_join", {"store": "ls"}, {"store": "rs"}, materialized={"store": "res"}),
        WORDS_LEFT_RIGHT,
        cache=_CACHE,
    ),
    "tt_outer_versioned": fixed(
        _TABLE_JOIN, 4, _tables("outer_join", versioned("lv"), versioned("rv")), WORDS_LEFT_RIGHT
    ),
    "tt_left_versioned_right": fixed(
        _TABLE_JOIN, 4, _tables("left_join", {"store": "ls"}, versioned("rv")), WORDS_LEFT_RIGHT
    ),
    "fk_inner": fixed("fk_join", 3, _tables("join", fk=[*_FK, "null_if_eq:z"]), _FOREIGN),
    "fk_left": fixed(
        "fk_join",
        3,
        _tables("left_join", fk=[*_FK, "null_if_eq:z"], materialized={"store": "res"}),
        _FOREIGN,
    ),
    "fk_inner_versioned": fixed("fk_join", 4, _tables("join", versioned("lv"), versioned("rv"), fk=_FK), _FOREIGN),
    "fk_left_cached": fixed(
        "fk_join", 3, _tables("left_join", {"store": "ls"}, {"store": "rs"}, fk=_FK), _FOREIGN, cache=_CACHE
    ),
}
