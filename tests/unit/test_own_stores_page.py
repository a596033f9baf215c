"""The code of ``docs/guides/own-stores.md`` runs, and does what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pykstreams import Serdes
from pykstreams.testing import TopologyTestDriver

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "own-stores.md"


def test_store_of_the_page_lets_each_word_pass_once() -> None:
    names: dict[str, Any] = {"__name__": "own_stores"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    text = Serdes.string()
    with TopologyTestDriver(names["builder"].build()) as driver:
        words = driver.create_input_topic("words", text, text)
        for word in ("a", "b", "a"):
            words.pipe_value(word)

        assert driver.create_output_topic("first", text, text).read_values() == ["a", "b"]
