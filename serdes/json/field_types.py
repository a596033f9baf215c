"""The types of the fields of dataclasses and ``TypedDict``, evaluated, with the cure where one cannot be."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TypeVar

T = TypeVar("T")


class UnresolvedFieldError(TypeError):
    """A field whose annotation cannot be evaluated; the text names the class and the field."""


def field_types(class_: type) -> Mapping[str, object]:
    """Returns the types of the fields of a class, with what stands in ``Annotated`` and the like.

    Raises ``UnresolvedFieldError`` where one cannot be evaluated.
    """
    return evaluated(class_, lambda: typing.get_type_hints(class_, include_extras=True))


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
