"""The examples of ``docs/guides/tables-and-time.md`` print what the page says, and its pictures are up to date."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from docs.pictures.tables_and_time import FOLDER, PICTURES

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "tables-and-time.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
WARNING = re.compile(r"^```log\n(.*?)\n```$", re.DOTALL | re.MULTILINE)


def test_examples_of_the_page_print_what_it_says(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    text = PAGE.read_text(encoding="utf-8")
    warnings = iter(WARNING.finditer(text))
    warning = next(warnings)
    for block in BLOCK.finditer(text):
        source, printed = block.groups()
        last_before_warning = text.find("```python", block.end()) > warning.start() > block.start()
        caplog.clear()
        # blank lines, so that a traceback tells the line of the page
        exec(compile("\n" * text.count("\n", 0, block.start(1)) + source, str(PAGE), "exec"), names)

        assert capsys.readouterr().out == (printed or "")
        if last_before_warning:
            assert caplog.messages == [warning[1]]
    assert next(warnings, None) is None


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_of_the_page_are_up_to_date(name: str) -> None:
    """``python -m docs.pictures.tables_and_time`` writes them anew."""
    assert PICTURES[name]() == (FOLDER / name).read_text(encoding="utf-8")


def test_page_shows_every_picture() -> None:
    assert sorted(PICTURES) == sorted(re.findall(r"\(../pictures/([^)]+)\)", PAGE.read_text(encoding="utf-8")))
