"""Three streams of a shop, under the numbers of its customers."""

from dataclasses import dataclass, field

from pykstreams import Materialized, Serdes, StreamsBuilder
from pykstreams.serdes import JsonSerde

__all__ = ["JsonSerde", "Materialized", "Serdes"]


@dataclass
class Item:
    name: str


@dataclass
class Customer:
    cart: list[Item] = field(default_factory=list)
    purchases: list[Item] = field(default_factory=list)
    wishes: list[Item] = field(default_factory=list)


def to_purchases(number: int, item: Item, customer: Customer) -> Customer:
    customer.purchases.append(item)
    return customer


def to_wish_list(number: int, item: Item, customer: Customer) -> Customer:
    customer.wishes.append(item)
    return customer


builder = StreamsBuilder()
carts = builder.stream("carts", int, Item)
purchases = builder.stream("purchases", int, Item)
wishes = builder.stream("wishes", int, Item)
