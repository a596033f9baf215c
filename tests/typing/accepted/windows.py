"""Tumbling, hopping, sliding, session and count windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import assert_type

from pykstreams import (
    CountWindows,
    KStream,
    KTable,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    Windowed,
)


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


def add(customer: str, order: Order, total: Total) -> Total:
    return total.plus(order.cents)


def both(customer: str, one: Total, other: Total) -> Total:
    return one.plus(other.cents)


minute = timedelta(minutes=1)
grouped = StreamsBuilder().stream("orders", str, Order).group_by_key()
assert_type(grouped.windowed_by(TimeWindows(minute)).count(), KTable[Windowed[str], int])
hopping = TimeWindows(minute, advance_by=1000)
assert_type(grouped.windowed_by(hopping).aggregate(Total, add), KTable[Windowed[str], Total])
assert_type(grouped.windowed_by(SlidingWindows(minute)).aggregate(Total, add), KTable[Windowed[str], Total])
assert_type(grouped.windowed_by(SessionWindows(minute)).aggregate(Total, add, both), KTable[Windowed[str], Total])
assert_type(grouped.windowed_by(CountWindows(100)).aggregate(Total, add), KStream[str, Total])
