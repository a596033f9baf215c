"""Suppliers and punctuators of users, checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pykstreams.core.processor import FixedKeyProcessor, Processor, PunctuationType
from pykstreams.core.user_code.calls import Call
from pykstreams.core.user_code.functions import describe_function

_STEPS: Final[Mapping[type, str]] = {Processor: "process_values", FixedKeyProcessor: "process"}
"""The step that takes the other kind of processor."""


def check_supplier(supplier: Callable[[], object], expected: type, method: str, *arguments: str) -> None:
    """Calls the supplier twice; ``TypeError`` if it is no supplier, ``ValueError`` if it gives one object twice.

    :param method: what is called per record, and may be no coroutine function.
    :param arguments: what it is called with.
    """
    if not callable(supplier):
        raise TypeError(
            f"{supplier!r} is no supplier; give a class derived from {expected.__name__}, "
            "or a function without arguments that returns a new object each time"
        )
    first = supplier()
    if not isinstance(first, expected):
        other = _STEPS.get(expected) if isinstance(first, Processor | FixedKeyProcessor) else None
        cure = "" if other is None else f", or give it to {other}"
        raise TypeError(f"{describe_function(supplier)} gave {first!r}; expected a {expected.__name__}{cure}")
    if supplier() is first:
        raise ValueError(
            f"{describe_function(supplier)} gave the same object twice, {first!r}; "
            "every task needs a processor of its own: return a new one at each call"
        )
    Call(arguments).check(expected.__name__, method, getattr(first, method))


def check_punctuator(punctuation_type: object, callback: object) -> None:
    """``TypeError`` for what is no time, and for what cannot be called with one or would have to be awaited."""
    if not isinstance(punctuation_type, PunctuationType):
        raise TypeError(f"type of a punctuation is {punctuation_type!r}; expected a member of PunctuationType")
    Call(("time in ms",)).check("schedule", "callback", callback)
