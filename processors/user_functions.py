"""What an operator says about a user's function when the function gave something unusable.

Only error paths come here, so nothing in this module is fast.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any


def describe_function(function: Callable[..., Any]) -> str:
    """Gives module, name and line of a function, or its ``repr`` where it has none.

    >>> describe_function(len)
    'builtins.len'
    >>> describe_function(str.upper)
    'str.upper'
    """
    if isinstance(function, partial):
        return f"partial of {describe_function(function.func)}"
    name = getattr(function, "__qualname__", None)
    if name is None:
        return repr(function)
    home = getattr(function, "__module__", None)  # methods of built-in types have none
    place = name if home is None else f"{home}.{name}"
    code = getattr(inspect.unwrap(function), "__code__", None)
    return place if code is None else f"{place} (line {code.co_firstlineno})"


def not_a_pair(function: Callable[..., Any], result: object) -> TypeError:
    """The error for a function that had to give a key and a value."""
    return TypeError(f"{describe_function(function)} returned {result!r}; expected a pair (key, value)")


def not_iterable(function: Callable[..., Any], result: object, of: str) -> TypeError:
    """The error for a function that had to give any number of something."""
    return TypeError(
        f"{describe_function(function)} returned {result!r}; expected an iterable of {of} (an empty one for no output)"
    )
