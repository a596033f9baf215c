"""Where the runner takes pykstreams from: only public names, looked up when a case needs them.

A name that does not exist fails the cases that use it and no others.
"""

from __future__ import annotations

import importlib
from typing import Any

from tests.conformance.errors import NotBuiltError


def public(name: str, module: str = "pykstreams") -> Any:
    """Gives a public name of pykstreams; ``NotBuiltError`` when the package does not have it."""
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise NotBuiltError(f"there is no module {module}") from error
    try:
        return getattr(found, name)
    except AttributeError as error:
        raise NotBuiltError(f"{module} has no {name}") from error


def operation(target: Any, name: str) -> Any:
    """Gives a method of a DSL object; ``NotBuiltError`` when it has none of that name."""
    try:
        return getattr(target, name)
    except AttributeError as error:
        raise NotBuiltError(f"{type(target).__name__} has no operation {name}") from error
