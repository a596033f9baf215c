"""Reducers as aggregators: what has no aggregate yet begins with its first value."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

from pykstreams.core.types import Reducer

V = TypeVar("V")


def from_first(reducer: Reducer[V]) -> Callable[[object, V, V | None], V | None]:
    """Returns ``reducer(aggregate, value)`` as an aggregator; messages speak of the reducer."""

    @functools.wraps(reducer)
    def reduced(key: object, value: V, aggregate: V | None) -> V | None:
        return value if aggregate is None else reducer(aggregate, value)

    return reduced
