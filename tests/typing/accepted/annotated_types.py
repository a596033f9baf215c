"""Types that say more than Python's, in annotations of functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NewType

from pykstreams import StreamsBuilder
from pykstreams.types import Avro, Int32


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


CustomerId = NewType("CustomerId", str)
SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "cents", "type": "long"}]}


def cents_of(order: Order) -> Int32:
    return order.cents


def customer_of(key: str, order: Order) -> CustomerId:
    return CustomerId(order.customer)


def in_avro(order: Order) -> Annotated[Order, Avro(SCHEMA)]:
    return order


orders = StreamsBuilder().stream("orders", str, Order)
orders.map_values(cents_of).to("cents")
orders.group_by(customer_of).count()
orders.map_values(in_avro).to("orders-in-avro")
