"""The reasons for which operators drop records: one that says that a record is late has it counted as late."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest

from pykstreams import processors, state
from pykstreams.processors.drop_reasons import LATE_REASONS


def modules() -> Iterator[ModuleType]:
    """All modules of processors and stores."""
    for package in (processors, state):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield import_module(found.name)


def reasons() -> Iterator[tuple[str, str]]:
    """The reason of every drop, with the place where it stands."""
    for module in modules():
        for call in ast.walk(ast.parse(inspect.getsource(module))):
            if not isinstance(call, ast.Call) or len(call.args) != 1:
                continue
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name.strip("_") == "drop":
                yield f"{module.__name__}:{call.lineno}", reason_of(call.args[0], module)


def reason_of(given: ast.expr, module: ModuleType) -> str:
    """The text of a reason that is written down or named by a constant of the module."""
    found = getattr(module, given.id) if isinstance(given, ast.Name) else ast.literal_eval(given)
    assert isinstance(found, str)
    return found


REASONS = dict(reasons())


def test_every_reason_that_counts_as_late_is_given_by_an_operator() -> None:
    assert set(REASONS.values()) >= LATE_REASONS


@pytest.mark.parametrize("place", REASONS)
def test_a_reason_says_that_a_record_is_late_just_when_it_counts_as_late(place: str) -> None:
    reason = REASONS[place]

    assert (reason in LATE_REASONS) == bool(re.search(r"\blate\b", reason))
