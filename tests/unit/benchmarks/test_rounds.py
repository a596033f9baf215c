"""The order of programs in the rounds of a benchmark."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from benchmarks.rounds import in_order


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7])
def test_each_program_comes_behind_each_other_one_equally_often(count: int) -> None:
    rounds = count if count % 2 == 0 else 2 * count

    behind = Counter(pair for number in range(rounds) for pair in pairwise(in_order(range(count), number)))

    assert len(behind) == count * (count - 1)
    assert set(behind.values()) == {rounds // count}


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5])
def test_each_program_runs_once_in_each_round(count: int) -> None:
    for number in range(2 * count + 1):
        assert sorted(in_order(range(count), number)) == [*range(count)]
