"""Serdes by the annotations of functions: what a step makes has the serde of the type that its function returns.

Only where nobody gave a serde, and Kafka Streams would take the default. A function without annotations, or one that
may return anything, says nothing, and the default stays; one that returns a type without serde says why.
"""

from __future__ import annotations

import collections
import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Final, NamedTuple, TypeVar, cast

from pykstreams.core.processor import FixedKeyProcessor, Processor
from pykstreams.core.record import KeyValue
from pykstreams.core.value_transformer import ValueTransformerWithKey
from pykstreams.serdes.base import describe
from pykstreams.serdes.by_type import ANYTHING, TYPES, type_name
from pykstreams.serdes.defaults import OverDefault, SerdeOrDefault, default_for
from pykstreams.serdes.json.field_types import import_cure, with_parameters
from pykstreams.serdes.json.union_members import members_of, unwrapped

_MANY = (
    collections.abc.Iterable,
    collections.abc.Iterator,
    collections.abc.Generator,
    collections.abc.Collection,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
    collections.abc.Set,
    collections.abc.MutableSet,
    collections.abc.ValuesView,
    collections.deque,
    list,
    set,
    frozenset,
)
_SILENT = (*ANYTHING, typing.Never, typing.NoReturn)
_UNSAID: Final = object()
"""The type of what a function returns that has no annotation."""
_A_PAIR: Final = "tuple[K, V]"
_VALUES: Final = "list[V] or Iterator[V]"
_PAIRS: Final = "list[tuple[K, V]] or Iterator[tuple[K, V]]"


def passed_on(serde: SerdeOrDefault) -> SerdeOrDefault:
    """Returns a serde that stands for a type, for steps that keep the type; ``None``, the default, for any other.

    Kafka Streams forgets serdes in some of these steps (``merge``, named stores), and so do topologies that say them.
    """
    return serde if isinstance(serde, OverDefault) or TYPES.is_made_of_types(serde) else None


def merged(one: SerdeOrDefault, other: SerdeOrDefault) -> SerdeOrDefault:
    """Returns what both sides have, where it stands for a type; else the default."""
    return passed_on(one) if one is other else None


def value_serde(function: Callable[..., object]) -> SerdeOrDefault:
    """The serde of the values that a function returns."""
    return _serde(_returned(function), function, is_key=False)


def awaited_serde(function: Callable[..., object]) -> SerdeOrDefault:
    """The serde of the values that are awaited of a function, a coroutine function or not."""
    returned = _returned(function)
    inner = unwrapped(returned)
    if typing.get_origin(inner) in (collections.abc.Awaitable, collections.abc.Coroutine):
        return _serde(typing.get_args(inner)[-1], function, is_key=False)
    return _serde(returned, function, is_key=False)


def key_serde(function: Callable[..., object]) -> SerdeOrDefault:
    """The serde of the keys that a function returns."""
    return _serde(_returned(function), function, is_key=True)


def values_serde(function: Callable[..., Iterable[object]]) -> SerdeOrDefault:
    """The serde of the values in what a function returns."""
    return _serde(_element(_returned(function), _VALUES), function, is_key=False)


def result_types(function: Callable[..., object]) -> tuple[object, ...]:
    """The types that a function returns, of a union each, without ``None``; none where nothing says it."""
    return _types_in(_returned(function))


def element_types(function: Callable[..., Iterable[object]]) -> tuple[object, ...]:
    """The types of what is in what a function returns."""
    return _types_in(_element(_returned(function), _VALUES))


def _types_in(type_: object) -> tuple[object, ...]:
    members = () if isinstance(type_, _Unresolved) else members_of(_or_object(type_))
    return tuple(one for one in map(unwrapped, members) if one not in (None, types.NoneType))


def pair_serdes(function: Callable[..., object]) -> tuple[SerdeOrDefault, SerdeOrDefault]:
    """The serdes of the key and the value that a function returns as a pair."""
    returned = _returned(function)
    return _pair(returned, function, _Misshapen(returned, _A_PAIR))


def pairs_serdes(function: Callable[..., Iterable[object]]) -> tuple[SerdeOrDefault, SerdeOrDefault]:
    """The serdes of the keys and values in what a function returns."""
    returned = _returned(function)
    return _pair(_element(returned, _PAIRS), function, _Misshapen(returned, _PAIRS))


def returned_type(function: Callable[..., object]) -> object:
    """The type that a function returns, ``object`` where nothing says it; a class returns itself."""
    return _or_object(_returned(function))


