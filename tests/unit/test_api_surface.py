"""Every name of the public API is where a user expects it, with the parameters a user expects.

``tests/golden/api_surface.txt`` has one line a name: ``pykstreams.KStream.filter(predicate, *, name)``. A signature
names what may be given by position, in that order, and after ``*`` what may be given by keyword; what ours has beyond
that is optional.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parent.parent / "golden"
SURFACE = (GOLDEN / "api_surface.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", SURFACE)
def test_name_is_there_with_its_parameters(line: str) -> None:
    assert problem(line) is None


def test_no_name_stands_in_the_list_twice() -> None:
    assert sorted(set(SURFACE)) == sorted(SURFACE)


def problem(line: str) -> str | None:
    """What is wrong with a name, ``None`` if nothing."""
    name, _, parameters = line.rstrip(")").partition("(")
    owner, found = resolve(name)
    if found is MISSING:
        return f"{name} is missing"
    if "(" not in line:
        return None
    return difference(parameters, signature(owner, found, name.rpartition(".")[2]))


MISSING = object()
SUBMODULES = [
    importlib.import_module(f"pykstreams.{name}")
    for name in ("assignment", "errors", "query", "state", "testing", "types")
]


def resolve(name: str) -> tuple[Any, Any]:
    """The object of a dotted name, with what it was found in; fields of instances stand for themselves."""
    owner: Any = None
    found: Any = importlib.import_module("pykstreams")
    for part in name.split(".")[1:]:
        owner = found
        found = getattr(owner, part, MISSING)
        if found is MISSING and inspect.isclass(owner) and part in fields(owner):
            found = None
        if found is MISSING:
            return owner, MISSING
    return owner, found


def fields(kind: type) -> set[str]:
    """The attributes that instances of a class have: those annotated there, and those that ``__init__`` sets."""
    made = getattr(inspect.getattr_static(kind, "__init__"), "__code__", None)
    annotated = {name for base in kind.__mro__ for name in inspect.get_annotations(base)}
    return annotated | set(made.co_names if made else ())


def signature(owner: Any, found: Any, name: str) -> list[inspect.Parameter]:
    """What a caller gives: without ``self``, unless a class hides it already."""
    parameters = list(inspect.signature(found).parameters.values())
    if inspect.isclass(owner) and inspect.isfunction(inspect.getattr_static(owner, name)):
        return parameters[1:]
    return parameters


def difference(expected: str, ours: list[inspect.Parameter]) -> str | None:
    """How a signature differs from what the list says, ``None`` if it takes all that the list says."""
    by_position, _, by_keyword = expected.partition("*, ")
    if match := re.search(r"\*(\w+)(, )?", expected):
        by_position, by_keyword = expected[: match.start()], expected[match.end() :]
        if all(parameter.kind is not inspect.Parameter.VAR_POSITIONAL for parameter in ours):
            return f"does not take any number of {match[1]}"
    names = [name for name in by_position.split(", ") if name]
    positional = [p for p in ours if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if [parameter.name for parameter in positional[: len(names)]] != names:
        return f"takes {[p.name for p in positional]} by position, expected {names}"
    keywords = {name for name in by_keyword.split(", ") if name}
    if missing := keywords - {p.name for p in ours if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}:
        return f"does not take the keywords {sorted(missing)}"
    required = [p.name for p in ours if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if extra := set(required) - set(names) - keywords:
        return f"also needs {sorted(extra)}"
    return None
