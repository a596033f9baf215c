"""Joins each customer with all orders that refer to them, and keeps the revenue of each city.

    pykstreams run examples/more/one_to_many.py --bootstrap-servers localhost:9092

Topic ``customers`` has the customers by their numbers, ``orders`` the orders by theirs; an order says which customer it
is of. The join has one row for each order, under both numbers: ``{"customer":7,"order":31}``. When a customer moves,
all their orders move from the revenue of one city to that of the other; when an order changes, or is given to another
customer, exactly what it was worth before is taken away.
"""

from dataclasses import dataclass

from pykstreams import StreamsBuilder, Topology
from pykstreams.serdes import CombinedKey, JsonCombinedKeySerde, JsonSerde

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


def sale_of(customer: Customer, order: Order) -> Sale:
    return Sale(customer.name, customer.city, order.amount)


def amount_by_city(key: CombinedKey[int, int], sale: Sale) -> tuple[str, int]:
    return sale.city, sale.amount


def add(city: str, amount: int, total: int) -> int:
    return total + amount


def subtract(city: str, amount: int, total: int) -> int:
    return total - amount


def build() -> Topology:
    builder = StreamsBuilder()
    customers = builder.table("customers", int, Customer)
    orders = builder.table("orders", int, Order)

    sales = customers.one_to_many_join(
        orders,
        sale_of,
        key_extractor=lambda order: order.customer,
        combined_key_serde=JsonCombinedKeySerde(JsonSerde(int), JsonSerde(int), names=("customer", "order")),
        name="sales",
    )
    sales.to_stream().to("sales")
    (sales.group_by(amount_by_city).aggregate(int, add, subtract, materialized="revenue").to_stream().to("revenue"))
    return builder.build()
