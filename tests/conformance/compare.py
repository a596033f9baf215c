"""Compares what a case did with what it expects, and says each difference in a line or a few."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass

from tests.conformance.functions import thrown_messages
from tests.conformance.values import Json

_JAVA_HEADERS = ("__streams.errors.exception", "__streams.errors.message", "__streams.errors.stacktrace")
_MISSING = object()
_ALIGNED = 500


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: the field of ``expect``, the step where there is one, and both sides."""

    field: str
    expected: str
    got: str
    step: int | None = None

    def __str__(self) -> str:
        where = self.field if self.step is None else f"{self.field}, step {self.step}"
        return f"{where}\n    expected  {self.expected}\n    got       {self.got}"


def compare(case: Json, got: dict[str, Json]) -> list[Difference]:
    """Gives every difference between ``case["expect"]`` and the result of a run."""
    expected = case["expect"]
    found = _error(expected.get("error"), got.get("error"))
    for field in ("describe", "split_keys", "internal_topics", "events", "stores"):
        left, right = expected.get(field, _MISSING), got.get(field, _MISSING)
        if left is _MISSING or right is _MISSING:
            if left is not right and not ("error" in expected) ^ ("error" in got):
                found.append(Difference(field, _shown(left), _shown(right)))
        elif field == "describe":
            found += _text(field, left, right)
        elif field == "events":
            found += _events(left, right, thrown_messages(case["topology"]))
        elif field == "stores":
            found += _stores(left, right)
        else:
            found += _mapping(field, left, right)
    return found


def _shown(value: object) -> str:
    return "nothing" if value is _MISSING else json.dumps(value)


def _error(expected: Json, got: Json) -> list[Difference]:
    if expected is None and got is None:
        return []
    if expected is None or got is None:
        return [Difference("error", _describe_error(expected), _describe_error(got))]
    same = all(expected.get(part) == got.get(part) for part in ("phase", "step", "class"))
    return [] if same else [Difference("error", _describe_error(expected), _describe_error(got))]


def _describe_error(error: Json) -> str:
    if error is None:
        return "no error"
    step = f", step {error['step']}" if "step" in error else ""
    return f"{error['class']} in {error['phase']}{step}: {error.get('message')}"


def _text(field: str, expected: str, got: str) -> list[Difference]:
    """Texts of many lines: each changed stretch with the line before it."""
    left, right = expected.splitlines(), got.splitlines()
    found = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag != "equal":
            where = f"{field}, line {a + 1}"
            found.append(Difference(where, _lines(left[a:b]), _lines(right[c:d])))
    if not found and expected != got:
        found.append(Difference(field, repr(expected[-40:]), repr(got[-40:])))
    return found


def _lines(lines: list[str]) -> str:
    return "\n              ".join(lines) if lines else "nothing"


def _mapping(field: str, expected: dict[str, Json], got: dict[str, Json]) -> list[Difference]:
    return [
        Difference(f"{field}, {name!r}", _shown(left), _shown(right))
        for name in sorted(expected.keys() | got.keys())
        if (left := expected.get(name, _MISSING)) != (right := got.get(name, _MISSING))
    ]


def _events(expected: list[Json], got: list[Json], messages: set[str]) -> list[Difference]:
    """Events, aligned so that one that is missing or too many does not shift the rest."""
    left = [_comparable(event, messages) for event in expected]
    right = [_comparable(event, messages) for event in got]
    found = []
    for a, b, c, d in _changes(left, right):
        for offset in range(max(b - a, d - c)):
            one = left[a + offset] if a + offset < b else None
            other = right[c + offset] if c + offset < d else None
            step = (one or other or {}).get("step")
            found.append(Difference("events", _event(one), _event(other), step))
    return found


def _changes(left: list[Json], right: list[Json]) -> list[tuple[int, int, int, int]]:
    """The stretches in which two lists differ, among the first ``_ALIGNED`` behind what they begin with alike.

    Bounds in the one, bounds in the other. Aligning takes the square of the length.
    """
    pairs = enumerate(zip(left, right, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(left), len(right)))
    keys = [[json.dumps(item, sort_keys=True) for item in side[same : same + _ALIGNED]] for side in (left, right)]
    matcher = difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False)
    return [(same + a, same + b, same + c, same + d) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]


def _event(event: Json) -> str:
    if event is None:
        return "nothing"
    parts = {key: value for key, value in event.items() if key != "step" and value != []}
    for part in ("key", "value"):
        if "topic" in event and isinstance(event[part], str):
            parts[part] = readable(event[part])
    return ", ".join(f"{key} {value if isinstance(value, str) else json.dumps(value)}" for key, value in parts.items())


def readable(hexadecimal: str) -> str:
    """Bytes for people: the hex, with the text or the number that they may stand for.

    >>> readable("6162"), readable("0000000000000005")
    ("6162 = 'ab'", '0000000000000005 = 5')
    """
    data = bytes.fromhex(hexadecimal)
    if data.isascii() and data.decode("ascii").isprintable():
        return f"{hexadecimal} = {data.decode('ascii')!r}"
    if len(data) in (4, 8):
        return f"{hexadecimal} = {int.from_bytes(data, 'big', signed=True)}"
    return hexadecimal


def _comparable(event: Json, messages: set[str]) -> Json:
    """An event without what only Java can know, and without history that a runner may leave out."""
    if "topic" in event:
        return {**event, "headers": [_header(name, value, messages) for name, value in event["headers"]]}
    if event.get("op") == "history" and isinstance(event["result"], list):
        return {**event, "result": [row for row in event["result"] if not row.get("expired")]}
    return event


def _header(name: str, value: str | None, messages: set[str]) -> list[str | None]:
    if name not in _JAVA_HEADERS:
        return [name, value]
    own = name == _JAVA_HEADERS[1] and value is not None and bytes.fromhex(value).decode(errors="replace") in messages
    return [name, value if own else "*"]


def _stores(expected: dict[str, Json], got: dict[str, Json]) -> list[Difference]:
    found = []
    for name in sorted(expected.keys() | got.keys()):
        left, right = expected.get(name, _MISSING), got.get(name, _MISSING)
        if left == right:
            continue
        if not isinstance(left, list) or not isinstance(right, list):
            found.append(Difference(f"stores, {name!r}", _shown(left), _shown(right)))
            continue
        for a, b, c, d in _changes(left, right):
            rows = [_lines([_row(row) for row in side]) for side in (left[a:b], right[c:d])]
            found.append(Difference(f"stores, {name!r}", rows[0], rows[1]))
    return found


def _row(row: Json) -> str:
    shown = {key: readable(value) if key in ("key", "value") and value else value for key, value in row.items()}
    return ", ".join(f"{key} {value}" for key, value in shown.items())
