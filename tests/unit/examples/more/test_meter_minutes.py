"""The example ``meter_minutes.py`` in the test driver."""

from __future__ import annotations

from datetime import timedelta

from examples.more.meter_minutes import build
from pykstreams import Serdes
from pykstreams.testing import TopologyTestDriver

NOON = 12 * 3_600_000


def test_last_minute_is_said_although_no_reading_follows() -> None:
    with TopologyTestDriver(build(), initial_wall_clock_time=NOON) as driver:
        readings = driver.create_input_topic("readings", Serdes.string(), Serdes.string())
        counts = driver.create_output_topic("readings-per-minute", Serdes.string(), Serdes.long())
        readings.pipe_input("meter-1", "7", NOON + 1000)
        readings.pipe_input("meter-1", "8", NOON + 2000)
        driver.advance_wall_clock_time(timedelta(seconds=60))
        before = counts.is_empty
        driver.advance_wall_clock_time(timedelta(seconds=3))

        assert before
        assert counts.read_key_values() == [("12:00 meter-1", 2)]
