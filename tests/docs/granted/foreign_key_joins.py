"""Orders that name their customer."""

from dataclasses import dataclass

from pykstreams import StreamsBuilder


@dataclass(frozen=True)
class Order:
    customer_id: str


def join_names(order: Order, name: str) -> str:
    return f"order of {name}"


builder = StreamsBuilder()
orders = builder.table("orders", str, Order)
customers = builder.table("customers", str, str)
