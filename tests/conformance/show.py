"""``python -m tests.conformance.show FILE...`` prints cases readably: each step with what it makes happen."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.conformance.values import Json


def lines(case: Json) -> Iterator[str]:
    """Gives the case as lines of text."""
    expect = case.get("expect", {})
    yield f"===== {case['name']} - {case.get('about', '')}"
    yield f"    config {json.dumps(case.get('config', {}))}"
    for step in case["topology"]:
        yield f"    {json.dumps(step)}"
    if "error" in expect:
        yield f"  ERROR {json.dumps(expect['error'])}"
    for number, step in enumerate(case["steps"]):
        yield f"{number:3d} {_step(step)}"
        yield from (f"        {_event(event)}" for event in expect.get("events", ()) if event["step"] == number)
    for store, rows in expect.get("stores", {}).items():
        for row in rows if isinstance(rows, list) else [rows]:
            yield f"    store {store}: {row if isinstance(row, str) else _row(row)}"


def _step(step: Json) -> str:
    record = step.get("pipe")
    if record is None:
        return json.dumps(step)
    headers = f" {record['headers']}" if "headers" in record else ""
    pair = f"{json.dumps(record['key'])}={json.dumps(record['value'])}"
    return f"pipe {record['topic']} {pair} @{record['ts']}{headers}"


def _row(row: Json) -> str:
    fields = ((name, text(value) if name in ("key", "value") else value) for name, value in row.items())
    return ", ".join(f"{name} {value}" for name, value in fields)


def _event(event: Json) -> str:
    if "topic" not in event:
        return ":: " + json.dumps({name: value for name, value in event.items() if name != "step"})
    partition = "" if event["partition"] is None else f" p{event['partition']}"
    headers = f" {event['headers']}" if event["headers"] else ""
    pair = f"{text(event['key'])}={text(event['value'])}"
    return f"-> {event['topic']:<40} {pair} @{event['ts']}{partition}{headers}"


def text(hexadecimal: str | None) -> str:
    """Bytes for people: text where printable, a number of 8 bytes, text with the longs behind it, or hex.

    >>> text("6162"), text("0000000000000005"), text("610000000000000005"), text("00"), text(None)
    ("'ab'", '#5', "'a'/5", 'x00', 'null')
    """
    if hexadecimal is None:
        return "null"
    data = bytes.fromhex(hexadecimal)
    if _printable(data):
        return repr(data.decode("ascii"))
    if len(data) == 8:
        return f"#{int.from_bytes(data, 'big', signed=True)}"
    for longs in (8, 16):
        front, back = data[:-longs], data[-longs:]
        if front and _printable(front):
            numbers = [int.from_bytes(back[i : i + 8], "big") for i in range(0, len(back), 8)]
            return repr(front.decode("ascii")) + "".join(f"/{number}" for number in numbers)
    return f"x{hexadecimal}"


def _printable(data: bytes) -> bool:
    return data.isascii() and data.decode("ascii").isprintable()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; gives its exit code."""
    paths = sys.argv[1:] if arguments is None else arguments
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    for path in paths:
        print("\n".join(lines(json.loads(Path(path).read_text(encoding="utf-8")))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
