"""What ``docs/guides/operate.md`` and ``debug.md`` say of the log is what the log says."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykstreams.cli.exit_codes import ExitCode
from pykstreams.processors import drop_reasons

ROOT = Path(__file__).parents[2]
OPERATE, DEBUG = ((ROOT / "docs" / "guides" / name).read_text(encoding="utf-8") for name in ("operate.md", "debug.md"))

REASONS = "the warning says | cause | cure"


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
        for row in (
            *rows(OPERATE, "the line has | what it is | do"),
            *rows(DEBUG, REASONS),
            *rows(DEBUG, "the warning says | dropped is | cure"),
        )
    ]
    fragments = [one.strip("`") for one in shown if one != "`rebalancing -> running`"]

    assert len(fragments) > 20
    assert [one for one in fragments if one not in said] == []


@pytest.fixture(scope="module")
def reasons() -> set[str]:
    """The reasons that the code gives when it drops a record: each ``drop(reason)``, those with values cut at them."""
    found: set[str] = set()
    for folder, package in (("processors", "pykstreams.processors"), ("pykstreams/runtime", "pykstreams.runtime")):
        for path in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and _name_of(node.func).lstrip("_") == "drop":
                    module = ".".join((package, *path.relative_to(ROOT / folder).with_suffix("").parts))
                    given = [one for argument in node.args if (one := _reason(argument, module))]
                    found.update(given[:1])  # what may come behind it is the place of the record
    return found


def _name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _reason(node: ast.expr, module: str) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return max((str(one.value).strip() for one in node.values if isinstance(one, ast.Constant)), key=len)
    if isinstance(node, ast.Name) and node.id.isupper():
        return str(getattr(importlib.import_module(module), node.id))
    return ""


def test_page_tells_of_every_reason_for_which_records_are_dropped(reasons: set[str]) -> None:
    """What the page shows is the beginning of a reason: some go on with a cure."""
    shown = [row[0].strip("`") for row in rows(DEBUG, REASONS)]

    assert {"a row refers to null", "gives timestamps below 0", drop_reasons.CLOSED_WINDOW} < reasons
    assert [one for one in reasons if not any(one.startswith(text) for text in shown)] == []
    assert [text for text in shown if not any(one.startswith(text) for one in reasons)] == []


def test_every_shared_reason_is_that_of_a_step(reasons: set[str]) -> None:
    shared = {text for name, text in vars(drop_reasons).items() if name.isupper() and isinstance(text, str)}

    assert shared <= reasons


def test_summary_on_the_page_has_the_form_of_the_log() -> None:
    source = (ROOT / "pykstreams/runtime/worker/work_summary.py").read_text(encoding="utf-8")
    [form] = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("%s: processed")
    ]
    [line] = re.findall(r"^```log\n(.*?)\n```$", OPERATE, re.DOTALL | re.MULTILINE)

    assert re.fullmatch(re.sub(r"%(?:s|d|\\\.\d+f)", r"\\S+", re.escape(form)), line)


def test_every_exit_code_of_a_worker_has_a_row() -> None:
    found = {int(row[0]) for row in rows(OPERATE, "[exit code](../reference/cli.md#exit-codes) | do")}

    assert found == set(ExitCode) - {ExitCode.NOTHING_THERE, ExitCode.NOT_KNOWN}
