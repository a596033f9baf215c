"""Programs of users: mypy and pyright, strict, find no error in those of ``accepted``, and one in each of ``refused``.

Above the statement with the error stands what finds it, ``# error: arg-type of mypy, reportArgumentType of pyright``.
All that a checker says of a program is about that statement.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent
REFUSED = sorted((FOLDER / "refused").glob("*.py"))
ACCEPTED = sorted((FOLDER / "accepted").glob("*.py"))
MARKER = re.compile(r"^ *# error: (?P<mypy>[a-z-]+) of mypy, (?P<pyright>\w+) of pyright$", re.MULTILINE)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("type checkers")]


@dataclass(frozen=True)
class Found:
    """An error of a type checker."""

    line: int
    code: str
    text: str


Checked: TypeAlias = Mapping[str, list[Found]]
"""What a checker said, by the name of the program."""


@pytest.fixture(scope="module")
def by_mypy() -> Checked:
    done = run("mypy", "--output", "json", *map(str, (*REFUSED, *ACCEPTED)))
    found: dict[str, list[Found]] = defaultdict(list)
    for said in map(json.loads, done.splitlines()):
        if said["severity"] == "error":
            found[Path(said["file"]).name].append(Found(said["line"], said["code"], said["message"]))
    return found


@pytest.fixture(scope="module")
def by_pyright() -> Checked:
    settings = {
        "include": [str(FOLDER.relative_to(ROOT) / name) for name in ("refused", "accepted")],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
    }
    config = ROOT / ".pyrightconfig-of-programs.json"  # paths in it count from where it lies
    config.write_text(json.dumps(settings))
    try:
        done = run("pyright", "--outputjson", "--project", str(config), "--pythonpath", sys.executable)
    finally:
        config.unlink()
    told = json.loads(done)
    assert told["summary"]["filesAnalyzed"] == len(REFUSED) + len(ACCEPTED)
    found: dict[str, list[Found]] = defaultdict(list)
    for said in told["generalDiagnostics"]:
        line = said["range"]["start"]["line"] + 1
        found[Path(said["file"]).name].append(Found(line, said.get("rule", ""), said["message"]))
    return found


def run(program: str, *arguments: str) -> str:
    """What a type checker prints; both end with 1 where there are errors."""
    done = subprocess.run(
        [sys.executable, "-m", program, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=500
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def wrong_lines(program: Path) -> tuple[range, dict[str, str]]:
    """The lines of the statement that is wrong, and the code of each checker for it."""
    text = program.read_text()
    (marker,) = MARKER.finditer(text)
    after = text.count("\n", 0, marker.start()) + 2
    (statement,) = {(node.lineno, node.end_lineno) for node in innermost(ast.parse(text)) if node.lineno == after}
    return range(statement[0], (statement[1] or statement[0]) + 1), marker.groupdict()


def innermost(tree: ast.AST) -> Iterator[ast.stmt]:
    """Statements that have no others in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            yield node


def test_there_are_thirty_programs_with_an_error_and_twenty_without() -> None:
    assert len(REFUSED) >= 30
    assert len(ACCEPTED) >= 20


@pytest.mark.parametrize("program", REFUSED, ids=lambda program: program.stem)
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_the_error_of_a_program_is_found(program: Path, checker: str, request: pytest.FixtureRequest) -> None:
    found: Checked = request.getfixturevalue(f"by_{checker}")
    lines, codes = wrong_lines(program)

    assert codes[checker] in {one.code for one in found[program.name]}
    assert [one for one in found[program.name] if one.line not in lines] == []


@pytest.mark.parametrize("program", ACCEPTED, ids=lambda program: program.stem)
def test_a_right_program_has_no_error(program: Path, by_mypy: Checked, by_pyright: Checked) -> None:
    assert by_mypy[program.name] == []
    assert by_pyright[program.name] == []
