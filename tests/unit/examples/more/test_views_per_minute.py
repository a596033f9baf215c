"""The example ``views_per_minute.py`` in the test driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.more.views_per_minute import build
from pykstreams import Serdes
from pykstreams.testing import TopologyTestDriver

NOON = 12 * 3_600_000
SECOND = 1000


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    with TopologyTestDriver(build()) as driver:
        yield driver


def _view(driver: TopologyTestDriver, *seconds: int) -> None:
    views = driver.create_input_topic("page-views", Serdes.string(), Serdes.string())
    for second in seconds:
        views.pipe_input("/home", "ann", NOON + second * SECOND)


def test_count_of_a_minute_is_said_once_when_its_grace_is_over(driver: TopologyTestDriver) -> None:
    counts = driver.create_output_topic("views-per-minute", Serdes.string(), Serdes.long())
    _view(driver, 0, 10, 20, 69)
    before = counts.is_empty
    _view(driver, 70)

    assert before
    assert counts.read_key_values() == [("12:00 /home", 3)]


def test_view_within_the_grace_counts_and_a_later_one_goes_to_the_late_ones(driver: TopologyTestDriver) -> None:
    counts = driver.create_output_topic("views-per-minute", Serdes.string(), Serdes.long())
    late = driver.create_output_topic("late-views", Serdes.string(), Serdes.string())
    _view(driver, 0, 65, 30, 70, 59)

    assert counts.read_key_values() == [("12:00 /home", 2)]
    assert late.read_key_values() == [("/home", "ann")]
