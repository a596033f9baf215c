"""Assertions about records, whose messages show what differs: which record, and which field of it."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final, TypeVar

from pykstreams.testing.output_topic import TestOutputTopic
from pykstreams.testing.records import TestRecord, rows_of

K = TypeVar("K")
V = TypeVar("V")

_MISSING: Final = object()


def assert_records(
    found: TestOutputTopic[K, V] | Iterable[TestRecord[K, V] | tuple[K | None, V | None]],
    expected: Iterable[TestRecord[K, V] | tuple[K | None, V | None]],
) -> None:
    """Fails unless the records are those that are expected, in their order.

    An output topic is read to its end. An expected pair is compared by key and value; a ``TestRecord`` by headers, too,
    and by its timestamp if it has one.

    >>> assert_records([("ann", 250), ("bob", 90)], [("ann", 250), ("bob", 100)])
    Traceback (most recent call last):
    AssertionError: 1 of 2 records is not as expected
        0  'ann': 250
      - 1  'bob': 100
      + 1  'bob': 90
           value: expected 100, found 90
    """
    name = ""
    if isinstance(found, TestOutputTopic):
        name, found = f" of {found!r}", found.read_records()
    there = [_record(one) for one in found]
    wanted = [_like(one, there, i) for i, one in enumerate(expected)]
    if wanted == there:
        return
    lines, wrong = _compared(wanted, there)
    count = max(len(wanted), len(there))
    verb = "record is" if count == 1 else "records is" if wrong == 1 else "records are"
    raise AssertionError("\n".join((f"{wrong} of {count} {verb} not as expected{name}", *lines)))


def assert_table(found: TestOutputTopic[K, V] | Mapping[K, V | None], expected: Mapping[K, V | None]) -> None:
    """Fails unless the last values of all keys are those that are expected; an output topic is read to its end.

    A key whose last value is ``None`` has no row, as has one that is expected to be ``None``.

    >>> assert_table({"ann": 250, "eve": 1}, {"ann": 250, "bob": 100})
    Traceback (most recent call last):
    AssertionError: 2 of 3 rows are not as expected
      - 'bob': 100
      + 'eve': 1
    """
    name = ""
    if isinstance(found, TestOutputTopic):
        name, found = f" of {found!r}", found.read_key_values_to_dict()
    there, wanted = rows_of(found), rows_of(expected)
    lines: list[str] = []
    wrong = 0
    keys = dict.fromkeys((*wanted, *there))
    for key in keys:
        want, have = wanted.get(key, _MISSING), there.get(key, _MISSING)
        if want == have:
            continue
        wrong += 1
        lines += [f"  - {key!r}: {want!r}"] if want is not _MISSING else []
        lines += [f"  + {key!r}: {have!r}"] if have is not _MISSING else []
        if _MISSING not in (want, have):
            lines += [f"      {line}" for line in differences(want, have, "value")]
    if wrong:
        rows = "row is" if len(keys) == 1 else "rows is" if wrong == 1 else "rows are"
        raise AssertionError("\n".join((f"{wrong} of {len(keys)} {rows} not as expected{name}", *lines)))


def differences(expected: object, found: object, path: str) -> Iterator[str]:
    """Yields where two values differ, each place once: by fields, keys and positions, as deep as they are alike."""
    if expected == found:
        return
    wanted, there = _parts(expected), _parts(found)
    if type(expected) is not type(found) or wanted is None or there is None:
        yield f"{path}: expected {expected!r}, found {found!r}"
        return
    for part in dict.fromkeys((*wanted, *there)):
        want, have = wanted.get(part, _MISSING), there.get(part, _MISSING)
        inner = f"{path}{part}"
        if have is _MISSING:
            yield f"{inner}: expected {want!r}, found nothing"
        elif want is _MISSING:
            yield f"{inner}: expected nothing, found {have!r}"
        else:
            yield from differences(want, have, inner)


def _parts(value: object) -> dict[str, object] | None:
    """The parts of a value by how one reaches them; ``None`` for one without parts."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f".{field.name}": getattr(value, field.name) for field in dataclasses.fields(value) if field.compare}
    if isinstance(value, Mapping):
        return {f"[{key!r}]": part for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {f".{name}": getattr(value, name) for name in value._fields}
    if isinstance(value, list | tuple):
        return {f"[{number}]": part for number, part in enumerate(value)}
    names = getattr(type(value), "__struct_fields__", None) or getattr(type(value), "model_fields", None)
    return None if names is None else {f".{name}": getattr(value, name) for name in names}


def _record(one: TestRecord[K, V] | tuple[K | None, V | None]) -> TestRecord[K, V]:
    return one if isinstance(one, TestRecord) else TestRecord(one[0], one[1])


def _like(
    one: TestRecord[K, V] | tuple[K | None, V | None], there: Sequence[TestRecord[K, V]], number: int
) -> TestRecord[K, V]:
    """An expected record with the times and headers of the one at its place where it does not say them."""
    beside = there[number] if number < len(there) else None
    if isinstance(one, TestRecord):
        if beside is None or one.timestamp is not None:
            return one
        return TestRecord(one.key, one.value, timestamp=beside.timestamp, headers=one.headers)
    if beside is None:
        return TestRecord(one[0], one[1])
    return TestRecord(one[0], one[1], timestamp=beside.timestamp, headers=beside.headers)


def _compared(wanted: Sequence[TestRecord[K, V]], there: Sequence[TestRecord[K, V]]) -> tuple[list[str], int]:
    """The lines that show both, and how many records differ."""
    lines: list[str] = []
    wrong = 0
    matcher = difflib.SequenceMatcher(None, [*map(_text, wanted)], [*map(_text, there)], autojunk=False)
    for _, first, last, start, end in matcher.get_opcodes():
        for i, j in zip_longest(range(first, last), range(start, end)):
            if i is not None and j is not None and wanted[i] == there[j]:
                lines.append(f"    {j}  {_shown(there[j])}")
                continue
            wrong += 1
            lines += [f"  - {i}  {_shown(wanted[i])}"] if i is not None else []
            lines += [f"  + {j}  {_shown(there[j])}"] if j is not None else []
            if i is not None and j is not None:
                lines += [f"       {line}" for line in _record_differences(wanted[i], there[j])]
    return lines, wrong


def _record_differences(want: TestRecord[K, V], have: TestRecord[K, V]) -> Iterator[str]:
    for name in ("key", "value", "timestamp", "headers"):
        yield from differences(getattr(want, name), getattr(have, name), name)


def _text(record: TestRecord[K, V]) -> str:
    """The text by which records are put side by side; whether they are equal they say themselves."""
    return repr((record.key, record.value, record.timestamp, record.headers))


def _shown(record: TestRecord[K, V]) -> str:
    return f"{record.key!r}: {record.value!r}"
