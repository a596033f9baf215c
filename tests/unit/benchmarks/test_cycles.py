"""How the memory of workers is told, and that the workload leaves cycles behind."""

from __future__ import annotations

import gc
import weakref
from itertools import chain

from benchmarks.cycles import PARTS, parts
from benchmarks.programs.topology_of_cycles import LINES, Basket


def test_each_part_of_the_time_has_its_middle_and_its_most() -> None:
    samples = [float(number) for number in range(PARTS * 10)]

    told = parts(samples)

    assert [most for _, most in told] == [9.0, 19.0, 29.0, 39.0, 49.0, 59.0]
    assert [middle for middle, _ in told] == [4.5, 14.5, 24.5, 34.5, 44.5, 54.5]


def test_a_short_time_has_fewer_parts_than_a_long_one_and_loses_no_sample() -> None:
    for count in range(1, PARTS * 3):
        told = parts(list(range(count)))

        assert max(chain.from_iterable(told)) == count - 1


def test_a_basket_is_freed_by_the_collector_alone() -> None:
    gc.disable()
    try:
        basket = Basket("text")
        assert basket.first().startswith("text")
        assert len(basket.lines) == LINES
        there = weakref.ref(basket)
        del basket
        assert there() is not None
        gc.collect()
        assert there() is None
    finally:
        gc.enable()