class Parameter(NamedTuple):
    """A parameter of a function, with the type that it is annotated with; ``object`` where nothing says it."""

    name: str
    type_: object


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
    return tuple(Parameter(name, _parameter_type(plain, name)) for name in names if name not in by_name)


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


def _parameter_type(function: FunctionType, name: str) -> object:
    return _or_object(_annotation(function, name))


def aggregate_serde(initializer: Callable[[], object], *aggregators: Callable[..., object]) -> SerdeOrDefault:
    """The serde of an aggregate: of what the aggregators return, else of what it begins with."""
    for function in (*aggregators, initializer):
        found = _returned(function)
        if isinstance(found, _Unresolved) or not _says_nothing(found):
            return _serde(found, function, is_key=False)
    first = next(iter((*aggregators, initializer)))
    return _silent(_returned(first), first)


def processor_serdes(supplier: Callable[[], object]) -> tuple[SerdeOrDefault, SerdeOrDefault]:
    """The serdes of what a ``Processor`` forwards, by its last two type arguments."""
    arguments = _arguments(supplier, Processor)
    if len(arguments) != 4:
        lacking = _without_types(supplier, "Processor[str, Order, str, Total]")
        return lacking, lacking
    return _serde(arguments[2], supplier, is_key=True), _serde(arguments[3], supplier, is_key=False)


def fixed_key_processor_serde(supplier: Callable[[], object]) -> SerdeOrDefault:
    """The serde of the values that a ``FixedKeyProcessor`` forwards, by its last type argument."""
    return _last(supplier, FixedKeyProcessor, "FixedKeyProcessor[str, Order, Total]")


def transformer_serde(supplier: Callable[[], object]) -> SerdeOrDefault:
    """The serde of the values that a ``ValueTransformerWithKey`` returns, by its last type argument."""
    return _last(supplier, ValueTransformerWithKey, "ValueTransformerWithKey[str, Order, Total]")


def _last(supplier: Callable[[], object], base: type, example: str) -> SerdeOrDefault:
    arguments = _arguments(supplier, base)
    return _serde(arguments[2], supplier, is_key=False) if len(arguments) == 3 else _without_types(supplier, example)


def _without_types(supplier: Callable[[], object], example: str) -> SerdeOrDefault:
    """The default serde, with the reason why nothing is known of what comes from a processor."""
    made = _returned(supplier)
    if made is _UNSAID or isinstance(made, _Unresolved):
        return _serde(made, supplier, is_key=False)
    told = f"{type_name(made)} does not say the types of what it forwards"
    return default_for(f"{told}; derive it from {example}, with your types, or give a serde")


def _arguments(supplier: Callable[[], object], base: type) -> tuple[object, ...]:
    """The type arguments that what a supplier makes gives to a generic base, empty where they are not known."""
    return _given_to(base, _returned(supplier))


def _given_to(base: type, type_: object) -> tuple[object, ...]:
    """The type arguments that a class gives to a generic one that it derives from, through all that are between."""
    class_ = typing.get_origin(type_) or type_
    if not isinstance(class_, type) or not issubclass(class_, base):
        return ()
    arguments = typing.get_args(type_)
    if class_ is base:
        return arguments
    mine = dict(zip(getattr(class_, "__parameters__", ()), arguments, strict=False))
    for parent in class_.__dict__.get("__orig_bases__", class_.__bases__):
        if given := _given_to(base, parent):
            return tuple(with_parameters(one, mine) for one in given)
    return ()


@dataclass(frozen=True, slots=True)
class _Unresolved:
    """An annotation that cannot be evaluated, as one that names something that cannot be found."""

    annotation: object
    error: Exception

    def __str__(self) -> str:
        if isinstance(self.error, NameError):
            return f"{self.error}; {import_cure(self.error)}, or give a serde"
        return f"{type(self.error).__name__}: {self.error}; correct the annotation, or give a serde"


@dataclass(frozen=True, slots=True)
class _Misshapen:
    """A type that a step cannot have there, with those that it can have."""

    type_: object
    needed: str


def _or_object(type_: object) -> object:
    return object if type_ is _UNSAID or isinstance(type_, _Unresolved | _Misshapen) else type_


def _returned(function: Callable[..., object]) -> object:
    """The type that a function returns, ``_UNSAID`` where nothing says so; a class returns itself."""
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
    if isinstance(found, _Unresolved):
        return found
    variables = getattr(defined_in, "__parameters__", ())
    given = _given_to(defined_in, getattr(owner, "__orig_class__", class_))
    return with_parameters(found, dict(zip(variables, given, strict=False)))


