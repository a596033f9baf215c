"""The example ``titled_page_views.py`` in the test driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.more.titled_page_views import build
from pykstreams import Serdes
from pykstreams.testing import TopologyTestDriver

NOON = 12 * 3_600_000
SECOND = 1000


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    with TopologyTestDriver(build(), partitions=4) as driver:
        yield driver


def _view(driver: TopologyTestDriver, *seconds: int) -> None:
    views = driver.create_input_topic("page-views", Serdes.string(), Serdes.string())
    for second in seconds:
        views.pipe_input("/home", "ann", NOON + second * SECOND)


def _title(driver: TopologyTestDriver, title: str | None) -> None:
    driver.create_input_topic("pages", Serdes.string(), Serdes.string()).pipe_input("/home", title, NOON)


def _result(driver: TopologyTestDriver) -> dict[str, str]:
    return driver.create_output_topic("titled-page-views", Serdes.string(), Serdes.string()).read_key_values_to_dict()


def test_counts_of_all_minutes_have_the_title(driver: TopologyTestDriver) -> None:
    _title(driver, "Home")
    _view(driver, 0, 10, 61)

    assert _result(driver) == {"/home at 12:00": "Home: 2", "/home at 12:01": "Home: 1"}


def test_title_that_changes_changes_all_minutes(driver: TopologyTestDriver) -> None:
    _view(driver, 0, 10, 61)
    untitled = _result(driver)
    _title(driver, "Start")

    assert untitled == {"/home at 12:00": "untitled: 2", "/home at 12:01": "untitled: 1"}
    assert _result(driver) == {"/home at 12:00": "Start: 2", "/home at 12:01": "Start: 1"}
