"""Every block of every page says what it is, and is what it says: nothing is left out in silence."""

from __future__ import annotations

import ast
import configparser
import json
import re
import tomllib
from collections.abc import Callable, Mapping

import pytest
import yaml

from pykstreams.cli.settings import read_properties
from tests.docs.elsewhere import OTHER_LANGUAGES, RUN_BY
from tests.docs.pages import CODE, COMMANDS, CONFIGURATION, LANGUAGES, ROOT, Page, pages

PAGES = [page for page in pages() if page.blocks]


def _ini(text: str) -> object:
    # of a service of systemd: names keep their case, and may come twice
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser.sections()


def _dockerfile(text: str) -> object:
    joined = re.sub(r"\\\n\s*", "", text)
    lines = [line for line in joined.splitlines() if line and not line.startswith("#")]
    known = "ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM RUN USER VOLUME WORKDIR".split()
    return lines[0].startswith(("FROM ", "ARG ")) and all(line.split()[0] in known for line in lines)


PARSE: Mapping[str, Callable[[str], object]] = {
    "toml": tomllib.loads,
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "json": json.loads,
    "properties": lambda text: dict(read_properties(text)),
    "ini": _ini,
    "dockerfile": _dockerfile,
}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_blocks_say_what_they_are(page: Page) -> None:
    """``sh`` for commands, ``text`` for drawings, and so on: tests/docs/pages.py has the list."""
    unknown = [f"{page}:{block.line}: {block.language!r}" for block in page.blocks if block.language not in LANGUAGES]

    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_configuration_of_a_page_can_be_read(page: Page) -> None:
    assert set(PARSE) == CONFIGURATION
    for block in page.of(*CONFIGURATION):
        assert PARSE[block.language](block.text), f"{page}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_drawings_are_neither_code_nor_commands(page: Page) -> None:
    for block in page.of("text"):
        first = block.text.split()[0]
        assert first not in {"pykstreams", "pip", "python", "curl", "docker", "make"}, f"{page}:{block.line}"
        assert not _is_code(block.text), f"{page}:{block.line}"


def _is_code(text: str) -> bool:
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Import | ast.ImportFrom | ast.Assign | ast.FunctionDef) for node in body)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_other_languages_are_shown_where_they_are_compared(page: Page) -> None:
    assert not page.of("java") or page.path in OTHER_LANGUAGES


@pytest.mark.parametrize("page", sorted(RUN_BY))
def test_pages_that_are_run_elsewhere_are(page: str) -> None:
    test = (ROOT / RUN_BY[page]).read_text(encoding="utf-8")

    assert Page(page).of(CODE, COMMANDS)
    assert page.rpartition("/")[2] in test
