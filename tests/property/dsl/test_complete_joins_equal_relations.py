"""A join with complete history is, as of each time that can still be read, the relational join of both histories.

So it is whatever comes late, is deleted or has the time of another; groups of it have the totals of its newest rows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams import KTable, Materialized, Produced, Serdes, Stores, StreamsBuilder, StreamsConfig
from pykstreams.testing import TestInputTopic, TestRecord, TopologyTestDriver
from tests.property.state.test_versioned_stores_equal_lists_of_intervals import Intervals

CONFIG = StreamsConfig(
    {
        "application.id": "app",
        "default.key.serde": Serdes.string(),
        "default.value.serde": Serdes.string(),
        "statestore.cache.max.bytes": 0,
    }
)
LAST = 60
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["left", "right"]),
        st.sampled_from(["a", "a", "a", "b"]),
        st.one_of(st.integers(0, 12), st.integers(0, LAST)),
        st.sampled_from(["x", "y", "hidden", None]),
    ),
    max_size=30,
)
"""(table, key, time, value); rows whose value is ``hidden`` are filtered out of the left table."""
EVER = 10**6
RETENTIONS = st.sampled_from([(EVER, EVER, EVER), (20, 20, 20), (20, 40, 8), (40, 8, 20), (8, 20, 40)])
"""Of the left, the right and the joined table."""


@dataclass
class Table:
    """One side: a history for each key, which takes nothing that is too late."""

    retention: int
    hides: bool
    time: int = -1
    rows: dict[str, Intervals] = field(default_factory=dict)
    forgetful: set[str] = field(default_factory=set)

    def put(self, key: str, value: str | None, time: int) -> None:
        if time < self.oldest:
            return
        self.time = max(self.time, time)
        row = self.rows.setdefault(key, Intervals())
        known = len(row.times) + (time not in row.times)
        row.put(value, time)
        if len(row.times) < known:
            self.forgetful.add(key)

    @property
    def oldest(self) -> int:
        return self.time - self.retention

    def at(self, key: str, time: int) -> tuple[str | None, int]:
        """The value and since when it is there, or is not."""
        row = self.rows.get(key, Intervals())
        index = bisect_right(row.times, time) - 1
        if index < 0:
            return None, -1
        value = row.values[index]
        return None if self.hides and value == "hidden" else value, row.times[index]


def both(left: str | None, right: str | None) -> str:
    return f"{left}+{right}"


def relation(kind: str, left: str | None, right: str | None) -> str | None:
    if (left is None and (right is None or kind != "outer_join")) or (right is None and kind == "join"):
        return None
    return both(left, right)


def versioned(name: str, retention: int) -> Materialized[Any, Any]:
    return Materialized(Stores.in_memory_versioned_key_value_store(name, retention, 7))


def join(kind: str, retentions: tuple[int, int, int]) -> StreamsBuilder:
    builder = StreamsBuilder()
    left: KTable[str, str] = builder.table("left", materialized=versioned("l", retentions[0]))
    right: KTable[str, str] = builder.table("right", materialized=versioned("r", retentions[1]))
    left, right = left.filter_not(lambda key, value: value == "hidden"), right.map_values(str.upper)
    joined = getattr(left, kind)(right, both, complete_history=True, materialized=versioned("j", retentions[2]))
    joined.to_stream().to("out")
    joined.group_by(lambda key, value: (value, value)).count().to_stream().to(
        "counts", Produced(key_serde=Serdes.string(), value_serde=Serdes.long())
    )
    return builder


def time_of(record: TestRecord[Any, Any]) -> int:
    assert record.timestamp is not None
    return record.timestamp


@pytest.mark.parametrize("kind", ["join", "left_join", "outer_join"])
@settings(max_examples=60, deadline=None)
@given(changes=CHANGES, retentions=RETENTIONS)
def test_a_complete_join_is_the_relational_join_of_both_histories(
    kind: str, changes: list[tuple[str, str, int, str | None]], retentions: tuple[int, int, int]
) -> None:
    tables = {"left": Table(retentions[0], hides=True), "right": Table(retentions[1], hides=False)}
    left, right = tables.values()
    newest = -1
    counts: dict[str, int] = {}
    with TopologyTestDriver(join(kind, retentions).build(), CONFIG) as driver:
        inputs: dict[str, TestInputTopic[Any, Any]] = {name: driver.create_input_topic(name) for name in tables}
        out = driver.create_output_topic("out", Serdes.string(), Serdes.string())
        totals = driver.create_output_topic("counts", Serdes.string(), Serdes.long())
        store = driver.get_versioned_key_value_store("j")
        assert store is not None
        for name, key, time, value in changes:
            inputs[name].pipe_input(key, value, timestamp=time)
            tables[name].put(key, value.upper() if value is not None and name == "right" else value, time)
            newest = max(newest, *(time_of(record) for record in out.read_records()), -1)
            counts.update(totals.read_key_values_to_dict())
            readable = max(0, left.oldest, right.oldest, newest - retentions[2])
            wanted = {
                at: (relation(kind, left_value, right_value), max(left_since, right_since))
                for at in range(readable, LAST + 2)
                for (left_value, left_since), (right_value, right_since) in [(left.at(key, at), right.at(key, at))]
            }
            found = {at: store.get(key, at) for at in wanted}

            assert {at: record and record.value for at, record in found.items()} == {
                at: result for at, (result, _) in wanted.items()
            }

            if retentions[0] == EVER and key not in left.forgetful | right.forgetful:
                assert {at: record.timestamp for at, record in found.items() if record is not None} == {
                    at: since for at, (result, since) in wanted.items() if result is not None
                }

        rows = Counter(record.value for key in "ab" if (record := store.get(key)) is not None)

        assert {value: number for value, number in counts.items() if number} == rows
