"""Serdes that nobody gave: the default of the configuration takes their place when a task is compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from pykstreams.serdes.base import AnySerde

W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class OverDefault:
    """A serde around the default one, which is known only with the configuration.

    ``of_keys``: around the default key serde, also where it serves for values (values that hold a key). ``lacking``
    says why there is no other, where there might have been one: the type that a function returns has none.
    """

    wrap: Callable[[AnySerde], object]
    of_keys: bool = False
    lacking: str | None = None

    @property
    def is_the_default(self) -> bool:
        """Whether nothing is around it: it only says why there is no other."""
        return self.wrap is _itself

    @property
    def serializer(self) -> OverDefault:
        return self

    @property
    def deserializer(self) -> OverDefault:
        return self


SerdeOrDefault: TypeAlias = AnySerde | OverDefault | None
"""A serde, one around the default, or ``None`` for the default itself."""


def or_default(given: object, default: Callable[[], AnySerde]) -> Any:
    """Returns what was given, else the default; ``default()`` raises ``ConfigError`` where none is set."""
    if given is None:
        return default()
    if isinstance(given, OverDefault):
        return given.wrap(default())
    return given


def over_default(serde: SerdeOrDefault, wrap: Callable[[AnySerde], W], *, of_keys: bool = False) -> W | OverDefault:
    """Wraps a serde: now, or by an ``OverDefault`` where the default one is needed for it; ``of_keys`` as there."""
    if serde is not None and not isinstance(serde, OverDefault):
        return wrap(serde)
    return OverDefault(
        lambda default: or_default(wrap(or_default(serde, lambda: default)), lambda: default),
        of_keys,
        None if serde is None else serde.lacking,
    )


def default_for(lacking: str) -> OverDefault:
    """Returns what stands for the default serde where a type has none; ``lacking`` says so."""
    return OverDefault(_itself, lacking=lacking)


def _itself(default: AnySerde) -> AnySerde:
    return default


def default_part(given: object, part: str) -> str:
    """Says which default is meant where ``given`` is used for ``part``, which is ``key`` or ``value``."""
    return "key" if isinstance(given, OverDefault) and given.of_keys else part
