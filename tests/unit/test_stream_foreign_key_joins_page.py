"""The code of ``docs/guides/stream-foreign-key-joins.md`` runs, and does what the page says."""

from __future__ import annotations

from pykstreams import Serdes
from pykstreams.testing import TopologyTestDriver
from tests.docs.pages import Page

PAGE = Page("docs/guides/stream-foreign-key-joins.md")


def test_orders_of_the_page_are_priced() -> None:
    names = PAGE.run()
    text, number = Serdes.string(), Serdes.long()
    with TopologyTestDriver(names["builder"].build()) as driver:
        driver.create_input_topic("prices", text, number).pipe_input("pen", 120)
        driver.create_input_topic("orders", text, text).pipe_input("1", "pen")

        assert driver.create_output_topic("priced-orders", text, number).read_key_values() == [("1", 120)]
