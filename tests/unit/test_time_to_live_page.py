"""The code of ``docs/guides/time-to-live.md`` runs, and does what the page says."""

from __future__ import annotations

from datetime import timedelta

from pykstreams import Serdes
from pykstreams.testing import TopologyTestDriver
from tests.docs.pages import Page

PAGE = Page("docs/guides/time-to-live.md")
MINUTE = 60_000


def test_rows_of_the_page_go_and_tables_below_follow() -> None:
    names = PAGE.run()
    text, long = Serdes.string(), Serdes.long()
    with TopologyTestDriver(names["builder"].build(), initial_wall_clock_time=0) as driver:
        sessions = driver.create_input_topic("sessions", text, text)
        sessions.pipe_input("ann", "/home", 0)
        sessions.pipe_input("bob", "/home", 29 * MINUTE)
        sessions.pipe_input("cid", "/help", 30 * MINUTE)
        users = driver.create_output_topic("users-by-page", text, long)

        assert dict(users.read_key_values()) == {"/home": 1, "/help": 1}

        driver.create_input_topic("prices", text, text).pipe_input("tea", "3", 1000)
        driver.advance_wall_clock_time(timedelta(seconds=11))
        prices = driver.create_output_topic("prices-that-hold", text, text)

        assert prices.read_key_values() == [("tea", "3"), ("tea", None)]
