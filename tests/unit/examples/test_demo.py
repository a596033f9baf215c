"""The demo draws bars that keep their proportions, however much was counted."""

from __future__ import annotations

import pytest

from examples.word_count.demo import LONGEST_BAR, table


def bars(counts: dict[str, int]) -> list[int]:
    return [len(bar) for bar in table(counts).columns[2].cells]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("counts", "lengths"),
    [
        ({"the": 4, "dare": 2}, [4, 2]),
        ({"the": 40, "dare": 20}, [40, 20]),
        ({"the": 4_000, "dare": 1_000, "eye": 1}, [LONGEST_BAR, 10, 0]),
    ],
)
def test_bars_keep_their_proportions_however_much_was_counted(counts: dict[str, int], lengths: list[int]) -> None:
    assert bars(counts) == lengths


def test_before_the_first_count_the_demo_says_what_it_waits_for() -> None:
    assert list(table({}).columns[2].cells) == ["waiting for the worker"]
