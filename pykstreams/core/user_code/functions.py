"""Names of users' functions for messages, and the stores that their suppliers bring."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any


def describe_function(function: Callable[..., object]) -> str:
    """Returns module, name and line of a function, or its ``repr`` where it has none.

    >>> describe_function(len)
    'builtins.len'
    >>> describe_function(str.upper)
    'str.upper'
    """
    return _described(function, "line {0.co_firstlineno}")


def describe_place(function: Callable[..., object]) -> str:
    """As ``describe_function``, with the file beside the line."""
    return _described(function, "{0.co_filename}, line {0.co_firstlineno}")


def _described(function: Callable[..., object], place: str) -> str:
    if isinstance(function, partial):
        return f"partial of {_described(function.func, place)}"
    name = getattr(function, "__qualname__", None)
    if name is None:
        return repr(function)
    home = getattr(function, "__module__", None)  # methods of built-in types have none
    whole = name if home is None else f"{home}.{name}"
    code = getattr(inspect.unwrap(function), "__code__", None)
    return whole if code is None else f"{whole} ({place.format(code)})"


def stores_of(supplier: Callable[[], object]) -> tuple[Any, ...]:
    """The builders that a supplier brings by its ``stores()`` (``ConnectedStoreProvider``); none without that method.

    Those of what a ``functools.partial`` calls count, too. ``TypeError`` for a class whose ``stores`` needs an object.
    """
    while isinstance(supplier, partial):
        supplier = supplier.func
    stores = getattr(supplier, "stores", None)
    if not callable(stores):
        return ()
    if inspect.isclass(supplier) and inspect.isfunction(inspect.getattr_static(supplier, "stores")):
        raise TypeError(
            f"{describe_function(supplier)} supplies processors, so its stores() is called before there is one; "
            "make it a static method, or a class method"
        )
    return tuple(stores() or ())
