"""Rows that are taken from the front, few of them at hand, come as those of a sorted list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pykstreams.state.buffers.ordered_rows import Kept, OrderedRows
from pykstreams.state.engines.memory import MemoryEngine

KEYS = st.binary(min_size=1, max_size=2)
STEPS = st.lists(st.one_of(KEYS.map(lambda key: ("add", key)), KEYS.map(lambda key: ("take", key))), max_size=60)


def kept(data: bytes) -> Kept:
    return data, (None, 0, ())


@given(before=st.sets(KEYS), steps=STEPS, at_hand=st.integers(1, 5), removes=st.booleans())
def test_rows_come_in_the_order_of_their_keys(
    before: set[bytes], steps: list[tuple[str, bytes]], at_hand: int, removes: bool
) -> None:
    """Rows that were taken may stay in the engine, as long as none is added below them."""
    engine, expected, taken_to = MemoryEngine(), set(before), b""
    for key in before:
        engine.put(key, key)
    rows = OrderedRows(engine, lambda key, packed: kept(packed), at_hand)
    rows.start()
    for action, key in steps:
        if action == "add":
            if key not in expected and key > taken_to:
                expected.add(key)
                rows.add(key, key, kept(key))
            continue
        due = sorted(other for other in expected if other < key)
        found = []
        while (row := rows.first(key)) is not None:
            rows.pop()
            found.append(row)
            if removes:
                engine.put(row[0], None)
        taken_to = max(taken_to, key)
        expected.difference_update(due)

        assert found == [(other, kept(other)) for other in due]
