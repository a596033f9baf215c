"""Orders that name their customer."""

from dataclasses import dataclass

from pykstreams import Materialized, Serdes, StreamsBuilder

__all__ = ["Materialized", "Serdes"]


@dataclass(frozen=True)
class Order:
    item: str
    customer: str


def joiner(order: Order | None, customer: str | None) -> str:
    return f"{order} of {customer}"


builder = StreamsBuilder()
orders = builder.table("orders", str, Order)
customers = builder.table("customers", str, str)
