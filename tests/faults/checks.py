"""What must have come out: results and changelogs, compared with the input, both read from outside."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from confluent_kafka import Message

from tests.brokers.records import key_of, records_of, value_of
from tests.faults.topics import LINES, NOTES, Output, group_of, window_of

_SHOWN = 5
_READ_S = 180.0
_WINDOW_KEY_TAIL = 12
"""A window's key in a changelog: the key, its start (8 bytes), a number (4 bytes)."""


@dataclass(frozen=True, slots=True)
class Result:
    """A count that came out, and when it was written (of a changelog: the time of the record that led to it)."""

    count: int
    at_ms: int

    def __str__(self) -> str:
        return f"{self.count} at {time.strftime('%H:%M:%S', time.localtime(self.at_ms / 1000))}"


Results: TypeAlias = Mapping[str, Sequence[Result]]
"""All that came out for each key, in order."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What the input must lead to."""

    lines: Mapping[str, Sequence[str]]
    """The values of each key, in order."""
    counts: Mapping[Output, Mapping[str, int]]

    @classmethod
    def of(cls, lines: Collection[Message], notes: Collection[Message]) -> Expected:
        groups, windows = Counter[str](), Counter[str]()
        for line in lines:
            key, value = key_of(line).decode(), value_of(line).decode()
            groups[group_of(value)] += 1
            windows[window_of(key, line.timestamp()[1])] += 1
        merged = groups + Counter(key_of(note).decode() for note in notes)
        return cls(values_by_key(lines), {Output.COUNTS: groups, Output.WINDOWS: windows, Output.MERGED: merged})

    @classmethod
    def read(cls, bootstrap_servers: str) -> Expected:
        """Reads the input."""
        lines, notes = (records_of(bootstrap_servers, [topic], timeout_s=_READ_S) for topic in (LINES, NOTES))
        return cls.of(lines, notes)

    def __len__(self) -> int:
        return sum(map(len, self.lines.values()))


def check_application(bootstrap_servers: str, application: str, expected: Expected, *, exactly_once: bool) -> list[str]:
    """Everything that is wrong with the results of an application."""

    def read(topic: str) -> list[Message]:
        return records_of(bootstrap_servers, [topic], timeout_s=_READ_S)

    check = exact_counts if exactly_once else counts_not_too_low
    mapped = values_by_key(read(Output.MAPPED.topic(application)))
    wrong = check_lines(mapped, expected.lines, exactly_once=exactly_once)
    for output, counts in expected.counts.items():
        wrong += [f"{output}: {what}" for what in check(counts, results_by_key(read(output.topic(application))))]
        name_of = window_key if output is Output.WINDOWS else bytes.decode
        state = results_by_key(read(output.changelog(application)), name_of)
        wrong += [f"changelog of {output}: {what}" for what in check_state(counts, state, exactly_once=exactly_once)]
    return [f"{application}: {what}" for what in wrong]


def values_by_key(records: Collection[Message]) -> dict[str, list[str]]:
    """All values of every key, in order, where values are text."""
    values: dict[str, list[str]] = {}
    for record in records:
        values.setdefault(key_of(record).decode(), []).append(value_of(record).decode())
    return values


def check_lines(
    values: Mapping[str, Sequence[str]], expected: Mapping[str, Sequence[str]], *, exactly_once: bool
) -> list[str]:
    """None is lost; under exactly-once each came out once, in order."""
    wrong = []
    lost = [(key, value) for key, wanted in expected.items() for value in set(wanted) - set(values.get(key, []))]
    if lost:
        wrong.append(f"mapped: {len(lost)} of {sum(map(len, expected.values()))} lost: {sorted(lost)[:_SHOWN]}")
    if exactly_once and not lost:
        other = [key for key, wanted in expected.items() if [*values[key]] != [*wanted]]
        if other:
            more = sum(map(len, values.values())) - sum(map(len, expected.values()))
            wrong.append(f"mapped: {len(other)} keys repeated or out of order ({more} too many): {other[:_SHOWN]}")
    return wrong


def exact_counts(expected: Mapping[str, int], found: Results) -> list[str]:
    """Every count came out once, in order, and no other."""
    counts = {key: [result.count for result in results] for key, results in found.items()}
    wrong = [key for key, count in expected.items() if counts.get(key, []) != [*range(1, count + 1)]]
    wrong += counts.keys() - expected.keys()
    shown = [f"{key}: {_first_difference(expected.get(key, 0), found.get(key, []))}" for key in wrong[:_SHOWN]]
    return [f"{len(wrong)} of {len(expected)} keys were not counted exactly once: " + "; ".join(shown)] if wrong else []


def counts_not_too_low(expected: Mapping[str, int], found: Results) -> list[str]:
    """The last count of every key is at least what it must be."""
    low = [key for key, count in expected.items() if _last(found, key) < count]
    shown = [f"{key} is not {expected[key]}: {_end(found.get(key, []))}" for key in low[:_SHOWN]]
    return [f"{len(low)} of {len(expected)} final counts are too low: " + "; ".join(shown)] if low else []


def check_state(expected: Mapping[str, int], state: Results, *, exactly_once: bool) -> list[str]:
    """A changelog holds what the results say."""
    if not exactly_once:
        return counts_not_too_low(expected, state)
    wrong = [key for key, count in expected.items() if _last(state, key) != count]
    shown = [f"{key} is not {expected[key]}: {_end(state.get(key, []))}" for key in wrong[:_SHOWN]]
    return [f"{len(wrong)} of {len(expected)} keys are wrong: " + "; ".join(shown)] if wrong else []


def results_by_key(records: Collection[Message], name_of: Callable[[bytes], str] = bytes.decode) -> Results:
    """All counts of each key, in order, with their times."""
    results: dict[str, list[Result]] = {}
    for record in records:
        result = Result(int.from_bytes(record.value() or b"", "big"), record.timestamp()[1])
        results.setdefault(name_of(key_of(record)), []).append(result)
    return results


def window_key(key: bytes) -> str:
    """The key of a window in a changelog as results name it."""
    start = int.from_bytes(key[-_WINDOW_KEY_TAIL:-4], "big")
    return f"{key[:-_WINDOW_KEY_TAIL].decode()}@{start}"


def _last(results: Results, key: str) -> int:
    found = results.get(key)
    return found[-1].count if found else 0


def _end(found: Sequence[Result]) -> str:
    return ", ".join(map(str, found[-_SHOWN:])) if found else "nothing came"


def _first_difference(count: int, found: Sequence[Result]) -> str:
    for place, result in enumerate(found, 1):
        if result.count != place:
            return f"after {place - 1} of {count} came {result}"
    return f"{len(found)} of {count}" + (f", the last one {found[-1]}" if found else "")
