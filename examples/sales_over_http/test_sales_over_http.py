"""The example ``sales_over_http.py`` in the test driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.sales_over_http.sales_over_http import build
from pykstreams.testing import TopologyTestDriver

MINUTE = 60_000
HOUR = 60 * MINUTE


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    with TopologyTestDriver(build()) as driver:
        yield driver


def _sell(driver: TopologyTestDriver, product: str, *sales: tuple[int, int]) -> None:
    topic = driver.create_input_topic("sales", str, int)
    for cents, time in sales:
        topic.pipe_input(product, cents, time)


def test_revenue_of_a_product_adds_up(driver: TopologyTestDriver) -> None:
    _sell(driver, "tea", (320, 0), (640, 1), (80, HOUR))
    _sell(driver, "milk", (120, HOUR))
    revenue = driver.get_key_value_store("revenue")

    assert revenue is not None
    assert (revenue.get("tea"), revenue.get("milk"), revenue.get("coffee")) == (1040, 120, None)


def test_sale_counts_in_the_hour_of_its_time_for_ten_minutes_more(driver: TopologyTestDriver) -> None:
    _sell(driver, "tea", (320, 0), (80, HOUR + 9 * MINUTE), (1, 5), (80, HOUR + 10 * MINUTE), (1000, 6))
    by_hour = driver.get_window_store("revenue-by-hour")

    assert by_hour is not None
    assert [by_hour.fetch_one("tea", start) for start in (0, HOUR)] == [321, 160]
