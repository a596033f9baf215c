"""The documentation as a whole: every page has its place, every link holds, every public thing has its entry.

``make docs`` builds the site itself.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.site.texts import file_of, page_of, uri_of, with_links, with_lists_apart
from pykstreams.core.config import StreamsConfig
from scripts import api_pages, options_page
from tests.docs.pages import ROOT, Page, headings, pages
from tests.golden.test_public_api import PUBLIC

LINK = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
SITE = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
CALLED_BY_THE_LIBRARY = {"build", "measure"}
"""Members that a protocol of the library describes, not each class that has them."""
NOT_IN_THE_NAVIGATION = {"docs/decisions/0000-template.md"}


def test_every_page_is_in_the_navigation_once() -> None:
    named = [f"docs/{path}" for path in re.findall(r"(?:- |: )([\w/-]+\.md)$", SITE.split("\nnav:\n")[1], re.MULTILINE)]

    assert sorted(named) == sorted({page.path for page in pages()} - NOT_IN_THE_NAVIGATION - {"README.md"})


@pytest.mark.parametrize("page", [page for page in pages() if page.path not in NOT_IN_THE_NAVIGATION], ids=str)
def test_a_page_says_something(page: Page) -> None:
    """Titles, names and links are not counted: a page that only promises is empty."""
    without_links = re.sub(r"!?\[[^\]]*\]\([^)]*\)", "", page.text)
    sentences = [line for line in without_links.splitlines() if len(line.split()) >= 4 and not line.startswith("#")]

    assert sum(len(line.split()) for line in sentences) >= 60


@pytest.mark.parametrize("page", pages(), ids=str)
def test_links_of_a_page_lead_somewhere(page: Page) -> None:
    without_code = re.sub(r"^ *```.*?^ *```$|`[^`\n]*`", "", page.text, flags=re.DOTALL | re.MULTILINE)
    for found in LINK.finditer(without_code):
        link = found[1] or found[2]
        if re.match(r"\w+:", link):
            assert not found[2], f"{page} shows {link}, which lies on another host"
            continue
        path, _, anchor = link.partition("#")
        target = (page.file.parent / path).resolve() if path else page.file

        assert target.exists(), f"{page} links to {link}"
        if anchor:
            assert anchor in headings(target.read_text(encoding="utf-8")), f"{page} links to {link}"


@pytest.mark.parametrize("api_page", api_pages.PAGES, ids=lambda page: page.file)
def test_pages_of_the_python_api_are_current(api_page: api_pages.ApiPage) -> None:
    """When this fails: python -m scripts.api_pages"""
    found = (api_pages.FOLDER / f"{api_page.file}.md").read_text(encoding="utf-8")

    assert found == api_pages.text_of(api_page)


@pytest.mark.parametrize("module", [*PUBLIC, "pykstreams.http", "pykstreams.spark"])
def test_every_public_name_is_on_one_page(module: str) -> None:
    found = [name for page in api_pages.PAGES if page.module == module for name in api_pages.names_of(page)]

    assert sorted(found) == sorted(importlib.import_module(module).__all__)


def test_every_name_of_the_python_api_has_a_meaning() -> None:
    rows = [row for page in api_pages.PAGES for row in api_pages.text_of(page).splitlines() if row.startswith("| `")]

    assert len(rows) > 350
    assert [row for row in rows if not re.search(r"\| \S.+ \|$", row)] == []


def test_every_member_of_the_python_api_has_a_meaning() -> None:
    """The site leaves out those without a docstring; that of a base class counts."""
    classes = [
        found
        for page in api_pages.PAGES
        for name in api_pages.names_of(page)
        if inspect.isclass(found := getattr(importlib.import_module(page.module), name))
    ]
    members = [
        (found, name)
        for found in classes
        for name, member in vars(found).items()
        if not name.startswith("_")
        and name not in CALLED_BY_THE_LIBRARY
        and (inspect.isroutine(member) or isinstance(member, property))
    ]

    assert len(members) > 500
    assert [f"{found.__name__}.{name}" for found, name in members if not inspect.getdoc(getattr(found, name))] == []


def test_the_page_of_all_options_is_current() -> None:
    """When this fails: python -m scripts.options_page"""
    assert options_page.PAGE.read_text(encoding="utf-8") == options_page.page()


def test_page_of_options_leaves_the_commands_as_they_are() -> None:
    """In a process of its own, for a command keeps what the first one who asks has made of it."""
    script = (
        "from click.testing import CliRunner\n"
        "from pykstreams.cli.app import cli\n"
        "from scripts import options_page\n"
        "options_page.page()\n"
        "print([CliRunner().invoke(cli, [name, '-h']).exit_code for name in cli.list_commands(None)])\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)

    assert set(ast.literal_eval(ended.stdout)) == {0}


def test_every_setting_has_a_section() -> None:
    found = set(headings((ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8")))

    assert [key.name for key in StreamsConfig.describe() if key.name.replace(".", "") not in found] == []


def test_a_list_gets_a_blank_line_and_code_is_left_alone() -> None:
    text = "Three:\n- one\n- two\n\n```\nis:\n- code\n```\n"

    assert with_lists_apart(text) == "Three:\n\n- one\n- two\n\n```\nis:\n- code\n```\n"


def test_links_out_of_the_docs_lead_to_pages_of_the_site() -> None:
    text = "[a](../../Makefile) [b](../../tests/interop) [c](http.md#x) [d](https://kafka.apache.org) `[e](f)`"

    moved = with_links(text, "guides/types.md")

    assert moved == (
        "[a](../source/Makefile.md) [b](../source/tests/interop/README.md) [c](http.md#x) "
        "[d](https://kafka.apache.org) `[e](f)`"
    )


def test_a_page_made_of_a_file_has_links_from_where_it_lies() -> None:
    assert with_links("[a](../docs/index.md) [b](../README.md)", "source/examples/README.md") == (
        "[a](../../index.md) [b](../README.md)"
    )


def test_a_file_of_the_site_is_found_again() -> None:
    for path in ("Makefile", "CONTRIBUTING.md"):
        assert file_of(uri_of(path)) == path
    assert file_of("index.md") == "docs/index.md"


def test_a_file_that_is_no_page_is_shown_as_code() -> None:
    assert page_of("docs/site/texts.py").startswith("# docs/site/texts.py\n\n````python\n")
    assert page_of("README.md") == Path(ROOT / "README.md").read_text(encoding="utf-8")
