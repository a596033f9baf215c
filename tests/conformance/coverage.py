"""``python -m tests.conformance.coverage DIR`` counts what the cases of a folder use."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.report import case_files, load
from tests.conformance.values import Json

_SERDE_OWNERS = frozenset(
    (
        "consumed",
        "produced",
        "grouped",
        "materialized",
        "store",
        "joined",
        "stream_joined",
        "repartitioned",
    )
)
_FUNCTIONS = frozenset(
    (
        "joiner",
        "initializer",
        "merger",
        "partitioner",
        "timestamp_extractor",
        "topic_fn",
        "offset_reset",
        "strategy",
        "until",
        "when_full",
        "aggregator",
        "adder",
        "subtractor",
        "reducer",
    )
)
_OPTIONS = frozenset(
    (
        "named",
        "materialized",
        "consumed",
        "produced",
        "grouped",
        "repartitioned",
        "joined",
        "stream_joined",
        "table_joined",
        "joiner_with_key",
        "fk_with_key",
        "with_key",
    )
)

Counts = defaultdict[str, Counter[str]]


def count(case: Json, counts: Counts) -> None:
    """Adds what a case uses."""
    counts["area"][case["area"]] += 1
    for key in case["config"]:
        counts["config"][key] += 1
    for step in case["topology"]:
        counts["op"][("fk " if "fk" in step else "") + step["op"]] += 1
        for option in sorted(_OPTIONS):
            counts["option"][option] += option in step
        for kind in ("processor", "transformer"):
            if isinstance(step.get(kind), dict):
                counts[kind][step[kind]["name"]] += 1
        if "type" in step.get("windows", ()):
            counts["windows"][step["windows"]["type"]] += 1
        _walk(step, "", counts)
    for step in case["steps"]:
        if "query_store" in step:
            counts["query"][step["query_store"]["op"]] += 1
    expect = case.get("expect", {})
    counts["totals"].update(steps=len(case["steps"]), events=len(expect.get("events", ())), errors="error" in expect)


def _walk(value: Json, owner: str, counts: Counts) -> None:
    if isinstance(value, list):
        for item in value:
            _walk(item, owner, counts)
    elif isinstance(value, dict):
        for field, content in value.items():
            if field == "kind":
                counts["store kind"][content] += 1
            if field in ("key", "value", "other_value") and owner in _SERDE_OWNERS and isinstance(content, str):
                counts["serde"][content.split(":")[0]] += 1
            if field in _FUNCTIONS:
                counts[field][str(content).split(":")[0]] += 1
            _walk(content, field, counts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; gives its exit code."""
    folders = sys.argv[1:] if arguments is None else arguments
    if not folders:
        print(__doc__, file=sys.stderr)
        return 2
    counts: Counts = defaultdict(Counter)
    for path in case_files(map(Path, folders)):
        count(load(path), counts)
    for subject in sorted(counts):
        print(f"{subject}: " + ", ".join(f"{name} {n}" for name, n in sorted(counts[subject].items()) if n))
    return 0


if __name__ == "__main__":
    sys.exit(main())
