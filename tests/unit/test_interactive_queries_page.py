"""The script of ``docs/guides/interactive-queries.md`` prints what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "guides" / "interactive-queries.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_script_of_the_page_prints_what_it_says(capfd: pytest.CaptureFixture[str]) -> None:
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    script, printed = found.groups()
    exec(compile(script, "docs/guides/interactive-queries.md", "exec"), {"__name__": "page"})

    assert capfd.readouterr().out == printed
