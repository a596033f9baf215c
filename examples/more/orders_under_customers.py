"""Shows each order with its customer, under a key that has both in it: a join by a foreign key, with any result key.

    pykstreams run examples/more/orders_under_customers.py --bootstrap-servers localhost:9092

``customers`` holds the name of each customer under the customer's id, ``orders`` what was ordered, as JSON with a field
``customer``, under the order's id. ``orders-under-customers`` gets a text for each order whose customer is known, under
``customer id/order id``. When an order moves to another customer its old row is deleted and a new one written; when a
customer changes the name, all orders of the customer follow.
"""

from dataclasses import dataclass

from pykstreams import StreamsBuilder, Topology

application_id = "orders-under-customers"


@dataclass
class Order:
    customer: str
    item: str


def customer_of(order_id: str, order: Order) -> str:
    return order.customer


def both_keys(order_id: str, customer_id: str) -> str:
    return f"{customer_id}/{order_id}"


def describe(order: Order, customer: str) -> str:
    return f"{order.item} for {customer}"


def build() -> Topology:
    builder = StreamsBuilder()
    customers = builder.table("customers", str, str)
    orders = builder.table("orders", str, Order)
    under_customers = orders.join(
        customers,
        describe,
        mapper=customer_of,
        selector=both_keys,
        materialized="orders-under-customers",
        name="customer-of-order",
    )
    under_customers.to_stream().to("orders-under-customers")
    return builder.build()
