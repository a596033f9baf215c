"""A serde of totals is registered for orders."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import types
from pykstreams.serdes import JsonSerde


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


# error: misc of mypy, reportArgumentType of pyright
types.register(Order, JsonSerde(Total))
