"""The code of ``docs/guides/life-at-run-time.md`` runs, and does what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pykstreams import SuspendReason, TopicPartition

FILE = Path(__file__).parents[2] / "docs" / "guides" / "life-at-run-time.md"
PAGE = FILE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_script_of_the_page_prints_what_it_says(capfd: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    script, printed = found.groups()
    exec(compile(script, str(FILE), "exec"), {"__name__": "page"})

    assert capfd.readouterr().out == printed


def test_listener_of_the_page_says_how_much_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[1:]:
        exec(compile(block, str(FILE), "exec"), names)
    place = TopicPartition("shop-counts-changelog", 2)
    names["Promotions"]().on_update_suspended(place, "counts", 7, 9, SuspendReason.PROMOTED)
    names["Promotions"]().on_update_suspended(place, "counts", 7, 9, SuspendReason.MIGRATED)

    assert capsys.readouterr().out == "counts 2 becomes active, 2 to go\n"
