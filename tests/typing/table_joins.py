"""Joins with tables and transformed tables keep their types; checked by ``mypy --strict``, never run."""

from typing import assert_type

from pykstreams import (
    Joined,
    KStream,
    KTable,
    Materialized,
    Serdes,
    TableJoined,
    ValueTransformerContext,
    ValueTransformerWithKey,
)


class Customer:
    name: str


def label(amount: int, customer: Customer | None) -> str:
    return f"{amount} {'?' if customer is None else customer.name}"


def streams(orders: KStream[str, int], customers: KTable[str, Customer]) -> None:
    assert_type(orders.join(customers, lambda amount, customer: (amount, customer.name)), KStream[str, tuple[int, str]])
    assert_type(orders.left_join(customers, label), KStream[str, str])
    assert_type(orders.left_join(customers, label, on_expired_history="drop"), KStream[str, str])
    keyed = orders.join(customers, lambda key, amount, customer: {key: amount}, with_key=True)
    assert_type(keyed, KStream[str, dict[str, int]])
    orders.join(customers, label, joined=Joined(key_serde=Serdes.string(), value_serde=Serdes.long(), name="labelled"))


def tables(amounts: KTable[str, int], customers: KTable[str, Customer]) -> None:
    assert_type(amounts.join(customers, lambda amount, customer: customer.name), KTable[str, str])
    assert_type(amounts.left_join(customers, label, materialized="labelled"), KTable[str, str])
    either = customers.outer_join(amounts, lambda customer, amount: customer is None or amount is None)
    assert_type(either, KTable[str, bool])
    stored = Materialized[str, str]("labelled", value_serde=Serdes.string())
    assert_type(amounts.left_join(customers, label, materialized=stored), KTable[str, str])
    complete = amounts.left_join(customers, label, complete_history=True, materialized=stored)
    assert_type(complete, KTable[str, str])


def foreign_keys(orders: KTable[int, str], customers: KTable[str, Customer]) -> None:
    named = orders.join(customers, lambda order, customer: customer.name, foreign_key_extractor=str.lower)
    assert_type(named, KTable[int, str])
    either = orders.left_join(
        customers,
        lambda order, customer: customer is None,
        foreign_key_extractor=lambda key, order: order if key else None,
        extractor_with_key=True,
        table_joined=TableJoined[int, str](name="placed", partitioner=lambda topic, key, value, count: key % count),
        materialized="placed",
    )
    assert_type(either, KTable[int, bool])


def wrong_foreign_keys(orders: KTable[int, str], customers: KTable[str, Customer]) -> None:
    orders.join(customers, lambda a, b: a, foreign_key_extractor=len)  # type: ignore[arg-type]


class Aged(ValueTransformerWithKey[str, int, str]):
    def init(self, context: ValueTransformerContext) -> None:
        super().init(context)
        self.task = context.task_id

    def transform(self, key: str, value: int | None) -> str:
        return f"{key}: {value} at {self.context.timestamp}"


class Halved(ValueTransformerWithKey[str, int, int]):
    """Rows that are missing or become nothing are null on both sides."""

    def transform(self, key: str, value: int | None) -> int | None:
        return None if value is None else value // 2 or None


def transformed(amounts: KTable[str, int]) -> None:
    assert_type(amounts.transform_values(Aged), KTable[str, str])
    assert_type(amounts.transform_values(Halved), KTable[str, int])
    assert_type(amounts.transform_values(Aged, "ages", materialized="aged", name="ageing"), KTable[str, str])


def wrong(orders: KStream[str, int], by_number: KTable[int, Customer], amounts: KTable[str, int]) -> None:
    orders.join(by_number, label)  # type: ignore[arg-type]
    amounts.join(by_number, label)  # type: ignore[arg-type]
    amounts.left_join(amounts, label)  # type: ignore[arg-type]
    amounts.transform_values(Customer)  # type: ignore[arg-type]
