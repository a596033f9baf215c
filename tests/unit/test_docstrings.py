"""Docstrings begin as those of the standard library do: with a verb in the third person, or a noun phrase."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("pykstreams", "processors", "serdes")

NO_BEGINNING = frozenset({"What", "Gives"})
"""A clause instead of a noun, and a verb that does not tell whether something is returned, yielded or handed over."""


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the text of each docstring of a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "lineno", 1), text


def test_no_docstring_begins_with_a_clause_or_a_vague_verb() -> None:
    modules = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    assert len(modules) > 400

    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in modules
        for line, text in docstrings(path)
        if text.split()[0] in NO_BEGINNING
    ]

    assert wrong == []
