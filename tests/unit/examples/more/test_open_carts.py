"""The example ``open_carts.py`` in the test driver."""

from __future__ import annotations

from datetime import timedelta

from examples.more.open_carts import build
from pykstreams import Serdes
from pykstreams.testing import TopologyTestDriver

NOON = 12 * 3_600_000


def test_a_cart_counts_no_more_after_half_an_hour() -> None:
    with TopologyTestDriver(build(), initial_wall_clock_time=NOON) as driver:
        carts = driver.create_input_topic("carts", Serdes.string(), Serdes.string())
        counts = driver.create_output_topic("carts-by-product", Serdes.string(), Serdes.long())
        carts.pipe_input("ann", "tea", NOON)
        carts.pipe_input("bob", "tea", NOON + 60_000)
        before = counts.read_key_values()
        driver.advance_wall_clock_time(timedelta(minutes=30))

        assert (before, counts.read_key_values()) == ([("tea", 1), ("tea", 2)], [("tea", 1)])
