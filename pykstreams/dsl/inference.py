"""Serdes by the annotations of functions: what a step makes has the serde of the type that its function returns.

Only where nobody gave a serde, and Kafka Streams would take the default. A function without annotations, or one that
may return anything, says nothing, and the default stays; one that returns a type without serde says why.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import NamedTuple, TypeVar, cast

from pykstreams.core.processor import FixedKeyProcessor, Processor
from pykstreams.core.record import KeyValue
from pykstreams.core.value_transformer import ValueTransformerWithKey
from pykstreams.serdes.base import describe
from pykstreams.serdes.by_type import ANYTHING, TYPES
from pykstreams.serdes.defaults import OverDefault, SerdeOrDefault, default_for
from pykstreams.serdes.json.union_members import members_of, unwrapped

_MANY = (
    collections.abc.Iterable,
    collections.abc.Iterator,
    collections.abc.Generator,
    collections.abc.Collection,
    collections.abc.Sequence,
    list,
    set,
    frozenset,
)
_SILENT = (*ANYTHING, typing.Never, typing.NoReturn)


def passed_on(serde: SerdeOrDefault) -> SerdeOrDefault:
    """Returns a serde that stands for a type, for steps that keep the type; ``None``, the default, for any other.

    Kafka Streams forgets serdes in some of these steps (``merge``, named stores), and so do topologies that say them.
    """
    return serde if isinstance(serde, OverDefault) or TYPES.is_made_of_types(serde) else None


def merged(one: SerdeOrDefault, other: SerdeOrDefault) -> SerdeOrDefault:
    """Returns what both sides have, where it stands for a type; else the default."""
    return passed_on(one) if one is other else None


def value_serde(function: Callable[..., object]) -> SerdeOrDefault:
    """The serde of the values that a function returns, once it has been awaited if it is a coroutine function."""
    return _serde(_returned(function), function, is_key=False)


def key_serde(function: Callable[..., object]) -> SerdeOrDefault:
    """The serde of the keys that a function returns."""
    return _serde(_returned(function), function, is_key=True)


def values_serde(function: Callable[..., Iterable[object]]) -> SerdeOrDefault:
    """The serde of the values in what a function returns."""
    return _serde(_element(_returned(function)), function, is_key=False)


def result_types(function: Callable[..., object]) -> tuple[object, ...]:
    """The types that a function returns, of a union each, without ``None``; none where nothing says it."""
    return _types_in(_returned(function))


def element_types(function: Callable[..., Iterable[object]]) -> tuple[object, ...]:
    """The types of what is in what a function returns."""
    return _types_in(_element(_returned(function)))


def _types_in(type_: object) -> tuple[object, ...]:
    members = () if isinstance(type_, _Unresolved) else members_of(type_)
    return tuple(one for one in map(unwrapped, members) if one not in (None, types.NoneType))


def pair_serdes(function: Callable[..., object]) -> tuple[SerdeOrDefault, SerdeOrDefault]:
    """The serdes of the key and the value that a function returns as a pair."""
    return _pair(_returned(function), function)


def pairs_serdes(function: Callable[..., Iterable[object]]) -> tuple[SerdeOrDefault, SerdeOrDefault]:
    """The serdes of the keys and values in what a function returns."""
    return _pair(_element(_returned(function)), function)


def returned_type(function: Callable[..., object]) -> object:
    """The type that a function returns, ``object`` where nothing says it; a class returns itself."""
    found = _returned(function)
    return object if isinstance(found, _Unresolved) else found


class Parameter(NamedTuple):
    """A parameter of a function, with the type that it is annotated with; ``object`` where nothing says it."""

    name: str
    type_: object


def parameters_of(function: Callable[..., object]) -> tuple[Parameter, ...]:
    """The parameters of a function that take what it is called with by place, but for ``*args``.

    None of a class, which may convert what it is given, and of a function that a decorator has made, since the
    annotations that it shows are those of another one.
    """
    given: tuple[object, ...] = ()
    by_name: set[str] = set()
    while isinstance(function, functools.partial):
        given, by_name = (*given, *function.args), by_name | function.keywords.keys()
        function = function.func
    if isinstance(function, type):
        return ()
    plain = _plain(function)
    if not inspect.isfunction(plain) or hasattr(plain, "__wrapped__") or hasattr(plain, "__no_type_check__"):
        return ()
    bound = len(given) + (plain is not function)
    code = plain.__code__
    names = code.co_varnames[: code.co_argcount][bound:]
    return tuple(Parameter(name, _parameter_type(plain, name)) for name in names if name not in by_name)


def _parameter_type(function: FunctionType, name: str) -> object:
    try:
        found = _annotation(function, name)
    except Exception:  # an annotation is an expression of the user, and nobody has evaluated it before
        return object
    return object if isinstance(found, _Unresolved) else found


def aggregate_serde(initializer: Callable[[], object], *aggregators: Callable[..., object]) -> SerdeOrDefault:
    """The serde of an aggregate: of what the aggregators return, else of what it begins with."""
    for function in (*aggregators, initializer):
        found = _returned(function)
        if isinstance(found, _Unresolved) or not _says_nothing(found):
            return _serde(found, function, is_key=False)
    return None


def processor_serdes(supplier: Callable[[], object]) -> tuple[SerdeOrDefault, SerdeOrDefault]:
    """The serdes of what a ``Processor`` forwards, by its last two type arguments."""
    arguments = _arguments(supplier, Processor)
    if len(arguments) != 4:
        return None, None
    return _serde(arguments[2], supplier, is_key=True), _serde(arguments[3], supplier, is_key=False)


def fixed_key_processor_serde(supplier: Callable[[], object]) -> SerdeOrDefault:
    """The serde of the values that a ``FixedKeyProcessor`` forwards, by its last type argument."""
    return _last(supplier, FixedKeyProcessor)


def transformer_serde(supplier: Callable[[], object]) -> SerdeOrDefault:
    """The serde of the values that a ``ValueTransformerWithKey`` returns, by its last type argument."""
    return _last(supplier, ValueTransformerWithKey)


def _last(supplier: Callable[[], object], base: type) -> SerdeOrDefault:
    arguments = _arguments(supplier, base)
    return _serde(arguments[2], supplier, is_key=False) if len(arguments) == 3 else None


def _arguments(supplier: Callable[[], object], base: type) -> tuple[object, ...]:
    """The type arguments that what a supplier makes gives to a generic base, empty where they are not known."""
    made = _returned(supplier)
    origin = typing.get_origin(made) or made
    if not isinstance(origin, type) or not issubclass(origin, base):
        return ()
    if typing.get_origin(made) is not None:
        return typing.get_args(made)
    for one in origin.__mro__:
        for parent in one.__dict__.get("__orig_bases__", ()):
            parent_class = typing.get_origin(parent)
            if isinstance(parent_class, type) and issubclass(parent_class, base):
                return typing.get_args(parent)
    return ()


@dataclass(frozen=True, slots=True)
class _Unresolved:
    """An annotation that names something that cannot be found."""

    annotation: object
    error: NameError


def _returned(function: Callable[..., object]) -> object:
    """The type that a function returns, ``object`` where nothing says so; a class returns itself."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type) or typing.get_origin(function) is not None:
        return function
    return _annotation(inspect.unwrap(_plain(function)))


