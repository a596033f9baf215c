"""Right and full outer foreign-key joins and non-key joins that must type-check, with the types that must come out."""

from dataclasses import dataclass
from typing import assert_type

from pykstreams import KTable, Windowed
from pykstreams.serdes import CombinedKey, CombinedKeySerde, IntegerSerde, OptionalSerde, Serde, StringSerde


@dataclass
class Order:
    customer: int
    referrer: int | None


def text(left: Order | None, right: str | None) -> str:
    return f"{left} {right}"


def seen(windowed: Windowed[str] | None, day: str | None) -> str:
    return str(windowed) if day is None else day


result_keys: Serde[CombinedKey[int, str | None]] = CombinedKeySerde(IntegerSerde(), OptionalSerde(StringSerde()))


def outer(orders: KTable[str, Order], customers: KTable[int, str]) -> None:
    assert_type(
        orders.right_join(customers, text, foreign_key_extractor=lambda order: order.customer),
        KTable[CombinedKey[int, str | None], str],
    )
    assert_type(
        orders.outer_join(customers, text, foreign_key_extractor=lambda order: order.customer),
        KTable[CombinedKey[int, str | None], str],
    )
    assert_type(
        orders.outer_join(customers, text, foreign_key_extractor=lambda order: order.referrer),
        KTable[CombinedKey[int | None, str | None], str],
    )
    assert_type(
        orders.outer_join(
            customers, text, foreign_key_extractor=lambda key, order: order.customer, extractor_with_key=True
        ),
        KTable[CombinedKey[int, str | None], str],
    )
    assert_type(orders.outer_join(orders, lambda left, right: f"{left}{right}"), KTable[str, str])


def selected(orders: KTable[str, Order], customers: KTable[int, str]) -> None:
    joined = orders.join(
        customers, text, mapper=lambda key, order: order.referrer, selector=lambda key, customer: (key, customer + 1)
    )
    assert_type(joined, KTable[tuple[str, int], str])
    left = orders.left_join(
        customers, text, mapper=lambda key, order: order.customer, selector=lambda key, customer: customer or len(key)
    )
    assert_type(left, KTable[int, str])


def windowed(counts: KTable[Windowed[str], int], days: KTable[str, str]) -> None:
    shifted = counts.join(
        counts,
        lambda now, before: now - before,
        mapper=lambda key, count: key.shift_left(60_000),
        selector=lambda key, shifted: key,
    )
    assert_type(shifted, KTable[Windowed[str], int])
    assert_type(
        counts.outer_join(days, lambda count, day: count or 0, mapper=lambda key, count: key.key, selector=seen),
        KTable[str, int],
    )
