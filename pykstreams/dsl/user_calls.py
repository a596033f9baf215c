"""How each step calls the functions it is given: said beside the step, and checked before it becomes one.

``@calls(mapper="key?, value")`` stands above a method whose ``mapper`` is called with the value, or with key and value
where the method's ``with_key`` (or ``extractor_with_key``) is true. ``"await value"`` is for a step that awaits what
the function gives, ``""`` for a function that is called without arguments, ``"value -> value"`` for one that makes the
values that the step forwards (see ``note_maker``). A function that may be left away, and was, is not checked. Types of
parameters that cannot be those of the arguments are noted in the graph of the ``self`` of the method, which must be a
``HasRecordSerdes``.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar, cast

from pykstreams.core.user_code.calls import Call
from pykstreams.dsl.annotations.argument_types import argument_types, note_contradiction
from pykstreams.dsl.annotations.makers import note_maker
from pykstreams.dsl.annotations.missing_returns import note_missing_return
from pykstreams.dsl.record_serdes import HasRecordSerdes

F = TypeVar("F", bound=Callable[..., object])

_SWITCHES = ("with_key", "extractor_with_key")
_OF_OTHER_JOINS: Final[Mapping[str, str]] = {
    "foreign_key_extractor": "a table is joined by it; a stream by key_selector=, of its key and value",
    "key_selector": "a stream is joined by it; a table by foreign_key_extractor=, of its value",
}
"""The cure in the error of a join that is given an option of other joins."""


def calls(**functions: str) -> Callable[[F], F]:
    """Checks the functions that a method of the DSL is given, by the names of its parameters, when it is called."""

    def checked(method: F) -> F:
        signature = inspect.signature(method)
        switch = next((name for name in _SWITCHES if name in signature.parameters), None)
        wanted = {parameter: _call(how.partition(" -> ")[0], switch) for parameter, how in functions.items()}
        makes = {parameter: how.partition(" -> ")[2] for parameter, how in functions.items() if " -> " in how}

        @functools.wraps(method)
        def step(*args: object, **options: object) -> object:
            try:
                given = signature.bind(*args, **options).arguments
            except TypeError as error:
                cure = _by_name(method, signature, args) or _in_an_option(method, signature, options)
                raise TypeError(f"{method.__qualname__}(): {error}{cure}") from None
            for parameter, call in wanted.items():
                function = given.get(parameter)
                if parameter in given and not (function is None and signature.parameters[parameter].default is None):
                    keyed = call.with_key is not None and given.get(call.with_key) is True
                    call.check(method.__qualname__, parameter, function, keyed=keyed)
                    _compare_types(method.__qualname__, parameter, call.called_with(keyed=keyed), function, given)
            made = method(*args, **options)
            for parameter, what in makes.items():
                if isinstance(made, HasRecordSerdes) and callable(given.get(parameter)):
                    note_maker(made._record_serdes, cast("Callable[..., object]", given[parameter]), what)
            return made

        return cast("F", step)

    return checked


def _compare_types(
    step: str, parameter: str, arguments: tuple[str, ...], function: object, given: Mapping[str, object]
) -> None:
    grouped = given.get("grouped")
    serdes = cast("HasRecordSerdes", grouped if isinstance(grouped, HasRecordSerdes) else given["self"])._record_serdes
    called = cast("Callable[..., object]", function)
    note_contradiction(serdes.graph, step, called, arguments, argument_types(serdes, called, given))
    note_missing_return(serdes.graph, step, parameter, called)


def _by_name(method: Callable[..., object], signature: inspect.Signature, given: tuple[object, ...]) -> str:
    """The cure for an option that was given by its place."""
    parameters = signature.parameters.values()
    places = [one for one in parameters if one.kind is not one.KEYWORD_ONLY]
    if len(given) <= len(places):
        return ""
    names = [f"{one.name}=" for one in parameters if one.kind is one.KEYWORD_ONLY]
    if names:
        one_of = "one of " if len(names) > 1 else ""
        return f"; the last one is a {type(given[-1]).__name__}: give it by name, as {one_of}{', '.join(names)}"
    if isinstance(given[-1], type):
        for parameter, word, fields in _options(method, signature):
            if "value_serde" in fields:
                return f"; types go into {parameter}={word}(key_serde=..., value_serde=...)"
    return f"; it takes {', '.join(one.name for one in places[1:])}"


def _in_an_option(method: Callable[..., object], signature: inspect.Signature, given: Mapping[str, object]) -> str:
    """The cure for an option that belongs to another step, or into one of the option objects of this one."""
    unknown = next((name for name in given if name not in signature.parameters), "")
    if unknown in _OF_OTHER_JOINS:
        return f"; {_OF_OTHER_JOINS[unknown]}"
    for parameter, word, fields in _options(method, signature):
        if unknown in fields:
            return f"; give it as {parameter}={word}({unknown}=...)"
    return ""


def _options(
    method: Callable[..., object], signature: inspect.Signature
) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    """Yields the parameters of a step that are option objects: their names, their classes, and the fields of these."""
    names: Mapping[str, object] = getattr(method, "__globals__", {})
    for parameter in signature.parameters.values():
        for word in re.findall(r"\w+", str(parameter.annotation)):
            if fields := getattr(names.get(word), "__dataclass_fields__", None):
                yield parameter.name, word, fields


def check_function(step: str, parameter: str, function: object, how: str) -> None:
    """``TypeError`` for what a step, or an option, cannot call as ``how`` says."""
    _call(how, None).check(step, parameter, function)


def check_option(options: object, field: str, how: str) -> None:
    """The same for a field of an option object; ``None`` stands for the default."""
    function = getattr(options, field)
    if function is not None:
        check_function(type(options).__name__, field, function, how)


def _call(how: str, switch: str | None) -> Call:
    rest = how.removeprefix("await ")
    arguments = tuple(one.strip() for one in rest.split(",") if one.strip())
    keyed = arguments[:1] == ("key?",)
    return Call(arguments[1:] if keyed else arguments, rest != how, switch if keyed else None)
