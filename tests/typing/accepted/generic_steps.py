"""A step of one's own for streams of any type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, assert_type

from pykstreams import KStream, StreamsBuilder


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


K = TypeVar("K")
V = TypeVar("V")
W = TypeVar("W")


def mapped_where(stream: KStream[K, V], wanted: Callable[[K, V], bool], change: Callable[[V], W]) -> KStream[K, W]:
    return stream.filter(wanted).map_values(change)


def cents_of(order: Order) -> int:
    return order.cents


orders = StreamsBuilder().stream("orders", str, Order)
assert_type(mapped_where(orders, lambda key, order: order.cents > 5, cents_of), KStream[str, int])
