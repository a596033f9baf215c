"""Tables whose rows have a time to live beside a dictionary with times."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams import BuiltInDslStoreSuppliers
from tests.unit.dsl.stores.test_time_to_live import Make, driven, joined, of_a_stream, of_a_topic

TIME_TO_LIVE = 20
RECORDS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([True, True, True, False]), st.integers(0, 80)), max_size=25
)
Row = tuple[str, int]


class Model:
    """The rows and the changes that there are to be, of a table of records or of an aggregate."""

    def __init__(self, *, aggregates: bool) -> None:
        self.rows: dict[str, Row] = {}
        self.changes: list[tuple[str, str | None, int]] = []
        self._aggregates = aggregates
        self._now = -1

    def take(self, key: str, value: str | None, time: int) -> None:
        self._now = max(self._now, time)
        old = self.rows.get(key)
        if old is not None and self._is_due(old[1]):
            self._expire(key)
            old = None
        if value is None:
            if not self._aggregates:
                self.rows.pop(key, None)
                self.changes.append((key, None, time))
        elif not self._is_due(time) or (self._aggregates and old is not None):
            if self._aggregates and old is not None:
                value, time = f"{old[0]} {value}", max(time, old[1])
            self.rows[key] = (value, time)
            self.changes.append((key, value, time))
        for due in [key for key, row in self.rows.items() if self._is_due(row[1])]:
            self._expire(due)

    def _is_due(self, time: int) -> bool:
        return time + TIME_TO_LIVE <= self._now

    def _expire(self, key: str) -> None:
        _, time = self.rows.pop(key)
        self.changes.append((key, None, time + TIME_TO_LIVE))


@pytest.mark.parametrize(
    ("make", "suppliers"),
    [
        (of_a_topic, BuiltInDslStoreSuppliers.ROCKS_DB),
        (of_a_stream, BuiltInDslStoreSuppliers.IN_MEMORY),
        (joined, BuiltInDslStoreSuppliers.IN_MEMORY),
    ],
)
@settings(max_examples=12, deadline=None)
@given(records=RECORDS)
def test_rows_and_changes_of_each_key_are_those_of_a_dictionary(
    make: Make, suppliers: Any, records: list[tuple[str, bool, int]]
) -> None:
    model = Model(aggregates=make is joined)
    piped = [(key, str(number) if there else None, time) for number, (key, there, time) in enumerate(records)]
    with driven(make, {"dsl.store.suppliers.class": suppliers}, ttl=TIME_TO_LIVE) as app:
        for record in piped:
            model.take(*record)
            app.pipe(*record)

            assert app.kept == {key: value for key, (value, _) in model.rows.items()}

        found = app.read()

        for key in "abc":
            assert [row for row in found if row[0] == key] == [row for row in model.changes if row[0] == key]
