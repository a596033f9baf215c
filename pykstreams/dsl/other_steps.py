"""Hints of the DSL's steps about methods that other steps have; each step shows its own as ``_elsewhere``."""

from __future__ import annotations

from typing import Final

TO_A_STREAM: Final = "make it a stream first: to_stream().{name}(...)"
TO_GROUPS: Final = "group it first: group_by_key().{name}(...), or group_by(...).{name}(...)"
TO_A_RESULT: Final = dict.fromkeys(
    ("filter", "join", "left_join", "map_values", "to", "to_stream", "to_table"),
    "aggregate it first, by count(), reduce(...) or aggregate(...), which gives a table",
)
"""The cure in the error of a group that is asked for a method of the table which an aggregation makes of it."""

TO_A_COGROUPED_RESULT: Final = dict.fromkeys(
    (*TO_A_RESULT, "count", "reduce"), "aggregate it first, by aggregate(initializer), which gives a table"
)
