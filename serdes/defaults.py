"""Serdes that nobody gave: the default of the configuration takes their place when a task is compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pykstreams.serdes.base import Serde


@dataclass(frozen=True, slots=True)
class OverDefault:
    """A serde around the default one, which is known only with the configuration.

    ``of_keys``: around the default key serde, also where it serves for values (values that hold a key).
    """

    wrap: Callable[[Serde[Any]], Serde[Any]]
    of_keys: bool = False

    @property
    def serializer(self) -> OverDefault:
        return self

    @property
    def deserializer(self) -> OverDefault:
        return self


def or_default(given: Any, default: Callable[[], Serde[Any]]) -> Any:
    """Returns what was given, else the default; ``default()`` raises ``ConfigError`` where none is set."""
    if given is None:
        return default()
    if isinstance(given, OverDefault):
        return given.wrap(default())
    return given


def default_part(given: object, part: str) -> str:
    """Says which default is meant where ``given`` is used for ``part``, which is ``key`` or ``value``."""
    return "key" if isinstance(given, OverDefault) and given.of_keys else part
