"""The pictures of ``docs/guides/tables-and-time.md`` are up to date."""

from __future__ import annotations

import re

import pytest

from docs.pictures.tables_and_time import FOLDER, PICTURES
from tests.docs.pages import Page

PAGE = Page("docs/guides/tables-and-time.md")


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_of_the_page_are_up_to_date(name: str) -> None:
    """``python -m docs.pictures.tables_and_time`` writes them anew."""
    assert PICTURES[name]() == (FOLDER / name).read_text(encoding="utf-8")


def test_page_shows_every_picture() -> None:
    assert sorted(PICTURES) == sorted(re.findall(r"\(../pictures/([^)]+)\)", PAGE.text))
