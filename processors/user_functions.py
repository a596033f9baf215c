"""The errors that name a user's function which returned something unusable.

Only error paths come here, so nothing in this module is fast.
"""

from __future__ import annotations

from collections.abc import Callable

from pykstreams.core.shown_values import shown
from pykstreams.core.user_code.functions import describe_function as describe_function


def not_a_pair(function: Callable[..., object], result: object) -> TypeError:
    """The error for a function that had to give a key and a value."""
    return TypeError(f"{describe_function(function)} returned {shown(result)}; expected a pair (key, value)")


def not_iterable(function: Callable[..., object], result: object, of: str) -> TypeError:
    """The error for a function that had to give any number of something."""
    return TypeError(
        f"{describe_function(function)} returned {shown(result)}; expected an iterable of {of} (an empty one for no "
        "output)"
    )
