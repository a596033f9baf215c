"""The code of every page runs from its top to its end, and prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykstreams.serdes.by_type import TYPES, TypeSerdes
from tests.docs.elsewhere import RUN_BY
from tests.docs.pages import GRANTED, Page, pages

PAGES = [page for page in pages() if page.code and page.path not in RUN_BY]
STARTS_AN_APPLICATION = "KafkaStreams("


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if STARTS_AN_APPLICATION in page.text else [], id=str(page))
        for page in PAGES
    ],
)
def test_code_of_a_page_runs(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(TYPES, "__dict__", TypeSerdes().__dict__)  # what a page registers is forgotten afterwards
    page.run().clear()


def test_whatever_is_granted_belongs_to_a_page() -> None:
    assert {page.granted for page in pages()} >= set(GRANTED.glob("*.py"))
