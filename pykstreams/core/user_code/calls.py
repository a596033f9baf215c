"""Whether a user's function can be called as it will be: asked once, where it is given, and never per record.

Invariant: a function that could be called is never refused. What has no signature, as some of those written in C, is
let through, and so is whatever a decorator passes on.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pykstreams.core.user_code.functions import describe_place


@dataclass(frozen=True, slots=True)
class Call:
    """How a step calls a function: with which arguments, by what they are, and whether it awaits what comes.

    With ``with_key`` set there is a switch of that name, which puts the key in front of the arguments.
    """

    arguments: tuple[str, ...]
    awaits: bool = False
    with_key: str | None = None

    @property
    def _keyed(self) -> tuple[str, ...]:
        return ("key", *self.arguments)

    def called_with(self, *, keyed: bool) -> tuple[str, ...]:
        """The arguments that the function is called with; ``keyed``: whether the switch is on."""
        return self._keyed if keyed else self.arguments

    def check(self, step: str, parameter: str, function: object, *, keyed: bool = False) -> None:
        """``TypeError`` for what cannot be called so; it says what to write. ``keyed``: whether the switch is on."""
        arguments = self.called_with(keyed=keyed)
        if not callable(function):
            example = "" if arguments else f", such as lambda: {function!r}"
            raise TypeError(
                f"{step}: {parameter} is {function!r}; expected a function that is called {_with(arguments)}{example}"
            )
        if not self.awaits and _is_asynchronous(function):
            raise TypeError(
                f"{step}: {describe_place(function)} is defined with 'async def', and this step does not await it; "
                f"{_awaited_instead(step, parameter)}"
            )
        signature = _signature(function)
        if signature is None or _takes(signature, len(arguments)):
            return
        raise TypeError(
            f"{step}: {describe_place(function)} takes {_without_types(signature)}, and is called {_with(arguments)}"
            f"{self._cure(signature, keyed)}"
        )

    def _cure(self, signature: inspect.Signature, keyed: bool) -> str:
        if self.with_key is None:
            return ""
        other = self.arguments if keyed else self._keyed
        if not _takes(signature, len(other)):
            return ""
        if keyed:
            return f"; without {self.with_key}=True it is called {_with(other)}"
        return f"; give {self.with_key}=True, and it is called {_with(other)}"


def _awaited_instead(step: str, parameter: str) -> str:
    """The cure for a function that has to be awaited: another step in place of this one, or before it."""
    if parameter == "callback":
        return "define it with 'def'"
    if parameter == "action" or step.endswith(".map_values"):
        return "use map_values_async of the stream in place of this step"
    before = "await it in map_values_async of the stream first, and"
    return f"{before} {'decide by' if parameter == 'predicate' else 'let this step take'} the value that comes of it"


def _is_asynchronous(function: Callable[..., object]) -> bool:
    while isinstance(function, partial):
        function = function.func
    return any(
        kind(one)
        for kind in (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
        for one in (function, type(function).__call__)
    )


def _signature(function: Callable[..., object]) -> inspect.Signature | None:
    """The parameters of a function itself, whatever it wraps; ``None`` where nobody knows."""
    try:
        if sys.version_info >= (3, 14):
            from annotationlib import Format

            return inspect.signature(function, follow_wrapped=False, annotation_format=Format.FORWARDREF)
        return inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return None


def _takes(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


def _without_types(signature: inspect.Signature) -> str:
    parameters = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def _with(arguments: tuple[str, ...]) -> str:
    return f"with ({', '.join(arguments)})" if arguments else "without arguments"
