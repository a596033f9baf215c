"""Follows each order until it is paid, or says after an hour that it was not.

    pykstreams run examples/more/order_payments.py --bootstrap-servers localhost:9092

``orders`` and ``payments`` hold JSON under the order's number, ``customers`` JSON under the customer's; the first two
need equal partition counts, the third may have any, as every worker reads all of it. ``order-states`` gets one record
for each payment of an order, and one for each order that nobody paid within the hour.
"""

from dataclasses import dataclass
from datetime import timedelta

from pykstreams import JoinWindows, StreamJoined, StreamsBuilder, Topology

application_id = "order-payments"


@dataclass(frozen=True, slots=True)
class Order:
    customer: str
    amount: int


@dataclass(frozen=True, slots=True)
class Customer:
    name: str


@dataclass(frozen=True, slots=True)
class Payment:
    amount: int


@dataclass(frozen=True, slots=True)
class NamedOrder:
    name: str
    amount: int


@dataclass(frozen=True, slots=True)
class OrderState:
    name: str
    open_amount: int


def with_name(order: Order, customer: Customer | None) -> NamedOrder:
    return NamedOrder("unknown" if customer is None else customer.name, order.amount)


def settled(order: NamedOrder, payment: Payment | None) -> OrderState:
    return OrderState(order.name, order.amount - (0 if payment is None else payment.amount))


def build() -> Topology:
    builder = StreamsBuilder()
    customers = builder.global_table("customers", str, Customer)
    payments = builder.stream("payments", str, Payment)
    (
        builder.stream("orders", str, Order)
        .left_join(customers, with_name, key_selector=lambda number, order: order.customer)
        .left_join(
            payments,
            settled,
            windows=JoinWindows(timedelta(0), after=timedelta(hours=1)),
            stream_joined=StreamJoined(name="payments-of-orders", store_name="payments-of-orders"),
        )
        .to("order-states")
    )
    return builder.build()