def _written(function: Callable[..., object]) -> Callable[..., object]:
    """The function, or the class, that is written down, of whatever can be called."""
    while (inner := _inside(function)) is not function:
        function = inner
    return function


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
        return _UNSAID  # one that is written in C
    annotation: object = "..."
    try:
        annotation = function.__annotations__.get(name, _UNSAID)  # from Python 3.14 on they are evaluated here
        if annotation is _UNSAID:
            return _UNSAID
        around = SimpleNamespace(__annotations__={name: annotation})
        names = _type_parameters(class_) | _type_parameters(function) | _enclosing(function)
        return typing.get_type_hints(around, function.__globals__, names, include_extras=True)[name]
    except Exception as error:  # an annotation is an expression of the user, and nobody has evaluated it before
        return _Unresolved(annotation, error)


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


def _element(many: object, needed: str) -> object:
    """The type of what is in an annotated collection or generator."""
    if many is _UNSAID or isinstance(many, _Unresolved) or _may_be_anything(many):
        return many
    inner = unwrapped(many)
    origin, arguments = typing.get_origin(inner), typing.get_args(inner)
    if origin is tuple and (len(set(arguments)) == 1 or arguments[1:] == (Ellipsis,)):
        return arguments[0]
    return arguments[0] if arguments and origin in _MANY else _Misshapen(many, needed)


def _pair(
    pair: object, function: Callable[..., object], misshapen: _Misshapen
) -> tuple[SerdeOrDefault, SerdeOrDefault]:
    if pair is _UNSAID or isinstance(pair, _Unresolved | _Misshapen) or _may_be_anything(pair):
        return _serde(pair, function, is_key=True), _serde(pair, function, is_key=False)
    inner = unwrapped(pair)
    arguments = typing.get_args(inner) if typing.get_origin(inner) in (tuple, KeyValue) else ()
    if len(arguments) != 2 or arguments[1] is Ellipsis:
        return _silent(misshapen, function), _silent(misshapen, function)
    return _serde(arguments[0], function, is_key=True), _serde(arguments[1], function, is_key=False)


def _silent(type_: object, function: Callable[..., object]) -> OverDefault:
    """The default serde, with the reason why the annotation of a function says no other."""
    shown = shown_function(function)
    if type_ is _UNSAID:
        if inspect.isfunction(written := _written(function)) and typing.get_overloads(written):
            return default_for(f"only its overloads say what {shown} returns; annotate the function itself, too")
        return default_for(f"no annotation says what {shown} returns")
    cure = "correct the annotation, or give a serde"
    if isinstance(type_, _Misshapen):
        told = f"is annotated to return {_shown_type(type_.type_)}, and {type_.needed} is needed"
        return default_for(f"{shown} {told}; {cure}")
    open_ = ", ".join(map(type_name, getattr(type_, "__parameters__", ())))
    why = f"whose {open_} is not said" if open_ else "which stands for no serde"
    if type_ is function:
        return default_for(f"{_shown_type(type_)} is given, {why}; give a serde")
    return default_for(f"{shown} is annotated to return {_shown_type(type_)}, {why}; {cure}")


def _shown_type(type_: object) -> str:
    return f"[{', '.join(map(_shown_type, type_))}]" if isinstance(type_, list) else type_name(type_).replace("~", "")


def shown_function(function: Callable[..., object]) -> str:
    """The name of a function, and the line where it is written."""
    written = _written(function)
    if not inspect.isfunction(written):  # one that is written in C, or a class
        return describe(written)
    code = written.__code__
    return f"{written.__name__} ({Path(code.co_filename).name}:{code.co_firstlineno})"


def _says_nothing(type_: object) -> bool:
    return type_ is _UNSAID or _may_be_anything(type_) or bool(getattr(type_, "__parameters__", ()))


def _may_be_anything(type_: object) -> bool:
    return type_ in _SILENT or isinstance(type_, TypeVar)


def _serde(type_: object, function: Callable[..., object], *, is_key: bool) -> SerdeOrDefault:
    shown = shown_function(function)
    if isinstance(type_, _Unresolved):
        return default_for(f"{shown} is annotated with {type_.annotation!r}, and {type_}")
    if isinstance(type_, _Misshapen) or _says_nothing(type_):
        return _silent(type_, function)
    if isinstance(type_, list):
        return default_for(
            f"{shown} is annotated to return {_shown_type(type_)}, which is no type; correct the annotation, as list"
            f"{_shown_type(type_)}, or give a serde"
        )
    try:
        return TYPES.serde(cast("type[object]", type_), is_key=is_key)
    except TypeError as error:
        return default_for(f"{shown} is {'given' if type_ is _written(function) else 'annotated'}, but {error}")
