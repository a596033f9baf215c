"""Facts of a step that its name does not say: the user's functions, the windows, the tables that it looks into.

Read from the fields of the operator, which describe it; nothing is called. Functions that the DSL has put around those
of the user are looked through.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import CellType
from typing import Final, Protocol, cast, runtime_checkable

from pykstreams.core.processor import OperatorContext
from pykstreams.core.windows import (
    CountWindows,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
    Windows,
)
from pykstreams.topology.definition import Supplier
from pykstreams.topology.wrapping import WrapsUserCode

_PACKAGE: Final = "pykstreams"
_DEPTH: Final = 6
"""How far fields, and functions around functions, are looked into."""
_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
_WINDOWS = (Windows, SlidingWindows, SessionWindows, CountWindows, JoinWindows)


@runtime_checkable
class _View(Protocol):
    """A table as a step reads it."""

    @property
    def stores(self) -> tuple[str, ...]: ...

    def build(self, context: OperatorContext) -> object: ...


class _JoinBounds(Protocol):
    before_ms: int
    after_ms: int


@dataclass(frozen=True, slots=True)
class StepFacts:
    """The known facts of a step; ``tables`` are the stores of the tables that it reads."""

    functions: tuple[str, ...] = ()
    windows: str | None = None
    tables: tuple[str, ...] = ()


def facts_of(supplier: Supplier) -> StepFacts:
    """Returns the facts of an operator of the DSL, or of a user's processor."""
    if isinstance(supplier, WrapsUserCode):
        return StepFacts(tuple(_names(supplier.supplier)))
    if not hasattr(supplier, "build"):
        return StepFacts(tuple(_names(supplier)))
    values = list(_values(supplier, _DEPTH))
    functions = dict.fromkeys(name for value in values if callable(value) for name in _names(value))
    windows = [described_windows(value) for value in values if isinstance(value, _WINDOWS)]
    join = [_join_bounds(cast("_JoinBounds", supplier))] if hasattr(supplier, "before_ms") else []
    tables = dict.fromkeys(name for value in values if isinstance(value, _View) for name in value.stores)
    return StepFacts(tuple(functions), next(iter((*windows, *join)), None), tuple(tables))


def described_windows(windows: object) -> str:
    """Returns windows as one says them.

    >>> described_windows(TimeWindows(300_000, advance_by=60_000, grace=1500))
    '5 min every 1 min, grace 1500 ms'
    >>> described_windows(SessionWindows(30_000))
    'sessions with gaps of 30 s'
    """
    match windows:
        case TimeWindows():
            hopping = "" if windows.advance_ms == windows.size_ms else f" every {_span(windows.advance_ms)}"
            return f"{_span(windows.size_ms)}{hopping}{_grace(windows.grace_period_ms)}"
        case SlidingWindows():
            return f"sliding {_span(windows.time_difference_ms)}{_grace(windows.grace_period_ms)}"
        case SessionWindows():
            return f"sessions with gaps of {_span(windows.inactivity_gap_ms)}{_grace(windows.grace_period_ms)}"
        case UnlimitedWindows():
            return "unlimited"
        case CountWindows():
            return f"{windows.size} records"
        case JoinWindows():
            return _bounds(windows.before_ms, windows.after_ms, windows.grace_period_ms)
        case Windows():
            return f"{type(windows).__name__} of {_span(windows.size_ms)}{_grace(windows.grace_period_ms)}"
        case _:
            return type(windows).__name__


def _join_bounds(operator: _JoinBounds) -> str:
    return _bounds(operator.before_ms, operator.after_ms, getattr(operator, "grace_ms", 0))


def _bounds(before_ms: int, after_ms: int, grace_ms: int) -> str:
    if before_ms == after_ms:
        return f"within {_span(before_ms)}{_grace(grace_ms)}"
    return f"{_span(before_ms)} before to {_span(after_ms)} after{_grace(grace_ms)}"


def _grace(grace_ms: int) -> str:
    return f", grace {_span(grace_ms)}" if grace_ms else ""


def _span(ms: int) -> str:
    for size, unit in _UNITS:
        if ms and ms % size == 0:
            return f"{ms // size} {unit}"
    return f"{ms} ms"


def _values(described: object, depth: int) -> Iterator[object]:
    """The values of the fields of a description, and of those in them."""
    if not dataclasses.is_dataclass(described) or isinstance(described, type):
        return
    for field in dataclasses.fields(described):
        value = getattr(described, field.name, None)
        yield value
        if depth and not isinstance(value, _View):  # what is in a table belongs to other steps
            yield from _values(value, depth - 1)


def _names(function: object, depth: int = _DEPTH) -> Iterator[str]:
    """The names of the user's functions in a function: its own, or those that one of the package calls."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function) if callable(function) else function
    module = str(getattr(function, "__module__", None) or "")
    if module.partition(".")[0] != _PACKAGE:
        yield _name(function)
    elif depth:
        for cell in getattr(function, "__closure__", None) or ():
            if callable(inside := _content(cell)):
                yield from _names(inside, depth - 1)


def _name(function: object) -> str:
    """The name as it stands in the script; the line for a lambda."""
    name = getattr(function, "__qualname__", None)
    if not isinstance(name, str):
        return type(function).__qualname__.rpartition("<locals>.")[2]
    short = name.rpartition("<locals>.")[2]
    code = getattr(function, "__code__", None)
    return f"lambda (line {code.co_firstlineno})" if short == "<lambda>" and code is not None else short


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None
