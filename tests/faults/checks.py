"""What must have come out: results and changelogs, compared with the input, both read from outside."""

from __future__ import annotations

import operator
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from confluent_kafka import Message

from tests.brokers.records import key_of, records_of, value_of
from tests.faults.applications import Application
from tests.faults.expected_joins import ExpectedJoins
from tests.faults.stores import check_copies, copies_of
from tests.faults.topics import (
    ANSWERS,
    COUNTED,
    LINES,
    NOTES,
    POISON,
    RATES,
    Output,
    dead_letters,
    group_of,
    window_of,
)

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
    joins: ExpectedJoins
    poison: Mapping[str, Counter[bytes]] = field(default_factory=dict)
    """What nobody can read or process, by the topic in which it is."""

    @classmethod
    def of(
        cls,
        lines: Collection[Message],
        notes: Collection[Message],
        answers: Collection[Message] = (),
        rates: Collection[Message] = (),
    ) -> Expected:
        poison = {LINES: _poison(lines), NOTES: _poison(notes)}
        lines = [line for line in lines if not _is_poison(line)]
        notes = [note for note in notes if not _is_poison(note)]
        groups, windows = Counter[str](), Counter[str]()
        for line in lines:
            key, value = key_of(line).decode(), value_of(line).decode()
            groups[group_of(value)] += 1
            windows[window_of(key, line.timestamp()[1])] += 1
        merged = groups + Counter(key_of(note).decode() for note in notes)
        counts = {Output.COUNTS: groups, Output.WINDOWS: windows, Output.MERGED: merged}
        return cls(values_by_key(lines), counts, ExpectedJoins.of(lines, notes, answers, rates), poison)

    @classmethod
    def read(cls, bootstrap_servers: str) -> Expected:
        """Reads the input."""
        inputs = (LINES, NOTES, ANSWERS, RATES)
        return cls.of(*(records_of(bootstrap_servers, [topic], timeout_s=_READ_S) for topic in inputs))

    def __len__(self) -> int:
        return sum(map(len, self.lines.values()))


def check_application(
    bootstrap_servers: str, application: Application, expected: Expected, folders: Mapping[str, Path]
) -> list[str]:
    """Everything that is wrong with the results of an application, its changelogs and its stores.

    :param folders: the state directories of its workers, by worker; none where Java has a part in the stores.
    """
    name, exactly_once = application.name, application.exactly_once

    def read(topic: str) -> list[Message]:
        return records_of(bootstrap_servers, [topic], timeout_s=_READ_S)

    wrong: list[str] = []
    for output in application.judged:
        found = read(output.topic(name))
        if output is Output.MAPPED:
            wrong += check_lines(values_by_key(found), expected.lines, exactly_once=exactly_once)
        elif output in COUNTED:
            counts, results = expected.counts[output], results_by_key(found)
            check = exact_counts if exactly_once else counts_not_too_low
            wrong += [f"{output}: {what}" for what in check(counts, results)]
            name_of = window_key if output is Output.WINDOWS else bytes.decode
            state = results_by_key(read(output.changelog(name)), name_of)
            changelog = check_state(counts, state, exactly_once=exactly_once)
            wrong += [f"changelog of {output}: {what}" for what in changelog]
            if folders:
                last = {key: results[-1].count for key, results in state.items()}
                copies = [*copies_of(application, folders, output)]
                kept = check_copies(copies, last) if exactly_once else check_copies(copies, counts, operator.ge)
                wrong += [f"store of {output}: {what}" for what in kept]
        else:
            joined = expected.joins.check(output, values_by_key(found), exactly_once=exactly_once)
            wrong += [f"{output}: {what}" for what in joined]
            if folders and exactly_once and output is not Output.PAIRS:
                texts = values_by_key(read(output.changelog(name)))
                last_texts = {key: values[-1] for key, values in texts.items()}
                kept = check_copies([*copies_of(application, folders, output)], last_texts)
                wrong += [f"store of {output}: {what}" for what in kept]
    poison = sum((expected.poison[topic] for topic in application.inputs if topic in expected.poison), Counter[bytes]())
    letters = Counter(record.value() or b"" for record in read(dead_letters(name)))
    wrong += [f"dead letters: {what}" for what in check_letters(poison, letters, exactly_once=exactly_once)]
    return [f"{name}: {what}" for what in wrong]


def check_letters(poison: Counter[bytes], letters: Counter[bytes], *, exactly_once: bool) -> list[str]:
    """Every poisoned record became a dead letter, and nothing else did; under exactly-once each became one."""
    wrong = []
    if lost := poison - letters:
        wrong.append(f"{lost.total()} of {poison.total()} poisoned records are not there: {sorted(lost)[:_SHOWN]}")
    if others := letters.keys() - poison.keys():
        wrong.append(f"{len(others)} records are there that can be processed: {sorted(others)[:_SHOWN]}")
    more = Counter({value: count for value, count in (letters - poison).items() if value in poison})
    if exactly_once and more:
        wrong.append(f"{more.total()} are there more than once: {sorted(more)[:_SHOWN]}")
    return wrong


def _is_poison(record: Message) -> bool:
    return value_of(record).startswith(POISON.encode())


def _poison(records: Collection[Message]) -> Counter[bytes]:
    return Counter(value_of(record) for record in records if _is_poison(record))


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
