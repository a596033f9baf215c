"""The base of interactive queries."""

from __future__ import annotations

from typing import Generic, TypeVar

R = TypeVar("R")


class Query(Generic[R]):
    """Asks a store for an ``R``; for stores of your own, derive from it."""

    __slots__ = ()
