"""The code of ``docs/guides/idle-input.md`` runs, and does what the page says."""

from __future__ import annotations

from datetime import timedelta

from pykstreams import Serdes
from pykstreams.testing import TopologyTestDriver
from tests.docs.pages import Page

PAGE = Page("docs/guides/idle-input.md")


def test_windows_and_joins_of_the_page_close_without_records() -> None:
    names = PAGE.run()
    text, long = Serdes.string(), Serdes.long()
    with TopologyTestDriver(names["builder"].build(), initial_wall_clock_time=0) as driver:
        driver.create_input_topic("clicks", text, text).pipe_input("ann", "/home", 40_000)
        counts = driver.create_output_topic("clicks-per-minute", text, long)
        driver.advance_wall_clock_time(timedelta(seconds=19))
        before = counts.is_empty
        driver.advance_wall_clock_time(timedelta(seconds=1))

        assert (before, counts.read_key_values()) == (True, [("ann", 1)])

        driver.advance_wall_clock_time(timedelta(minutes=10))
        pairs = driver.create_output_topic("clicks-and-payments", text, text)

        assert pairs.read_key_values() == [("ann", "/home: None")]
