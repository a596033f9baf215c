"""A versioned store equals a list of intervals for each key, whatever is put, deleted and read in any order of time; so
does what is reopened, and what is restored from its changelog."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.primitives import StringSerde
from pykstreams.state import (
    PUT_RETURN_CODE_NOT_PUT,
    PUT_RETURN_CODE_VALID_TO_UNDEFINED,
    ResultOrder,
    Stores,
    VersionedRecord,
)
from tests.unit.state.support import NAME, Context

RETENTION = 40
INTERVALS = [1, 7, 40, 1000]

KEYS = st.sampled_from(["", "a", "aa", "a\0", "\1"])
TIMES = st.one_of(st.integers(0, 60), st.integers(0, 150))
VALUES = st.one_of(st.integers(0, 9), st.just(""), st.none())

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, TIMES, VALUES),
        st.tuples(st.just("put"), KEYS, TIMES, VALUES),
        st.tuples(st.just("put"), st.just("a"), TIMES, VALUES),
        st.tuples(st.just("put"), st.just("a"), TIMES, VALUES),
        st.tuples(st.just("put_row"), KEYS, TIMES, VALUES),
        st.tuples(st.just("delete"), KEYS, TIMES),
        st.tuples(st.just("delete"), st.just("a"), TIMES),
        st.tuples(st.just("as_of"), KEYS, TIMES),
        st.tuples(st.just("history"), KEYS, TIMES, TIMES),
        st.tuples(st.just("commit")),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("hand_over")),
    ),
    max_size=40,
)


@dataclass
class Intervals:
    """The versions of one key, in order of time; ``None`` for deletions.

    ``ends`` are the times at which another version is known to have ended: there a deletion is remembered.
    """

    times: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    ends: set[int] = field(default_factory=set)

    def put(self, value: Any, time: int) -> int:
        at = bisect_left(self.times, time)
        newest = at >= len(self.times) - (time in self.times)
        if time in self.times:
            had_value = self.values[at] is not None
            self.values[at] = value
            if newest and value is None and had_value and time not in self.ends:
                del self.times[at], self.values[at]
        else:
            self.times.insert(at, time)
            self.values.insert(at, value)
            if newest and at and self.values[at - 1] is not None:
                self.ends.add(time)
            if newest and value is None:
                self.ends.add(time)
        if newest:
            return PUT_RETURN_CODE_VALID_TO_UNDEFINED
        until = self.times[at + 1]
        self.ends.add(until)
        if at:
            self.ends.add(time)
        return until

    def as_of(self, time: int) -> VersionedRecord[Any] | None:
        at = bisect_right(self.times, time) - 1
        return None if at < 0 or self.values[at] is None else VersionedRecord(self.values[at], self.times[at])

    def versions(self) -> list[VersionedRecord[Any]]:
        until = [*self.times[1:], None]
        return [
            VersionedRecord(*version)
            for version in zip(self.values, self.times, until, strict=False)
            if version[0] is not None
        ]


class Model:
    """The versions of all keys, and the stream time that makes them expire."""

    def __init__(self) -> None:
        self.keys: dict[str, Intervals] = {}
        self.time = -1

    def put(self, key: str, value: Any, time: int) -> int:
        if time < self.time - RETENTION:
            return PUT_RETURN_CODE_NOT_PUT
        self.time = max(self.time, time)
        return self.keys.setdefault(key, Intervals()).put(value, time)

    def get(self, key: str, time: int | None = None) -> VersionedRecord[Any] | None:
        versions = self.keys.get(key, Intervals())
        if time is None:
            return versions.as_of(2**63)
        found = versions.as_of(time)
        expired = time < self.time - RETENTION
        return None if expired and found != versions.as_of(2**63) else found

    def history(self, key: str, first: int, last: int) -> list[VersionedRecord[Any]]:
        readable = self.time - RETENTION
        return [
            version
            for version in self.keys.get(key, Intervals()).versions()
            if version.timestamp <= last
            and (version.valid_to is None or (last >= readable and version.valid_to > max(first, readable)))
        ]


def opened(engine: str, interval: int, context: Context) -> Any:
    make: Any = {
        "rocksdb": Stores.persistent_versioned_key_value_store,
        "memory": Stores.in_memory_versioned_key_value_store,
    }[engine]
    builder = Stores.versioned_key_value_store_builder(make(NAME, RETENTION, interval), StringSerde(), JsonSerde())
    store = builder.build()
    store.init(context)
    return store


def check(store: Any, model: Model) -> None:
    rows = [(row.key.decode(), row.value, row.timestamp, row.valid_to) for row in store.raw_rows()]
    encode = JsonSerde().serializer.serialize
    wanted = [
        (key, encode("", version.value), version.timestamp, version.valid_to)
        for key in sorted(model.keys, key=str.encode)
        for version in model.history(key, 0, 2**62)
    ]

    assert wanted == rows

    for key in ("", "a", "aa"):
        check_timelines(store, model, key)
        assert model.get(key) == store.get(key)
        for time in range(max(0, model.time - RETENTION), model.time + 2, 3):
            assert model.get(key, time) == store.get(key, time)


def check_timelines(store: Any, model: Model, key: str) -> None:
    """What operators read: every value between two times, as far back as is known, and until when each is valid."""
    intervals, readable = model.keys.get(key, Intervals()), model.time - RETENTION
    for first in range(0, model.time + 2, 7):
        for last in range(first, model.time + 9, 11):
            found = store.get_timeline(key, first, last)
            starts = [since for since, _ in found]
            known = max(first, starts[0]) if found else last + 1
            values = {time: found[bisect_right(starts, time) - 1][1] for time in range(known, last + 1)}

            assert starts == sorted(set(starts))
            assert values == {time: row and row.value for time in values for row in [intervals.as_of(time)]}
            assert known <= max(first, readable) or last < readable
        if first >= readable:
            assert store.get_end(key, first) == next((time for time in intervals.times if time > first), None)


@pytest.mark.parametrize("engine", ["rocksdb", "memory"])
@settings(deadline=None)
@given(steps=STEPS, interval=st.sampled_from(INTERVALS))
def test_a_versioned_store_equals_lists_of_intervals(engine: str, steps: list[tuple[Any, ...]], interval: int) -> None:
    model = Model()
    with TemporaryDirectory() as folder:
        context = Context(Path(folder) / "task")
        store = opened(engine, interval, context)
        for step in steps:
            match step:
                case "put", key, time, value:
                    assert model.put(key, value, time) == store.put(key, value, time)
                case "put_row", key, time, value:
                    until = model.put(key, value, time)
                    newest = None if until == PUT_RETURN_CODE_NOT_PUT else until == PUT_RETURN_CODE_VALID_TO_UNDEFINED
                    assert newest is store.put_row(key, value, time)
                case "delete", key, time:
                    expired = time < model.time - RETENTION
                    valid = None if expired else model.get(key, time)
                    model.put(key, None, time)
                    assert valid == store.delete(key, time)
                case "as_of", key, time:
                    found = model.get(key, time)
                    assert found == store.get(key, time)
                    row = store.get_row_as_of(key, time)
                    assert row == (None if found is None else (found.value, found.timestamp))
                case "history", key, first, last:
                    first, last = min(first, last), max(first, last)
                    with store.get(key, first, last, ResultOrder.ASCENDING) as versions:
                        assert model.history(key, first, last) == list(versions)
                case ("commit",):
                    store.commit(len(context.logged))
                case ("hand_over",):
                    store.commit(len(context.logged))
                    store.release()
                    context = context.of_another_task()
                    store.init(context)
                case ("reopen",):
                    store.commit(len(context.logged))
                    store.close()
                    if engine == "rocksdb":
                        store = opened(engine, interval, context)
                        assert store.committed_offset() == len(context.logged)
                    else:
                        store = opened(engine, interval, context)
                        store.restore(list(context.logged))
        check(store, model)
        store.close()

        restored = opened(engine, interval, Context(Path(folder) / "other"))
        half = len(context.logged) // 2
        restored.restore(context.logged[:half])
        restored.restore(context.logged[half:])
        restored.end_restore()
        check(restored, model)
        restored.close()
