"""Parameters of users' functions whose annotated types no argument can have that a step calls them with.

Python does not enforce annotations, so that a program may be right whose annotations are wrong: it is warned of, and
not refused. Invariant: nothing is said unless both sides are known classes, and no class that there is derives from
both. Numbers of all kinds stand for each other, and so do kinds of bytes.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from numbers import Number
from typing import Final, NamedTuple, TypeAlias, cast

from pykstreams.core.user_code.annotations import parameters_of, returned_type
from pykstreams.dsl.annotations.inference import shown_function
from pykstreams.dsl.record_serdes import HasRecordSerdes, RecordSerdes
from pykstreams.serdes.by_type import ANYTHING, TYPES, type_name
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.serdes.json.union_members import members_of, unwrapped
from pykstreams.topology.contradiction import Contradiction
from pykstreams.topology.graph import Graph

_ALIKE: Final = ((Number,), (bytes, bytearray, memoryview))
"""Classes whose values take each other's place, as type checkers let them."""


class KnownType(NamedTuple):
    """A type that is known of an argument, and how it is written in a message."""

    type_: object
    name: str


ArgumentTypes: TypeAlias = Mapping[str, KnownType]
"""The types of arguments, as far as they are known, by what these are: ``key``, ``value``."""


def argument_types(serdes: RecordSerdes, function: Callable[..., object], given: Mapping[str, object]) -> ArgumentTypes:
    """Returns the types of all that a step may call a function with.

    :param given: all that the step itself was given, by the names of its parameters.
    """
    found = {"key": _of_serde(serdes.key_serde), "value": _of_serde(serdes.value_serde)}
    found["new"] = found["old"] = found["value"]
    other = given.get("other")
    if isinstance(other, HasRecordSerdes):
        found["other key"] = _of_serde(other._record_serdes.key_serde)
        found["other value"] = _of_serde(other._record_serdes.value_serde)
    found["aggregate"] = _of_aggregate(function, given) if _aggregates(given) else found["value"]
    found["other"] = found["aggregate"]
    return {argument: known for argument, known in found.items() if known is not None}


def aggregate_types(initializer: Callable[[], object]) -> ArgumentTypes:
    """Returns the type of aggregates by what they begin with."""
    known = _of_returned(initializer)
    return {} if known is None else {"aggregate": known}


def note_contradiction(
    graph: Graph, step: str, function: Callable[..., object], arguments: tuple[str, ...], known: ArgumentTypes
) -> None:
    """Notes in the graph that a function cannot take what a step calls it with, if that is so.

    :param arguments: what it is called with.
    """
    parameters = parameters_of(function)
    wrong = any(
        argument in known and exclude(known[argument].type_, parameter.type_)
        for argument, parameter in zip(arguments, parameters, strict=False)
    )
    if not wrong:
        return
    called = (f"{one}: {known[one].name}" if one in known else one for one in arguments)
    taken = (name if type_ is object else f"{name}: {type_name(type_)}" for name, type_ in parameters)
    said = f"is called with ({', '.join(called)}), and annotated to take ({', '.join(taken)})"
    cure = "put its parameters into the order of the call, or correct their annotations"
    graph.contradictions.append(Contradiction(step, f"{shown_function(function)} {said}", cure))


def exclude(one: object, other: object) -> bool:
    """Whether no value is of both types."""
    ones, others = _classes(one), _classes(other)
    return bool(ones and others) and all(_are_apart(mine, its) for mine in ones or () for its in others or ())


def _aggregates(given: Mapping[str, object]) -> bool:
    """Whether a step makes something else of values than a value."""
    return "initializer" in given or "aggregator" in given


def _of_aggregate(function: Callable[..., object], given: Mapping[str, object]) -> KnownType | None:
    known = _of_serde(getattr(given.get("materialized"), "value_serde", None))
    for one in (given.get("initializer"), given.get("returns"), function):
        if known is None and callable(one):
            known = _of_returned(one)
    return known


def _of_returned(function: Callable[..., object]) -> KnownType | None:
    type_ = returned_type(function)
    return None if _classes(type_) is None else KnownType(type_, type_name(type_))


def _of_serde(serde: SerdeOrDefault) -> KnownType | None:
    type_ = TYPES.type_of(serde)
    return None if _classes(type_) is None else KnownType(type_, TYPES.name_of(serde))


def _classes(type_: object) -> frozenset[type] | None:
    """The classes of the values of a type, but for ``None``; ``None`` where they may be of any."""
    found: set[type] = set()
    for member in map(unwrapped, members_of(type_)):
        if member is None or member is types.NoneType:
            continue
        origin = typing.get_origin(member) or member
        if origin is typing.Literal:
            found.update(type(value) for value in typing.get_args(member))
        elif typing.is_typeddict(origin):
            found.add(dict)
        elif isinstance(origin, type) and _is_concrete(origin):
            found.add(origin)
        else:
            return None
    return frozenset(found) or None


def _is_concrete(class_: type) -> bool:
    """Whether a class has values of its own: it does not stand for anything, is no protocol, and not abstract."""
    return class_ not in ANYTHING and not getattr(class_, "_is_protocol", False) and not inspect.isabstract(class_)


def _are_apart(one: type, other: type) -> bool:
    if any(issubclass(one, kinds) and issubclass(other, kinds) for kinds in _ALIKE):
        return False
    return not issubclass(other, one) and not any(issubclass(child, other) for child in _descendants(one))


def _descendants(class_: type) -> Iterator[type]:
    """A class, and all that derive from it."""
    yield class_
    for child in cast("list[type]", type.__subclasses__(class_)):
        yield from _descendants(child)
