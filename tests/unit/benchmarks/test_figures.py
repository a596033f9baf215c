"""How lines of progress become figures."""

from __future__ import annotations

import pytest

from benchmarks.figures import Figures, Point, measure, ratio
from benchmarks.report import comparison
from benchmarks.workloads import WORKLOADS

SECOND = 1_000_000_000


def point(records: int, seconds: float, cpu_seconds: float) -> Point:
    return Point(records, int(seconds * SECOND), int(cpu_seconds * SECOND))


def test_a_warm_up_in_the_first_half_does_not_count() -> None:
    slow_start = [point(0, 0, 0), point(400_000, 10, 8), point(1_000_000, 11, 9), point(2_000_000, 13, 11)]

    rate, cpu = measure(slow_start, whole=False)

    assert rate == 500_000
    assert cpu == pytest.approx(2)


def test_the_wait_for_the_last_commit_does_not_count_for_the_rate() -> None:
    points = [point(0, 0, 0), point(500_000, 1, 1), point(900_000, 2, 2), point(1_000_000, 3, 2.25)]

    rate, cpu = measure(points, whole=False)

    assert rate == 400_000
    assert cpu == pytest.approx(2.5)


def test_restoring_is_measured_from_the_first_to_the_last_record() -> None:
    points = [point(0, 5, 1), point(500_000, 7, 2), point(2_000_000, 9, 5)]

    rate, cpu = measure(points, whole=True)

    assert rate == 500_000
    assert cpu == pytest.approx(2)


def test_a_run_of_one_commit_includes_its_start() -> None:
    points = [point(0, 0, 1), point(200_000, 2, 2)]

    rate, cpu = measure(points, whole=False)

    assert rate == 100_000
    assert cpu == pytest.approx(5)


def test_the_ratio_is_the_median_of_the_rounds_and_not_that_of_the_medians() -> None:
    def runs(*cpu: float) -> list[Figures]:
        return [Figures(1, each, None, 1) for each in cpu]

    assert pytest.approx(1.1) == ratio(runs(1.1, 9, 2), runs(1, 3, 2))


def test_two_ways_of_the_same_work_are_compared_by_cpu_and_reads() -> None:
    one = {"pykstreams": [Figures(1, 6, None, 1, 1.0)], "bare": [Figures(1, 6, None, 1)]}
    other = {"pykstreams": [Figures(1, 8, None, 1, 3.0)], "bare": [Figures(1, 6, None, 1)]}

    told = comparison(WORKLOADS["cogroup-joins"], one, other)

    assert told == "cogroup / cogroup-joins: pykstreams 0.75 of the CPU, 1.00 reads for 3.00"


def test_records_of_several_topics_are_spread_evenly() -> None:
    inputs = WORKLOADS["cogroup"].inputs(9)

    assert {topic: len(list(records)) for topic, records in inputs.items()} == {
        f"bench-input-json-events-of-3-{number}": 3 for number in (1, 2, 3)
    }
