"""The types that users' functions are annotated with, read where somebody asks for them.

Invariant: no function is refused for its annotations; one that cannot be evaluated is an ``Unresolved``.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, SimpleNamespace
from typing import Final, NamedTuple, cast

from pykstreams.core.user_code.type_parameters import given_to, with_parameters

NOT_ANNOTATED: Final = object()
"""The type of what a function returns that has no annotation."""


@dataclass(frozen=True, slots=True)
class Unresolved:
    """An annotation that cannot be evaluated, as one that names something that cannot be found."""

    annotation: object
    error: Exception


class Parameter(NamedTuple):
    """A parameter of a function, with the type that it is annotated with; ``object`` where nothing says it."""

    name: str
    type_: object


def returned_type(function: Callable[..., object]) -> object:
    """The type that a function returns, ``object`` where nothing says it; a class returns itself."""
    return _or_object(returned_annotation(function))


def returned_annotation(function: Callable[..., object]) -> object:
    """The type that a function returns, or an ``Unresolved``; ``NOT_ANNOTATED`` where nothing says it.

    A class returns itself.
    """
    owner: object = None
    written = function
    while (inner := _inside(written)) is not written:
        if inspect.ismethod(written):
            owner = written.__self__
        elif not inspect.isfunction(written) and inner is _plain(written):
            owner = written  # an object that can be called
        written = inner
    if isinstance(written, type) or typing.get_origin(written) is not None:
        return written
    return _annotation(written) if owner is None else _returned_by_method(written, owner)


def parameters_of(function: Callable[..., object]) -> tuple[Parameter, ...]:
    """The parameters of a function that take what it is called with by place, but for ``*args``; see
    ``plain_function`` for what has none.
    """
    given: tuple[object, ...] = ()
    by_name: set[str] = set()
    while isinstance(function, functools.partial):
        given, by_name = (*given, *function.args), by_name | function.keywords.keys()
        function = function.func
    plain = plain_function(function)
    if plain is None:
        return ()
    bound = len(given) + (plain is not function)
    code = plain.__code__
    names = code.co_varnames[: code.co_argcount][bound:]
    return tuple(Parameter(name, _or_object(_annotation(plain, name))) for name in names if name not in by_name)


def plain_function(function: Callable[..., object]) -> FunctionType | None:
    """The function whose code runs, and whose annotations are its own; ``None`` of a class, and of what is decorated.

    A class may convert what it is given, and the annotations that a decorated function shows are those of another one.
    """
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        return None
    plain = _plain(function)
    if not inspect.isfunction(plain) or hasattr(plain, "__wrapped__") or hasattr(plain, "__no_type_check__"):
        return None
    return plain


def written_function(function: Callable[..., object]) -> Callable[..., object]:
    """The function, or the class, that is written down, of whatever can be called."""
    while (inner := _inside(function)) is not function:
        function = inner
    return function


def _returned_by_method(method: Callable[..., object], owner: object) -> object:
    """The type that a method of an object, or of a class, returns: that class for ``Self``, and in the place of the
    variables of a generic class the types that are given to it.
    """
    class_ = owner if isinstance(owner, type) else type(owner)
    name = getattr(method, "__name__", "")
    defined_in = next((one for one in class_.__mro__ if name in vars(one)), class_)
    found = _annotation(method, class_=defined_in)
    if found is typing.Self:
        return class_
    if isinstance(found, Unresolved):
        return found
    variables = getattr(defined_in, "__parameters__", ())
    given = given_to(defined_in, getattr(owner, "__orig_class__", class_))
    return with_parameters(found, dict(zip(variables, given, strict=False)))


def _inside(function: Callable[..., object]) -> Callable[..., object]:
    """The function inside of one that a decorator or ``partial`` has made, of a method, or of an object.

    Of any other the function itself, also of one that is written in C.
    """
    if isinstance(function, functools.partial):
        return function.func
    if isinstance(function, type) or typing.get_origin(function) is not None:
        return function
    if (inner := cast("Callable[..., object]", inspect.unwrap(function))) is not function:
        return inner  # of ``functools.wraps``, ``cache`` and the like
    plain = _plain(function)
    return plain if inspect.isfunction(plain) or hasattr(plain, "__wrapped__") else function


def _plain(function: Callable[..., object]) -> Callable[..., object]:
    """The function in which a method, or an object that can be called, is written down."""
    if inspect.isfunction(function):
        return function
    if inspect.ismethod(function):
        return function.__func__
    return type(function).__call__


def _annotation(function: Callable[..., object], name: str = "return", class_: type | None = None) -> object:
    if not inspect.isfunction(function):
        return NOT_ANNOTATED  # one that is written in C
    annotation: object = "..."
    try:
        annotation = function.__annotations__.get(name, NOT_ANNOTATED)  # from Python 3.14 on they are evaluated here
        if annotation is NOT_ANNOTATED:
            return NOT_ANNOTATED
        around = SimpleNamespace(__annotations__={name: annotation})
        names = _type_parameters(class_) | _type_parameters(function) | _enclosing(function)
        return typing.get_type_hints(around, function.__globals__, names, include_extras=True)[name]
    except Exception as error:  # an annotation is an expression of the user, and nobody has evaluated it before
        return Unresolved(annotation, error)


def _type_parameters(generic: object) -> dict[str, object]:
    """The parameters in ``def function[T]`` or ``class Name[T]``, which no module has."""
    return {one.__name__: one for one in getattr(generic, "__type_params__", ())}


def _enclosing(function: FunctionType) -> dict[str, object]:
    """The names of the functions around a function, as far as it uses them, and have values."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def _or_object(annotation: object) -> object:
    return object if annotation is NOT_ANNOTATED or isinstance(annotation, Unresolved) else annotation
