"""Runs case files and tells how each went; shared by the command, the tests and the fuzzer."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.conformance.compare import compare
from tests.conformance.errors import FormatError, NotBuiltError
from tests.conformance.run import run
from tests.conformance.values import Json

SHOWN = 12
"""Differences shown per case; the rest is counted."""


def case_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Gives the files named and every ``*.json`` under the folders named."""
    for path in paths:
        if path.is_dir():
            yield from sorted(path.rglob("*.json"))
        elif path.is_file():
            yield path
        else:
            raise FileNotFoundError(f"there is no case file or folder {str(path)!r}")


def load(path: Path) -> Json:
    """Reads a case file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FormatError(f"not JSON: {error}") from error


def problems(case: Json) -> list[str]:
    """Runs a case; gives its differences as text, none when it passed."""
    if "expect" not in case:
        return ["the case has no 'expect'; record it with the oracle first"]
    try:
        outcome = run(case)
    except FormatError as error:
        return [f"bad case: {error}"]
    except NotBuiltError as error:
        return [f"needs something that is not built yet: {error}"]
    except Exception:
        return [f"the runner itself failed:\n{traceback.format_exc()}"]
    differences = [str(difference) for difference in compare(case, outcome.result)]
    if len(differences) > SHOWN:
        differences[SHOWN:] = [f"and {len(differences) - SHOWN} more differences"]
    if differences and outcome.raised is not None and "error" not in case["expect"]:
        differences.append("".join(traceback.format_exception(outcome.raised)).rstrip())
    return differences


def file_problems(path: Path) -> list[str]:
    """The same for a file."""
    try:
        case = load(path)
    except FormatError as error:
        return [f"bad case: {error}"]
    return problems(case)


def show_failure(path: Path, found: list[str]) -> None:
    """Prints what went wrong with a case file."""
    print(f"FAILED {path}")
    for problem in found:
        print("  " + problem.replace("\n", "\n  "))


def summary(passed: int, failed: int) -> str:
    """The last line of every run."""
    return f"{passed} passed, {failed} failed"
