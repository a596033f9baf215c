"""Serdes by the annotations of functions: what a step makes has the serde of the type that its function returns.

Only where nobody gave a serde, and Kafka Streams would take the default. A function without annotations, or one that
may return anything, says nothing, and the default stays; one that returns a type without serde says why.
"""

from __future__ import annotations

import collections
import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar, cast

from pykstreams.core.processor import FixedKeyProcessor, Processor
from pykstreams.core.record import KeyValue
from pykstreams.core.user_code.annotations import NOT_ANNOTATED, Unresolved, returned_annotation, written_function
from pykstreams.core.user_code.type_parameters import given_to
from pykstreams.core.value_transformer import ValueTransformerWithKey
from pykstreams.serdes.base import describe
from pykstreams.serdes.by_type import ANYTHING, TYPES, type_name
from pykstreams.serdes.defaults import OverDefault, SerdeOrDefault, default_for
from pykstreams.serdes.json.field_types import import_cure
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
    return _serde(returned_annotation(function), function, is_key=False)


def awaited_serde(function: Callable[..., object]) -> SerdeOrDefault:
    """The serde of the values that are awaited of a function, a coroutine function or not."""
    returned = returned_annotation(function)
    inner = unwrapped(returned)
    if typing.get_origin(inner) in (collections.abc.Awaitable, collections.abc.Coroutine):
        return _serde(typing.get_args(inner)[-1], function, is_key=False)
    return _serde(returned, function, is_key=False)


def key_serde(function: Callable[..., object]) -> SerdeOrDefault:
    """The serde of the keys that a function returns."""
    return _serde(returned_annotation(function), function, is_key=True)


def values_serde(function: Callable[..., Iterable[object]]) -> SerdeOrDefault:
    """The serde of the values in what a function returns."""
    return _serde(_element(returned_annotation(function), _VALUES), function, is_key=False)


def result_types(function: Callable[..., object]) -> tuple[object, ...]:
    """The types that a function returns, of a union each, without ``None``; none where nothing says it."""
    return _types_in(returned_annotation(function))


def element_types(function: Callable[..., Iterable[object]]) -> tuple[object, ...]:
    """The types of what is in what a function returns."""
    return _types_in(_element(returned_annotation(function), _VALUES))


def _types_in(type_: object) -> tuple[object, ...]:
    if isinstance(type_, Unresolved):
        return ()
    said_nothing = type_ is NOT_ANNOTATED or isinstance(type_, _Misshapen)
    members = members_of(object if said_nothing else type_)
    return tuple(one for one in map(unwrapped, members) if one not in (None, types.NoneType))


def pair_serdes(function: Callable[..., object]) -> tuple[SerdeOrDefault, SerdeOrDefault]:
    """The serdes of the key and the value that a function returns as a pair."""
    returned = returned_annotation(function)
    return _pair(returned, function, _Misshapen(returned, _A_PAIR))


def pairs_serdes(function: Callable[..., Iterable[object]]) -> tuple[SerdeOrDefault, SerdeOrDefault]:
    """The serdes of the keys and values in what a function returns."""
    returned = returned_annotation(function)
    return _pair(_element(returned, _PAIRS), function, _Misshapen(returned, _PAIRS))


def aggregate_serde(initializer: Callable[[], object], *aggregators: Callable[..., object]) -> SerdeOrDefault:
    """The serde of an aggregate: of what the aggregators return, else of what it begins with."""
    for function in (*aggregators, initializer):
        found = returned_annotation(function)
        if isinstance(found, Unresolved) or not _says_nothing(found):
            return _serde(found, function, is_key=False)
    first = next(iter((*aggregators, initializer)))
    return _silent(returned_annotation(first), first)


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
    made = returned_annotation(supplier)
    if made is NOT_ANNOTATED or isinstance(made, Unresolved):
        return _serde(made, supplier, is_key=False)
    told = f"{type_name(made)} does not say the types of what it forwards"
    return default_for(f"{told}; derive it from {example}, with your types, or give a serde")


def _arguments(supplier: Callable[[], object], base: type) -> tuple[object, ...]:
    """The type arguments that what a supplier makes gives to a generic base, empty where they are not known."""
    return given_to(base, returned_annotation(supplier))


def _fault_of(annotation: Unresolved) -> str:
    """The reason why an annotation cannot be evaluated, with the cure."""
    error = annotation.error
    if isinstance(error, NameError):
        return f"{error}; {import_cure(error)}, or give a serde"
    return f"{type(error).__name__}: {error}; correct the annotation, or give a serde"


@dataclass(frozen=True, slots=True)
class _Misshapen:
    """A type that a step cannot have there, with those that it can have."""

    type_: object
    needed: str


def _element(many: object, needed: str) -> object:
    """The type of what is in an annotated collection or generator."""
    if many is NOT_ANNOTATED or isinstance(many, Unresolved) or _may_be_anything(many):
        return many
    inner = unwrapped(many)
    origin, arguments = typing.get_origin(inner), typing.get_args(inner)
    if origin is tuple and (len(set(arguments)) == 1 or arguments[1:] == (Ellipsis,)):
        return arguments[0]
    return arguments[0] if arguments and origin in _MANY else _Misshapen(many, needed)


def _pair(
    pair: object, function: Callable[..., object], misshapen: _Misshapen
) -> tuple[SerdeOrDefault, SerdeOrDefault]:
    if pair is NOT_ANNOTATED or isinstance(pair, Unresolved | _Misshapen) or _may_be_anything(pair):
        return _serde(pair, function, is_key=True), _serde(pair, function, is_key=False)
    inner = unwrapped(pair)
    arguments = typing.get_args(inner) if typing.get_origin(inner) in (tuple, KeyValue) else ()
    if len(arguments) != 2 or arguments[1] is Ellipsis:
        return _silent(misshapen, function), _silent(misshapen, function)
    return _serde(arguments[0], function, is_key=True), _serde(arguments[1], function, is_key=False)


def _silent(type_: object, function: Callable[..., object]) -> OverDefault:
    """The default serde, with the reason why the annotation of a function says no other."""
    shown = shown_function(function)
    if type_ is NOT_ANNOTATED:
        if inspect.isfunction(written := written_function(function)) and typing.get_overloads(written):
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
    written = written_function(function)
    if not inspect.isfunction(written):  # one that is written in C, or a class
        return describe(written)
    code = written.__code__
    return f"{written.__name__} ({Path(code.co_filename).name}:{code.co_firstlineno})"


def _says_nothing(type_: object) -> bool:
    return type_ is NOT_ANNOTATED or _may_be_anything(type_) or bool(getattr(type_, "__parameters__", ()))


def _may_be_anything(type_: object) -> bool:
    return type_ in _SILENT or isinstance(type_, TypeVar)


def _serde(type_: object, function: Callable[..., object], *, is_key: bool) -> SerdeOrDefault:
    shown = shown_function(function)
    if isinstance(type_, Unresolved):
        return default_for(f"{shown} is annotated with {type_.annotation!r}, and {_fault_of(type_)}")
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
        return default_for(f"{shown} is {'given' if type_ is written_function(function) else 'annotated'}, but {error}")
