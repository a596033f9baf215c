"""The errors that name a user's function which returned something unusable.

Only error paths come here, so nothing in this module is fast.
"""

from __future__ import annotations

from collections.abc import Callable
from types import AsyncGeneratorType, CoroutineType, NoneType
from typing import Final

from pykstreams.core.shown_values import shown
from pykstreams.core.user_code.functions import describe_function as describe_function

UNAWAITED: Final = frozenset({CoroutineType, AsyncGeneratorType})
"""The types of what a coroutine function gives before somebody awaits it; a step that does not has no use for it."""

NO_PAIR: Final = (str, bytes)
"""Types of values that could be taken apart like a pair, and are not meant to be."""

NOT_SEVERAL: Final = (NoneType, str, bytes)
"""Types of what is never meant as several values, although some of it could be taken apart."""


def not_a_pair(function: Callable[..., object], result: object) -> TypeError:
    """The error for a function that had to give a key and a value."""
    return TypeError(f"{describe_function(function)} returned {shown(result)}; expected a pair (key, value)")


def not_iterable(function: Callable[..., object], result: object, of: str) -> TypeError:
    """The error for a function that had to give any number of something."""
    return TypeError(
        f"{describe_function(function)} returned {shown(result)}; expected an iterable of {of} (an empty one for no "
        "output)"
    )


def not_a_decision(predicate: Callable[..., object], result: object) -> TypeError:
    """The error for a predicate that had to hold or not, and gave what has to be awaited."""
    return TypeError(
        f"{_unawaited(predicate, result)}, which is always true; await it in map_values_async of the stream first, and "
        "decide by the value that comes of it"
    )


def refuse_unawaited(action: Callable[..., object], result: object) -> None:
    """Raises ``TypeError`` where an action gave what has to be awaited, so that nothing was done."""
    if type(result) in UNAWAITED:
        raise TypeError(
            f"{_unawaited(action, result)}, and this step does not await it; use map_values_async of the stream in "
            "place of this step"
        )


def _unawaited(function: Callable[..., object], result: object) -> str:
    if isinstance(result, CoroutineType):
        result.close()  # nobody will await it, and Python would warn of that
    return f"{describe_function(function)} returned {shown(result)}"
