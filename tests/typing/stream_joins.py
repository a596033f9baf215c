"""Joins of streams with streams as users type them: the joiner decides what comes out; checked, never run."""

from datetime import timedelta
from typing import assert_type

from pykstreams import Joined, JoinWindows, KStream, KTable, Serdes, StreamJoined


class Order:
    amount: int


class Payment:
    amount: int


WINDOWS = JoinWindows(timedelta(minutes=5))


def settled(order: Order, payment: Payment) -> bool:
    return order.amount == payment.amount


def settled_or_open(order: Order, payment: Payment | None) -> bool:
    return payment is not None


def either(order: Order | None, payment: Payment | None) -> str:
    return "both" if order and payment else "one"


def keyed(key: str, order: Order, payment: Payment) -> tuple[str, int]:
    return key, order.amount + payment.amount


def joins(orders: KStream[str, Order], payments: KStream[str, Payment]) -> None:
    assert_type(orders.join(payments, settled, windows=WINDOWS), KStream[str, bool])
    assert_type(orders.left_join(payments, settled_or_open, windows=WINDOWS), KStream[str, bool])
    assert_type(orders.outer_join(payments, either, windows=WINDOWS), KStream[str, str])
    assert_type(orders.join(payments, keyed, with_key=True, windows=WINDOWS), KStream[str, tuple[str, int]])
    options = StreamJoined[str, Order, Payment](key_serde=Serdes.string(), store_name="pairs")
    assert_type(orders.join(payments, settled, windows=WINDOWS, stream_joined=options), KStream[str, bool])


def wrong(orders: KStream[str, Order], payments: KStream[str, Payment], accounts: KTable[str, Payment]) -> None:
    orders.join(payments, settled)  # type: ignore[call-overload]
    orders.left_join(payments, settled, windows=WINDOWS)  # type: ignore[arg-type]
    orders.outer_join(payments, settled_or_open, windows=WINDOWS)  # type: ignore[arg-type]
    orders.join(payments, keyed, windows=WINDOWS)  # type: ignore[arg-type]
    orders.join(payments, settled, windows=WINDOWS, joined=Joined())  # type: ignore[call-overload]
    orders.join(accounts, settled, windows=WINDOWS)  # type: ignore[call-overload]
    orders.outer_join(accounts, either, windows=WINDOWS)  # type: ignore[call-overload]
