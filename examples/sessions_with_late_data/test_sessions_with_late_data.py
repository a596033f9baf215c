"""The example ``sessions_with_late_data.py`` in the test driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.sessions_with_late_data.sessions_with_late_data import Click, Visit, build
from pykstreams.testing import TopologyTestDriver

NOON = 12 * 3_600_000
MINUTE = 60_000


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    with TopologyTestDriver(build()) as driver:
        yield driver


def _click(driver: TopologyTestDriver, visitor: str, page: str, minute: int) -> None:
    driver.create_input_topic("clicks", str, Click).pipe_input(visitor, Click(page), NOON + minute * MINUTE)


def _visits(driver: TopologyTestDriver) -> list[tuple[str, Visit]]:
    return [(key, visit) for key, visit in driver.create_output_topic("visits", str, Visit).read_key_values()]


def test_visit_is_said_once_when_no_click_can_change_it(driver: TopologyTestDriver) -> None:
    _click(driver, "ann", "/home", 0)
    _click(driver, "ann", "/tea", 20)
    _click(driver, "bob", "/home", 59)
    before = _visits(driver)
    _click(driver, "bob", "/tea", 60)

    assert before == []
    assert _visits(driver) == [("ann 12:00 to 12:20", Visit(["/home", "/tea"]))]


def test_click_between_two_visits_makes_them_one(driver: TopologyTestDriver) -> None:
    _click(driver, "ann", "/home", 0)
    _click(driver, "ann", "/pay", 35)
    _click(driver, "ann", "/cart", 25)
    _click(driver, "bob", "/home", 120)

    assert _visits(driver) == [("ann 12:00 to 12:35", Visit(["/home", "/pay", "/cart"]))]


def test_click_that_comes_after_its_visit_was_said_goes_to_the_late_ones(driver: TopologyTestDriver) -> None:
    _click(driver, "ann", "/home", 0)
    _click(driver, "bob", "/home", 41)
    _click(driver, "ann", "/tea", 0)
    late = driver.create_output_topic("late-clicks", str, Click)

    assert _visits(driver) == [("ann 12:00 to 12:00", Visit(["/home"]))]
    assert late.read_key_values() == [("ann", Click("/tea"))]
