"""The types of the fields of dataclasses and ``TypedDict``, evaluated, with the cure where one cannot be."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Generic, Protocol, TypeVar, cast

from pykstreams.core.user_code.type_parameters import with_parameters

T = TypeVar("T")


class UnresolvedFieldError(TypeError):
    """A field whose annotation cannot be evaluated; the text names the class and the field."""


def dataclass_of(type_: object) -> type | None:
    """Returns the class of a dataclass, also of a generic one with its types, ``Box[Order]``; ``None`` of others."""
    class_ = typing.get_origin(type_) or type_
    return class_ if isinstance(class_, type) and dataclasses.is_dataclass(class_) else None


def typed_dict_of(type_: object) -> type | None:
    """Returns the class of a ``TypedDict``, also of a generic one with its types; ``None`` of others."""
    class_ = typing.get_origin(type_) or type_
    return class_ if isinstance(class_, type) and typing.is_typeddict(class_) else None


def field_types(type_: object) -> Mapping[str, object]:
    """Returns the types of the fields of a class, with what stands in ``Annotated`` and the like.

    In the place of type variables are the types that are given to a generic class, or to those that it derives from.
    Raises ``UnresolvedFieldError`` where a field cannot be evaluated.
    """
    class_ = cast("type", typing.get_origin(type_) or type_)
    hints = evaluated(class_, lambda: typing.get_type_hints(class_, include_extras=True))
    given = _given(type_, {})
    return {name: with_parameters(hint, given.get(name, {})) for name, hint in hints.items()}


def _given(type_: object, outer: Mapping[object, object]) -> dict[str, Mapping[object, object]]:
    """The types that stand for type variables in each field: those that are given to the class that defines it."""
    class_ = typing.get_origin(type_) or type_
    if not isinstance(class_, type) or class_ in (object, Generic, Protocol):
        return {}
    arguments = [with_parameters(one, outer) for one in typing.get_args(type_)]
    mine = dict(zip(getattr(class_, "__parameters__", ()), arguments, strict=False))
    found: dict[str, Mapping[object, object]] = {}
    for base in reversed(class_.__dict__.get("__orig_bases__", class_.__bases__)):
        found |= _given(base, mine)
    own = [name for name in _annotations(class_) if not (typing.is_typeddict(class_) and name in found)]  # it has all
    return found | dict.fromkeys(own, mine)


def evaluated(class_: type, evaluate: Callable[[], T]) -> T:
    """Returns what a function makes of the annotations of a class.

    Raises ``UnresolvedFieldError`` with the field whose annotation it cannot evaluate.
    """
    try:
        return evaluate()
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        raise UnresolvedFieldError(_told(class_, error)) from error


def import_cure(error: NameError) -> str:
    """Returns what to do when an annotation names something that is not there when it is evaluated."""
    return f"import {error.name} at run time, not under TYPE_CHECKING, or move it to the level of a module"


def _told(class_: type, error: Exception) -> str:
    cure = import_cure(error) if isinstance(error, NameError) else "correct the annotation"
    for owner in class_.__mro__:
        for name, annotation in _annotations(owner).items():
            if isinstance(annotation, str | typing.ForwardRef) and not _can_be_evaluated(owner, name, annotation):
                text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
                return f"field {owner.__name__}.{name} is annotated with {text!r}, and {error}; {cure}"
    return f"a field of {class_.__name__} cannot be evaluated: {error}; {cure}"


def _annotations(class_: type) -> Mapping[str, object]:
    try:
        return inspect.get_annotations(class_)
    except NameError:  # from Python 3.14 on they are evaluated here
        return {}


def _can_be_evaluated(owner: type, name: str, annotation: object) -> bool:
    around = SimpleNamespace(__annotations__={name: annotation})
    try:
        typing.get_type_hints(around, vars(sys.modules[owner.__module__]), dict(vars(owner)))
    except (NameError, AttributeError, SyntaxError, TypeError):
        return False
    return True
