"""One-to-many joins and joins by several foreign keys keep their types; checked by ``mypy --strict``, never run."""

from typing import NamedTuple, assert_type

from pykstreams import KTable, Materialized, Serdes
from pykstreams.serdes import CombinedKey, CombinedKeySerde, JsonCombinedKeySerde


class Customer:
    name: str


class Order:
    customer: int | None
    products: list[str]


class OrderOfCustomer(NamedTuple):
    customer: int
    order: str


def label(customer: Customer, order: Order) -> str:
    return f"{customer.name} {order.products}"


def customer_of(order: Order) -> int | None:
    return order.customer


def one_to_many(customers: KTable[int, Customer], orders: KTable[str, Order]) -> None:
    joined = customers.one_to_many_join(orders, label, key_extractor=customer_of)
    assert_type(joined, KTable[CombinedKey[int, str], str])
    serde = JsonCombinedKeySerde[int, str]()
    assert_type(
        customers.one_to_many_join(orders, label, key_extractor=customer_of, combined_key_serde=serde),
        KTable[CombinedKey[int, str], str],
    )
    length_encoded = CombinedKeySerde(Serdes.long(), Serdes.string())
    customers.one_to_many_join(orders, label, key_extractor=customer_of, combined_key_serde=length_encoded)
    kept = Materialized[CombinedKey[int, str], str]("kept", key_serde=serde)
    customers.one_to_many_join(orders, label, key_extractor=customer_of, materialized=kept)
    mapped = customers.one_to_many_join(
        orders,
        label,
        key_extractor=customer_of,
        output_key_combiner=lambda key: OrderOfCustomer(key.prefix, key.suffix),
        output_key_splitter=lambda key: CombinedKey(key.customer, key.order),
    )
    assert_type(mapped, KTable[OrderOfCustomer, str])


def own_keys(customers: KTable[int, Customer], orders: KTable[OrderOfCustomer, Order]) -> None:
    def faked(customer: int) -> OrderOfCustomer:
        return OrderOfCustomer(customer, "")

    joined = customers.one_to_many_join(
        orders,
        label,
        key_extractor=customer_of,
        join_prefix_faker=faked,
        left_key_extractor=lambda key: key.customer,
        name="sales",
    )
    assert_type(joined, KTable[OrderOfCustomer, str])


def several(orders: KTable[str, Order], products: KTable[str, int]) -> None:
    priced = orders.join(
        products, lambda order, price: (order.customer, price), foreign_keys_extractor=lambda order: order.products
    )
    assert_type(priced, KTable[CombinedKey[str, str], tuple[int | None, int]])
    assert_type(
        orders.left_join(
            products, lambda order, price: price is None, foreign_keys_extractor=lambda order: order.products
        ),
        KTable[CombinedKey[str, str], bool],
    )
