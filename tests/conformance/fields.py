"""Refuses fields that FORMAT.md does not know.

So a misspelt parameter cannot silently select another overload.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.conformance.errors import FormatError
from tests.conformance.values import Json


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _op(names: str, fields: str) -> dict[str, frozenset[str]]:
    return {name: _words(f"id op {fields}") for name in names.split()}


OPS: dict[str, frozenset[str]] = {
    **_op("stream", "topic topics pattern consumed"),
    **_op("table global_table", "topic consumed materialized"),
    **_op("filter filter_not", "on fn named materialized"),
    **_op("map", "on key value named"),
    **_op("map_values", "on fn with_key named materialized"),
    **_op("flat_map", "on fn named"),
    **_op("flat_map_values", "on fn with_key named"),
    **_op("select_key peek foreach", "on fn named"),
    **_op("split", "on named branches default"),
    **_op("branch_of", "on key"),
    **_op("merge", "on with named"),
    **_op("repartition", "on repartitioned"),
    **_op("to", "on topic topic_fn produced"),
    **_op("to_table", "on named materialized"),
    **_op("to_stream", "on fn named"),
    **_op("process process_values", "on processor stores named"),
    **_op("transform_values", "on transformer stores named materialized"),
    **_op("group_by_key", "on grouped"),
    **_op("group_by", "on fn key value grouped"),
    **_op("windowed_by", "on windows"),
    **_op("emit_strategy", "on strategy"),
    **_op("cogroup", "on with aggregator"),
    **_op("count", "on named materialized"),
    **_op("reduce", "on reducer adder subtractor named materialized"),
    **_op("aggregate", "on initializer aggregator adder subtractor merger named materialized"),
    **_op("suppress", "on until time_limit_ms buffer named"),
    **_op(
        "join left_join outer_join",
        "on with joiner joiner_with_key windows stream_joined joined key_selector named materialized"
        " fk fk_with_key table_joined",
    ),
    **_op("add_state_store", "store processors"),
    **_op(
        "add_global_store add_read_only_state_store",
        "store topic consumed processor source_name processor_name",
    ),
    **_op("add_source", "name topics pattern key value offset_reset timestamp_extractor"),
    **_op("add_processor", "name processor parents"),
    **_op("add_sink", "name topic topic_fn key value partitioner parents"),
    **_op("connect", "processor stores"),
}

_STORE = _words(
    "kind max_entries history_retention_ms segment_interval_ms retention_ms window_size_ms retain_duplicates"
    " key value caching logging"
)

OBJECTS: dict[str, frozenset[str]] = {
    "consumed": _words("key value timestamp_extractor offset_reset name"),
    "produced": _words("key value partitioner name"),
    "grouped": _words("name key value"),
    "repartitioned": _words("name key value partitions partitioner"),
    "joined": _words("key value other_value name grace_ms"),
    "stream_joined": _words("key value other_value name store_name logging dsl_store this_store other_store"),
    "table_joined": _words("name partitioner other_partitioner"),
    "materialized": _STORE | {"store", "dsl_store"},
    "store": _STORE | {"name"},
    "this_store": _STORE | {"name"},
    "other_store": _STORE | {"name"},
    "windows": _words("type size_ms advance_ms grace_ms difference_ms gap_ms start_ms before_ms after_ms"),
    "buffer": _words("unbounded max_records max_bytes when_full logging"),
    "processor": _words(
        "name times key value when child else header to delta message store forward scan from as_of before_ms"
        " after_ms backward interval_ms type start_ms cancel_after provide_stores"
    ),
    "transformer": _words("name value store provide_stores"),
    "pipe": _words("topic key value ts headers"),
    "query_store": _words(
        "store op key from to prefix time time_from time_to as_of ascending start end earliest_end latest_start"
    ),
}

CASE = _words("name area about config expect_error wall_clock_start_ms topology steps expect")
STEP = _words("pipe advance_wall_clock_ms query_store")
BRANCH = _words("id fn name consumer plain")
DEFAULT_BRANCH = _words("id name consumer")


def check(case: Json) -> None:
    """Raises ``FormatError`` for the first field that does not belong where it stands."""
    _only(case, CASE, "the case")
    for required in ("name", "topology", "steps"):
        if required not in case:
            raise FormatError(f"the case has no {required!r}")
    ids: set[str] = set()
    for step in case["topology"]:
        identifier, op = step.get("id", ""), step.get("op", "")
        if not identifier or identifier in ids:
            raise FormatError(f"missing or repeated id {identifier!r}")
        ids.add(identifier)
        if op not in OPS:
            raise FormatError(f"unknown op {op!r} in step {identifier!r}")
        _only(step, OPS[op], f"{op} {identifier!r}")
        for name, value in step.items():
            _object(name, value, identifier)
        for branch in step.get("branches", ()):
            _only(branch, BRANCH, f"a branch of {identifier!r}")
        if isinstance(step.get("default"), dict):
            _only(step["default"], DEFAULT_BRANCH, f"the default branch of {identifier!r}")
    for step in case["steps"]:
        if len(step) != 1:
            raise FormatError(f"a step does one thing, this one has {sorted(step)}")
        _only(step, STEP, "a step")
        for name, value in step.items():
            if isinstance(value, dict):
                _only(value, OBJECTS[name], name)


def _object(name: str, value: Json, identifier: str) -> None:
    if not isinstance(value, dict) or name not in OBJECTS:
        return
    _only(value, OBJECTS[name], f"{name} of {identifier!r}")
    for inner, content in value.items():
        if inner.endswith("_store"):
            _object(inner, content, identifier)
        if inner == "provide_stores":
            for store in content:
                _only(store, OBJECTS["store"], f"provide_stores of {identifier!r}")


def _only(fields: Iterable[str], known: frozenset[str], where: str) -> None:
    unknown = sorted(set(fields) - known)
    if unknown:
        raise FormatError(f"unknown field {unknown[0]!r} in {where}; known there: {', '.join(sorted(known))}")
