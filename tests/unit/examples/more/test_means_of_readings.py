"""The example ``means_of_readings.py`` in the test driver."""

from __future__ import annotations

from examples.more.means_of_readings import build
from pykstreams import Serdes
from pykstreams.testing import TopologyTestDriver


def test_the_mean_of_each_ten_readings_is_said() -> None:
    with TopologyTestDriver(build()) as driver:
        readings = driver.create_input_topic("readings", Serdes.string(), Serdes.double())
        for number in range(25):
            readings.pipe_input("meter-1", float(number))
        means = driver.create_output_topic("means", Serdes.string(), Serdes.double())

        assert means.read_key_values() == [("meter-1", 4.5), ("meter-1", 14.5)]
