"""Shows each order with the name and the city of its customer, also when the customer moves: a foreign-key join.

    pykstreams run examples/orders_with_customers/orders_with_customers.py --bootstrap-servers localhost:9092

``customers`` holds JSON such as ``{"name": "Ann", "city": "Oslo"}`` under the customer, ``orders`` JSON such as
``{"customer": "ann", "item": "tea"}`` under the order. ``orders-with-customers`` gets both under the order, as long as
both are there.
"""

from dataclasses import dataclass

from pykstreams import StreamsBuilder, Topology

application_id = "orders-with-customers"


@dataclass(frozen=True, slots=True)
class Order:
    customer: str
    item: str


@dataclass(frozen=True, slots=True)
class Customer:
    name: str
    city: str


@dataclass(frozen=True, slots=True)
class Delivery:
    item: str
    name: str
    city: str


def customer_of(order: Order) -> str:
    return order.customer


def delivery(order: Order, customer: Customer) -> Delivery:
    return Delivery(order.item, customer.name, customer.city)


def build() -> Topology:
    builder = StreamsBuilder()
    customers = builder.table("customers", str, Customer)
    orders = builder.table("orders", str, Order)
    deliveries = orders.join(customers, delivery, foreign_key_extractor=customer_of, name="customer-of-order")
    deliveries.to_stream().to("orders-with-customers")
    return builder.build()
