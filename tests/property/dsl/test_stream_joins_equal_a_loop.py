"""Stream-stream joins beside a loop over all records of both sides."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams import BuiltInDslStoreSuppliers, JoinWindows, StreamJoined
from tests.unit.dsl.joins.test_stream_stream_join import both, results, streams

TIMES = st.integers(20, 80)
RECORDS = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("kl"), TIMES).map(lambda found: (*found[:2], "", found[2])),
    max_size=14,
)
BOUNDS = st.tuples(st.integers(-3, 12), st.integers(-3, 12)).filter(lambda bounds: sum(bounds) >= 0)


@pytest.mark.parametrize("suppliers", [BuiltInDslStoreSuppliers.IN_MEMORY, BuiltInDslStoreSuppliers.ROCKS_DB])
@pytest.mark.parametrize("join", ["join", "left_join", "outer_join"])
@settings(max_examples=15, deadline=None)
@given(records=RECORDS, bounds=BOUNDS)
def test_a_join_gives_what_a_loop_over_both_sides_gives(
    suppliers: Any, join: str, records: list[Any], bounds: tuple[int, int]
) -> None:
    """With enough grace each pair comes once, and what has no partner comes once, without one.

    Not so a record of an outer side that is behind the others: it does not wait, and may have both results.
    """
    before, after = bounds
    if join != "join":
        records = sorted(records, key=itemgetter(3))
    named = [(topic, key, f"{topic}{number}", time) for number, (topic, key, _, time) in enumerate(records)]
    lefts, rights = ([record for record in named if record[0] == topic] for topic in "ab")
    pairs = [(a, b) for a in lefts for b in rights if a[1] == b[1] and -before <= b[3] - a[3] <= after]
    expected = Counter((a[1], both(a[2], b[2]), max(a[3], b[3])) for a, b in pairs)
    if join != "join":
        paired = {a for a, _ in pairs}
        expected.update((a[1], both(a[2], None), a[3]) for a in lefts if a not in paired)
    if join == "outer_join":
        paired = {b for _, b in pairs}
        expected.update((b[1], both(None, b[2]), b[3]) for b in rights if b not in paired)

    builder, left, right = streams()
    options = StreamJoined[Any, Any, Any](dsl_store_suppliers=suppliers)
    windows = JoinWindows(before=before, after=after, grace=100)
    getattr(left, join)(right, both, windows=windows, stream_joined=options).to("out")
    found = results(builder, [*named, ("b", "end", "end", 1000)])

    assert Counter(result for result in found if result[0] != "end") == expected
