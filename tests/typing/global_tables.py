"""Global tables that must type-check, with the types that must come out; checked by ``mypy --strict``, never run."""

from typing import assert_type

from pykstreams import (
    Consumed,
    GlobalKTable,
    KStream,
    Materialized,
    Processor,
    Record,
    Serdes,
    StreamsBuilder,
    Topology,
)
from pykstreams.state import Stores


class Order:
    customer: int
    amount: int


class Customer:
    name: str


def sources(builder: StreamsBuilder) -> None:
    read = Consumed(key_serde=Serdes.string(), value_serde=Serdes.long())
    assert_type(builder.global_table("totals", read), GlobalKTable[str, int])
    kept = Materialized("kept", key_serde=Serdes.string(), value_serde=Serdes.long())
    assert_type(builder.global_table("totals", materialized=kept), GlobalKTable[str, int])
    assert_type(builder.global_table("totals", read).queryable_store_name, str | None)


def joins(orders: KStream[str, Order], customers: GlobalKTable[int, Customer]) -> None:
    def customer_of(key: str, order: Order) -> int:
        return order.customer

    def label(order: Order, customer: Customer) -> str:
        return customer.name

    def label_or_none(key: str, order: Order, customer: Customer | None) -> str:
        return key if customer is None else customer.name

    assert_type(orders.join(customers, label, key_selector=customer_of), KStream[str, str])
    named = orders.left_join(customers, label_or_none, with_key=True, key_selector=customer_of, name="named")
    assert_type(named, KStream[str, str])


def joins_that_do_not_fit(orders: KStream[str, Order], customers: GlobalKTable[int, Customer]) -> None:
    def label(order: Order, customer: Customer) -> str:
        return customer.name

    def by_key_alone(key: str) -> int:
        return len(key)

    orders.join(customers, label)  # type: ignore[call-overload]
    orders.join(customers, label, key_selector=by_key_alone)  # type: ignore[arg-type]
    orders.outer_join(customers, label, key_selector=lambda key, order: 1)  # type: ignore[call-overload]


class Put(Processor[str, int, None, None]):
    def process(self, record: Record[str, int]) -> None:
        self.context.get_state_store("totals").put(record.key, record.value)


def stores(builder: StreamsBuilder, topology: Topology) -> None:
    store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("totals"))
    read = Consumed(key_serde=Serdes.string(), value_serde=Serdes.long())
    assert_type(builder.add_global_store(store, "feed", Put, read), StreamsBuilder)
    assert_type(topology.add_global_store(store, "source", "feed", "put", Put), Topology)
    assert_type(topology.add_read_only_state_store(store, "source2", "feed2", "put2", Put), Topology)
