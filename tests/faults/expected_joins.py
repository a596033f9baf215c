"""What the joins must have come to, made of the input alone, and compared with what came out."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from confluent_kafka import Message

from tests.brokers.records import key_of, value_of
from tests.faults.feed import END
from tests.faults.topics import NEAR_MS, Output, group_of

_SHOWN = 5

Values: TypeAlias = Mapping[str, Sequence[str]]
"""Texts by key, in order."""
History: TypeAlias = Mapping[str, Sequence[tuple[int, str]]]
"""The records of each key: (timestamp, value), in the order of both."""


@dataclass(frozen=True, slots=True)
class ExpectedJoins:
    """The results of the joins; keys that only move time on have none."""

    pairs: Values
    rated: Values
    links: Values
    """The values of the lines of each key, in order."""
    last_notes: Mapping[str, int]
    """By group."""

    @classmethod
    def of(
        cls,
        lines: Collection[Message],
        notes: Collection[Message],
        answers: Collection[Message],
        rates: Collection[Message],
    ) -> ExpectedJoins:
        of_lines, of_answers, of_rates = _history(lines), _history(answers), _history(rates)
        last_notes = {key_of(note).decode(): int.from_bytes(value_of(note), "big") for note in notes}
        return cls(
            {key: [*_pairs(of_lines.get(key, []), of_answers.get(key, []))] for key in {*of_lines, *of_answers}},
            {key: [*_rated(found, of_rates.get(key, []))] for key, found in of_lines.items()},
            {key: [line for _, line in found] for key, found in of_lines.items()},
            last_notes,
        )

    def check(self, output: Output, found: Values, *, exactly_once: bool) -> list[str]:
        """Everything that is wrong with one of the outputs."""
        found = {key: values for key, values in found.items() if not key.startswith(END)}
        match output:
            case Output.PAIRS:
                return check_results(self.pairs, found, exactly_once=exactly_once, in_order=False)
            case Output.RATED:
                return check_results(self.rated, found, exactly_once=exactly_once)
            case Output.LINKED:
                return check_links(self.links, self.last_notes, found, exactly_once=exactly_once)
            case _:
                raise ValueError(f"{output} is not the output of a join")


def check_results(expected: Values, found: Values, *, exactly_once: bool, in_order: bool = True) -> list[str]:
    """None is lost; under exactly-once each came out once, and no other.

    :param in_order: whether those of a key must be in order, too; results that wait for their time need not be.
    """
    wrong = []
    lost = [(key, value) for key in expected for value in set(expected[key]) - set(found.get(key, ()))]
    if lost:
        wrong.append(f"{len(lost)} of {sum(map(len, expected.values()))} are lost: {sorted(lost)[:_SHOWN]}")
    if not exactly_once:
        return wrong
    more = [
        (key, value)
        for key, values in found.items()
        for value in (Counter(values) - Counter(expected.get(key, ()))).elements()
    ]
    if more:
        wrong.append(f"{len(more)} came out more than once, or must not come out: {sorted(more)[:_SHOWN]}")
    if in_order and not wrong:
        other = [key for key, values in found.items() if [*values] != [*expected[key]]]
        if other:
            wrong.append(f"{len(other)} of {len(expected)} keys are out of order: {sorted(other)[:_SHOWN]}")
    return wrong


def check_links(lines: Values, last_notes: Mapping[str, int], found: Values, *, exactly_once: bool) -> list[str]:
    """The last result of a key is that of its last line and of the last note of its group.

    Under exactly-once the results of a key go on from line to line, and for a line from note to note: a line whose
    successor was there before its note was found is passed over, but none is repeated, and none goes back.
    """
    ends = {key: f"{values[-1]}+{last_notes[group_of(values[-1])]}" for key, values in lines.items()}
    other = [key for key, end in ends.items() if (found.get(key) or [""])[-1] != end]
    shown = [f"{key} ends with {(found.get(key) or ['nothing'])[-1]!r}, not {ends[key]!r}" for key in other[:_SHOWN]]
    wrong = [f"{len(other)} of {len(ends)} keys end otherwise: {'; '.join(shown)}"] if other else []
    if not exactly_once:
        return wrong
    places = {key: {line: place for place, line in enumerate(values)} for key, values in lines.items()}
    for key, values in found.items():
        before, last = (-1, -1), ""
        for value in values:
            line, _, note = value.rpartition("+")
            here = (places.get(key, {}).get(line, -1), int(note))
            if here <= before or here[0] < 0:
                wrong.append(f"{key}: {value!r} came after {last!r}")
            before, last = here, value
    return wrong


def _history(records: Collection[Message]) -> dict[str, list[tuple[int, str]]]:
    found: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
    for record in records:
        key = key_of(record).decode()
        if not key.startswith(END):
            found[key].append((record.timestamp()[1], value_of(record).decode()))
    return found


def _pairs(lines: Sequence[tuple[int, str]], answers: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Each line with each answer that is near it, and both kinds alone where there is none."""
    alone = set(range(len(answers)))
    for at, line in lines:
        near = range(bisect_left(answers, at - NEAR_MS, key=_time), bisect_right(answers, at + NEAR_MS, key=_time))
        yield from (f"{line}+{answers[place][1]}" for place in near)
        alone.difference_update(near)
        if not near:
            yield f"{line}+None"
    yield from (f"None+{answers[place][1]}" for place in alone)


def _rated(lines: Sequence[tuple[int, str]], rates: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Each line with the newest rate that is not younger."""
    for at, line in lines:
        place = bisect_right(rates, at, key=_time)
        yield f"{line}+{rates[place - 1][1] if place else None}"


def _time(record: tuple[int, str]) -> int:
    return record[0]
