"""The code of ``docs/guides/stream-foreign-key-joins.md`` runs, and does what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pykstreams import Serdes
from pykstreams.testing import TopologyTestDriver

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "stream-foreign-key-joins.md"


def test_orders_of_the_page_are_priced() -> None:
    names: dict[str, Any] = {"__name__": "stream_foreign_key_joins"}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), names)
    text, number = Serdes.string(), Serdes.long()
    with TopologyTestDriver(names["builder"].build()) as driver:
        driver.create_input_topic("prices", text, number).pipe_input("pen", 120)
        driver.create_input_topic("orders", text, text).pipe_input("1", "pen")

        assert driver.create_output_topic("priced-orders", text, number).read_key_values() == [("1", 120)]
