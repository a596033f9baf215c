"""Serdes among the fields of options: a type may stand for a serde, and is one from then on."""

from __future__ import annotations

import typing
from typing import Generic, TypeAlias, TypeVar, cast, overload

from pykstreams.serdes.base import Serde
from pykstreams.serdes.by_type import SerdeOrType, given_serde, is_like_a_serde

T = TypeVar("T")

AsAnnotated: TypeAlias = typing.Any
"""A field as checkers are to see it in the class: of the type that is written beside it."""


class SerdeField(Generic[T]):
    """A field that is given a serde or a type, and holds the serde; ``TypeError`` for all that has none."""

    def __init__(self, *, is_key: bool) -> None:
        self._is_key = is_key

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> None: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Serde[T] | None: ...
    def __get__(self, instance: object | None, owner: type) -> Serde[T] | None:
        if instance is None:
            return None  # the default of the field
        return cast("Serde[T] | None", instance.__dict__.get(self._name))

    def __set__(self, instance: object, value: SerdeOrType[T] | None) -> None:
        try:
            serde = given_serde(value, is_key=self._is_key)
            if serde is not None and not is_like_a_serde(serde):
                raise TypeError(f"{value!r} is neither a type nor a serde; pass a type, such as str, or a serde")
            instance.__dict__[self._name] = serde
        except TypeError as error:
            raise TypeError(f"{self._name} of {type(instance).__name__}: {error}") from error


def key_serde_field() -> AsAnnotated:
    """A field for the serde of keys; its type is that of the annotation."""
    return SerdeField(is_key=True)


def value_serde_field() -> AsAnnotated:
    """A field for the serde of values."""
    return SerdeField(is_key=False)
