"""``None`` of an aggregator or a reducer removes what there is, and a selector of keys may give none."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import GlobalKTable, KStream, KTable, StreamsBuilder


@dataclass
class Order:
    customer: str | None
    amount: int


def total_or_nothing(key: str, order: Order, total: int) -> int | None:
    return total + order.amount or None


def less(key: str, order: Order, total: int) -> int | None:
    return total - order.amount or None


def larger(first: int, second: int) -> int | None:
    return max(first, second) or None


def with_name(order: Order, name: str) -> str:
    return f"{order.amount} of {name}"


def with_name_or_none(order: Order, name: str | None) -> str:
    return f"{order.amount} of {name or 'nobody'}"


def customer(key: str, order: Order) -> str | None:
    return order.customer


def build() -> tuple[KTable[str, int], KTable[str, int], KTable[str, int], KStream[str, str], KStream[str, str]]:
    builder = StreamsBuilder()
    orders = builder.stream("orders", str, Order)
    names: GlobalKTable[str, str] = builder.global_table("names", str, str)
    totals: KTable[str, int] = orders.group_by_key().aggregate(int, total_or_nothing)
    largest: KTable[str, int] = builder.stream("amounts", str, int).group_by_key().reduce(larger)
    table = builder.table("order-table", str, Order)
    both: KTable[str, int] = table.group_by(lambda key, order: (key, order)).aggregate(int, total_or_nothing, less)
    named = orders.join(names, with_name, key_selector=customer)
    named_or_not = orders.left_join(names, with_name_or_none, key_selector=customer)
    return totals, largest, both, named, named_or_not
