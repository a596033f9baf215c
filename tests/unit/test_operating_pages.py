"""What ``docs/guides/operate.md`` and ``debug.md`` say of the log is what the log says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykstreams.cli.exit_codes import ExitCode

ROOT = Path(__file__).parents[2]
OPERATE, DEBUG = ((ROOT / "docs" / "guides" / name).read_text(encoding="utf-8") for name in ("operate.md", "debug.md"))


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the table that begins with a heading, without the lines that name its columns."""
    table = page[page.index(f"| {heading} |") :].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]


def texts(folder: str) -> Iterator[str]:
    """All texts in the code of a folder; those with values in them with a dot for each value."""
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.JoinedStr):
                yield "".join(str(one.value) if isinstance(one, ast.Constant) else "." for one in node.values)


@pytest.fixture(scope="module")
def said() -> str:
    return "\n".join(one for folder in ("pykstreams", "processors") for one in texts(folder))


def test_lines_of_the_log_that_the_pages_explain_are_written(said: str) -> None:
    shown = [
        row[0]
        for row in (*rows(OPERATE, "the line has | what it is | do"), *rows(DEBUG, "the warning says | cause | cure"))
    ]
    fragments = [one.strip("`") for one in shown if one != "`rebalancing -> running`"]

    assert len(fragments) > 20
    assert [one for one in fragments if one not in said] == []


def test_summary_on_the_page_has_the_form_of_the_log() -> None:
    source = (ROOT / "pykstreams/runtime/worker/work_summary.py").read_text(encoding="utf-8")
    [form] = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("%s: processed")
    ]
    [line] = re.findall(r"^```log\n(.*?)\n```$", OPERATE, re.DOTALL | re.MULTILINE)

    assert re.fullmatch(re.sub(r"%(?:s|d|\\\.\d+f)", r"\\S+", re.escape(form)), line)


def test_every_exit_code_has_a_row() -> None:
    found = {int(row[0]) for row in rows(OPERATE, "[exit code](../reference/cli.md#exit-codes) | do")}

    assert found == set(ExitCode)
