"""Which points are measured for growth, and how they are told."""

from __future__ import annotations

from dataclasses import asdict
from io import StringIO
from itertools import islice

import pytest
from rich.console import Console

from benchmarks.figures import Point as Commit
from benchmarks.scale import AXES, Point, points, second_half, table
from benchmarks.topics.payloads import sized_events


@pytest.mark.parametrize("axis", AXES)
def test_along_an_axis_nothing_else_changes(axis: str) -> None:
    found = [asdict(point) for _, point in points(axis)]
    differing = {name for name in found[0] if len({point[name] for point in found}) > 1}

    assert differing == {AXES[axis][0]}


def test_large_values_are_fewer() -> None:
    assert Point(value_bytes=10_000).records(300_000) * 10_000 == 500_000_000
    assert Point(value_bytes=1000).records(300_000) == 300_000


def test_the_second_half_of_a_run_is_at_least_half_of_its_records() -> None:
    """A run that is done within a few commits has none of them just behind its middle."""
    fast = [Commit(0, 0, 0), Commit(99_900, 10, 10), Commit(100_000, 11, 10)]

    assert second_half(fast) == fast
    assert second_half([*fast[:1], Commit(40_000, 5, 5), *fast[1:]])[0] == Commit(40_000, 5, 5)


@pytest.mark.parametrize("size", [200, 1000, 10_000])
def test_values_have_the_size_that_is_asked_for_and_stay_json(size: int) -> None:
    for _, value, _ in islice(sized_events(1000, 10, size), 5):
        assert len(value) == size
        assert value.startswith(b"{") and value.endswith(b'"}')


def test_the_table_sets_programs_side_by_side() -> None:
    text = StringIO()
    Console(width=100, file=text).print(table({"keys": {"pykstreams": [(10_000, 5.0)], "java": [(10_000, 10.5)]}}))

    assert "│ keys │ 10,000 │       5.00 │ 10.50 │" in text.getvalue()
