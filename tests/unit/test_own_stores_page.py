"""The code of ``docs/guides/own-stores.md`` runs, and does what the page says."""

from __future__ import annotations

from pykstreams import Serdes
from pykstreams.testing import TopologyTestDriver
from tests.docs.pages import Page

PAGE = Page("docs/guides/own-stores.md")


def test_store_of_the_page_lets_each_word_pass_once() -> None:
    names = PAGE.run()
    text = Serdes.string()
    with TopologyTestDriver(names["builder"].build()) as driver:
        words = driver.create_input_topic("words", text, text)
        for word in ("a", "b", "a"):
            words.pipe_value(word)

        assert driver.create_output_topic("first", text, text).read_values() == ["a", "b"]
