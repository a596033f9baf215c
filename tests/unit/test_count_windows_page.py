"""The code of ``docs/guides/count-windows.md`` runs, and does what the page says."""

from __future__ import annotations

from pykstreams import PartialWindow, Serdes
from pykstreams.testing import TopologyTestDriver
from tests.docs.pages import Page

PAGE = Page("docs/guides/count-windows.md")


def test_windows_of_the_page_are_full_with_a_hundred_records() -> None:
    names = PAGE.run()
    text, double = Serdes.string(), Serdes.double()
    with TopologyTestDriver(names["builder"].build()) as driver:
        readings = driver.create_input_topic("readings", text, double)
        for number in range(102):
            readings.pipe_input("meter", float(number))
        means = driver.create_output_topic("means-of-hundred", text, double)

        assert means.read_key_values() == [("meter", 49.5)]
        sums = driver.get_key_value_store("sums")
        assert sums is not None
        assert sums.get("meter") == PartialWindow(2, 201.0)
