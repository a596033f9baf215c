"""How latencies are scheduled, taken and told."""

from __future__ import annotations

import pytest

from benchmarks.latency import Length, measured
from benchmarks.percentiles import percentile
from benchmarks.programs.schedule import SECOND_NS, Schedule, key_of, time_in, value_at


def test_a_percentile_is_a_value_that_occurred() -> None:
    assert percentile([1, 2, 100], 50) == 2
    assert percentile([1, 2, 100], 99) == 100


@pytest.mark.parametrize("count", [1, 7, 1000, 15_000, 300_000])
def test_no_percentile_is_above_the_largest_value_or_below_its_share(count: int) -> None:
    values = range(1, count + 1)

    for percent in (50.0, 99.0, 99.9, 100.0):
        found = percentile(values, percent)

        assert found <= count
        assert found >= count * percent / 100 - 1e-6
        assert found - 1 < count * percent / 100 + 1e-6


def test_no_values_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


@pytest.mark.parametrize("rate", [1, 3, 1000, 20_000])
def test_each_record_is_due_at_its_own_time_and_no_earlier(rate: int) -> None:
    schedule = Schedule(start_ns=1_700_000_000 * SECOND_NS, rate=rate, count=100)

    for number in range(100):
        assert schedule.due(schedule.time_of(number) - 1) <= number
        # the time is rounded down to a nanosecond
        assert schedule.due(schedule.time_of(number) + 1) == number + 1


def test_a_generator_that_comes_late_owes_all_that_was_due_meanwhile() -> None:
    """So a record keeps the time at which it should have been written: nothing is left out that had to wait."""
    schedule = Schedule(start_ns=0, rate=1000, count=100_000)

    assert schedule.due(5 * SECOND_NS) - schedule.due(2 * SECOND_NS) == 3000
    assert schedule.time_of(2001) == 2_001_000_000


def test_a_value_carries_its_time() -> None:
    assert time_in(value_at(1_700_000_000_123_456_789)) == 1_700_000_000_123_456_789
    assert len(value_at(1)) == 100


def test_keys_are_spread_over_all_there_are() -> None:
    assert len({key_of(number) for number in range(20_000)}) == 10_000


def test_the_warm_up_is_not_looked_at() -> None:
    assert measured([90_000, 80_000, 3000, 1000], Length(warm_up_s=1, seconds=1), rate=2) == [1.0, 3.0]
