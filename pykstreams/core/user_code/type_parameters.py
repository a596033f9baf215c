"""The types in the place of type variables, of generic types and of classes that derive from them."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Protocol, TypeVar, cast


class _Generic(Protocol):
    def __getitem__(self, parameters: tuple[object, ...], /) -> object: ...


def with_parameters(type_: object, given: Mapping[object, object]) -> object:
    """Returns a type with other types in the place of its type variables."""
    if isinstance(type_, TypeVar):
        return given.get(type_, type_)
    open_ = () if isinstance(type_, type) and not typing.get_args(type_) else getattr(type_, "__parameters__", ())
    return cast("_Generic", type_)[tuple(given.get(one, one) for one in open_)] if open_ else type_


def given_to(base: type, type_: object) -> tuple[object, ...]:
    """Returns the type arguments that a class gives to a generic one that it derives from, through all between them.

    Empty where it derives from another one, or gives it none.
    """
    class_ = typing.get_origin(type_) or type_
    if not isinstance(class_, type) or not issubclass(class_, base):
        return ()
    arguments = typing.get_args(type_)
    if class_ is base:
        return arguments
    mine = dict(zip(getattr(class_, "__parameters__", ()), arguments, strict=False))
    for parent in class_.__dict__.get("__orig_bases__", class_.__bases__):
        if given := given_to(base, parent):
            return tuple(with_parameters(one, mine) for one in given)
    return ()
