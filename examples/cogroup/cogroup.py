"""Keeps what a shop knows of each customer, from three topics, in one store: cart, purchases and wish list.

    pykstreams run examples/cogroup/cogroup.py --bootstrap-servers localhost:9092

Each topic has an item as JSON, such as ``{"no": "01"}``, under the number of a customer. Three tables, joined, would
keep three stores and read the others for each record; cogrouped, the streams build one ``Customer``, and each says
only where its items go. This is the example of KIP-150, the proposal that brought ``cogroup`` to Kafka Streams.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from pykstreams import KGroupedStream, StreamsBuilder, Topology

application_id = "customers"


@dataclass(frozen=True, slots=True)
class Item:
    no: str


@dataclass(slots=True)
class Customer:
    cart: list[Item] = field(default_factory=list)
    purchases: list[Item] = field(default_factory=list)
    wish_list: list[Item] = field(default_factory=list)


def adding_to(name: str) -> Callable[[int, Item, Customer], Customer]:
    """The aggregator that adds items to the list of that name."""

    def add(number: int, item: Item, customer: Customer) -> Customer:
        getattr(customer, name).append(item)
        return customer

    return add


def build() -> Topology:
    builder = StreamsBuilder()

    def grouped(topic: str) -> KGroupedStream[int, Item]:
        return builder.stream(topic, int, Item).group_by_key()

    (
        grouped("cart")
        .cogroup(adding_to("cart"))
        .cogroup(grouped("purchases"), adding_to("purchases"))
        .cogroup(grouped("wish-list"), adding_to("wish_list"))
        .aggregate(Customer, materialized="customers")
        .to_stream()
        .to("customers")
    )
    return builder.build()
