"""The scripts of ``docs/guides/changing-an-application.md`` are compared as the page says, and its table is true."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from pykstreams.cli.app import cli
from pykstreams.topology.changes.change import Verdict
from tests.docs.pages import Page

PAGE = Page("docs/guides/changing-an-application.md")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with both scripts of the page, each under the name that the page gives it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name, block in zip(("old", "new"), PAGE.code, strict=True):
        (tmp_path / name).mkdir()
        (tmp_path / name / "shop.py").write_text(block.text, encoding="utf-8")
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def described(script: str) -> str:
    return CliRunner().invoke(cli, ["describe", script, "--format", "json"]).output


@pytest.mark.slow
def test_comparison_of_the_page_prints_what_it_says(folder: Path) -> None:
    [block] = PAGE.of("text")
    compared = CliRunner().invoke(cli, ["diff", "old/shop.py", "new/shop.py"])

    assert (compared.output, compared.exit_code) == (block.text, 2)


def test_script_compared_with_its_own_description_is_safe(folder: Path) -> None:
    (folder / "shop.json").write_text(described("new/shop.py"), encoding="utf-8")

    compared = CliRunner().invoke(cli, ["diff", "shop.json", "new/shop.py"])

    assert (compared.output, compared.exit_code) == ("verdict: safe\n", 0)


@pytest.mark.parametrize("verdict", Verdict)
def test_table_of_the_page_has_every_verdict(verdict: Verdict) -> None:
    assert f"| {verdict}" in PAGE.text
