"""The example ``word_count.py`` in the test driver."""

from __future__ import annotations

import pytest

from examples.word_count.word_count import build, words
from pykstreams import Serdes
from pykstreams.testing import TopologyTestDriver


def test_words_of_all_lines_are_counted() -> None:
    with TopologyTestDriver(build()) as driver:
        lines = driver.create_input_topic("lines", Serdes.string(), Serdes.string())
        counts = driver.create_output_topic("word-counts", Serdes.string(), Serdes.long())
        lines.pipe_value("To be, or not to be")
        lines.pipe_value("be!")

        assert counts.read_key_values_to_dict() == {"to": 2, "be": 3, "or": 1, "not": 1}


def test_counts_can_be_read_from_the_store() -> None:
    with TopologyTestDriver(build()) as driver:
        lines = driver.create_input_topic("lines", Serdes.string(), Serdes.string())
        lines.pipe_value("one two two", timestamp=5)
        counts = driver.get_timestamped_key_value_store("counts")

        assert counts is not None
        assert [counts.get(word) for word in ("one", "two", "three")] == [(1, 5), (2, 5), None]


@pytest.mark.parametrize(("line", "expected"), [("", []), (" ,. ", []), ("Ärger, schön", ["ärger", "schön"])])
def test_words_are_what_lies_between_other_characters(line: str, expected: list[str]) -> None:
    assert words(line) == expected
