"""Joins each customer with all orders that refer to them, and keeps the revenue of each city.

    pykstreams run examples/one_to_many.py --bootstrap-servers localhost:9092

Topic ``customers`` has the customers by their numbers, ``orders`` the orders by theirs; an order says which customer it
is of. The join has one row for each order, under both numbers: ``{"customer":7,"order":31}``. When a customer moves,
all their orders move from the revenue of one city to that of the other; when an order changes, or is given to another
customer, exactly what it was worth before is taken away.
"""

from dataclasses import dataclass

from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder, Topology
from pykstreams.serdes import JsonCombinedKeySerde, JsonSerde

application_id = "one-to-many"


@dataclass(frozen=True, slots=True)
class Customer:
    name: str
    city: str


@dataclass(frozen=True, slots=True)
class Order:
    customer: int | None
    amount: int


@dataclass(frozen=True, slots=True)
class Sale:
    name: str
    city: str
    amount: int


def build() -> Topology:
    builder = StreamsBuilder()
    number, sale = Serdes.long(), JsonSerde(Sale)
    both_numbers = JsonCombinedKeySerde(JsonSerde(int), JsonSerde(int), names=("customer", "order"))
    customers = builder.table("customers", Consumed(key_serde=number, value_serde=JsonSerde(Customer)))
    orders = builder.table("orders", Consumed(key_serde=number, value_serde=JsonSerde(Order)))

    sales = customers.one_to_many_join(
        orders,
        lambda customer, order: Sale(customer.name, customer.city, order.amount),
        key_extractor=lambda order: order.customer,
        combined_key_serde=both_numbers,
        name="sales",
    )
    sales.to_stream().to("sales", Produced(key_serde=both_numbers, value_serde=sale))
    (
        sales.group_by(
            lambda key, sale: (sale.city, sale.amount), Grouped(key_serde=Serdes.string(), value_serde=number)
        )
        .aggregate(
            lambda: 0,
            lambda city, amount, total: total + amount,
            lambda city, amount, total: total - amount,
            materialized=Materialized("revenue", key_serde=Serdes.string(), value_serde=number),
        )
        .to_stream()
        .to("revenue", Produced(key_serde=Serdes.string(), value_serde=number))
    )
    return builder.build()