def _plain(function: Callable[..., object]) -> Callable[..., object]:
    """The function in which a method, or an object that can be called, is written down."""
    if inspect.isfunction(function):
        return function
    if inspect.ismethod(function):
        return function.__func__
    return type(function).__call__


def _annotation(function: Callable[..., object], name: str = "return") -> object:
    if not inspect.isfunction(function):
        return object  # one that is written in C
    try:
        annotation = function.__annotations__.get(name, object)
    except NameError as error:  # from Python 3.14 on they are evaluated here
        return _Unresolved("...", error)
    around = SimpleNamespace(__annotations__={name: annotation})
    try:
        return typing.get_type_hints(around, function.__globals__, _enclosing(function), include_extras=True)[name]
    except NameError as error:
        return _Unresolved(annotation, error)


def _enclosing(function: FunctionType) -> dict[str, object]:
    """The names of the functions around a function, as far as it uses them, and have values."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def _element(many: object) -> object:
    """The type of what is in an annotated collection or generator; ``object`` where it does not say."""
    if isinstance(many, _Unresolved):
        return many
    origin, arguments = typing.get_origin(many), typing.get_args(many)
    if origin is tuple and (len(set(arguments)) == 1 or arguments[1:] == (Ellipsis,)):
        return arguments[0]
    return arguments[0] if arguments and origin in _MANY else object


def _pair(pair: object, function: Callable[..., object]) -> tuple[SerdeOrDefault, SerdeOrDefault]:
    arguments = typing.get_args(pair) if typing.get_origin(pair) in (tuple, KeyValue) else (pair, pair)
    if len(arguments) != 2 or arguments[1] is Ellipsis or (arguments[0] is pair and not isinstance(pair, _Unresolved)):
        return _silent(function), _silent(function)
    return _serde(arguments[0], function, is_key=True), _serde(arguments[1], function, is_key=False)


def _silent(function: Callable[..., object]) -> OverDefault:
    return default_for(f"no annotation says what {shown_function(function)} returns")


def shown_function(function: Callable[..., object]) -> str:
    """The name of a function, and the line where it is written."""
    while isinstance(function, functools.partial):
        function = function.func
    plain = inspect.unwrap(_plain(function))
    if not inspect.isfunction(plain):  # one that is written in C
        return describe(function)
    code = plain.__code__
    return f"{plain.__name__} ({Path(code.co_filename).name}:{code.co_firstlineno})"


def _says_nothing(type_: object) -> bool:
    return type_ in _SILENT or isinstance(type_, TypeVar) or bool(getattr(type_, "__parameters__", ()))


def _serde(type_: object, function: Callable[..., object], *, is_key: bool) -> SerdeOrDefault:
    if isinstance(type_, _Unresolved):
        return default_for(f"{describe(function)} is annotated with {type_.annotation!r}, and {type_.error}")
    if _says_nothing(type_):
        return _silent(function)
    try:
        return TYPES.serde(cast("type[object]", type_), is_key=is_key)
    except TypeError as error:
        return default_for(f"{describe(function)} is annotated, but {error}")
