"""User code that must type-check, with the types that must come out; checked by ``mypy --strict``, never run.

A line that must not type-check carries ``type: ignore`` with its error: under ``--strict`` an ignore that nothing
needs is an error itself.
"""

from typing import assert_type

from pykstreams import (
    Consumed,
    Grouped,
    KafkaStreams,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    Materialized,
    Processor,
    Produced,
    Record,
    Serdes,
    StreamsBuilder,
    Topology,
)


class Order:
    customer: str
    amount: int


def stateless(orders: KStream[str, Order]) -> None:
    assert_type(orders.filter(lambda key, order: order.amount > 10), KStream[str, Order])
    assert_type(orders.map_values(lambda order: order.amount), KStream[str, int])
    assert_type(orders.map_values(lambda key, order: key, with_key=True), KStream[str, str])
    assert_type(orders.map(lambda key, order: (order.amount, key)), KStream[int, str])
    assert_type(orders.flat_map_values(lambda order: [order.amount]), KStream[str, int])
    assert_type(orders.select_key(lambda key, order: order.amount), KStream[int, Order])
    assert_type(orders.merge(orders), KStream[str, Order])
    assert_type(orders.split().branch(lambda k, v: True, "big").default_branch("rest"), dict[str, KStream[str, Order]])


def grouping(orders: KStream[str, Order]) -> None:
    by_customer = orders.group_by(lambda key, order: order.customer)
    assert_type(by_customer, KGroupedStream[str, Order])
    assert_type(by_customer.count(materialized="n"), KTable[str, int])
    totals = by_customer.aggregate(
        lambda: 0,
        lambda key, order, total: total + order.amount,
        materialized=Materialized("totals", value_serde=Serdes.long()),
    )
    assert_type(totals, KTable[str, int])
    assert_type(totals.to_stream(), KStream[str, int])


def tables(totals: KTable[str, int]) -> None:
    by_size = totals.group_by(lambda key, total: (total // 100, key))
    assert_type(by_size, KGroupedTable[int, str])
    assert_type(by_size.count(), KTable[int, int])
    assert_type(totals.map_values(str), KTable[str, str])


class Doubling(Processor[str, int, str, int]):
    def process(self, record: Record[str, int]) -> None:
        self.context.forward(record.replace(value=record.value * 2))


def build() -> Topology:
    builder = StreamsBuilder()
    numbers = builder.stream("numbers", Consumed(key_serde=Serdes.string(), value_serde=Serdes.long()))
    assert_type(numbers, KStream[str, int])
    doubled = numbers.process(Doubling, name="doubling")
    assert_type(doubled, KStream[str, int])
    doubled.to("doubled", Produced(key_serde=Serdes.string(), value_serde=Serdes.long()))
    with KafkaStreams(builder.build(), {"application.id": "app", "bootstrap.servers": "b:1"}) as streams:
        streams.wait()
    return builder.build()


def by_length(key: bytes, partitions: int) -> int:
    return len(key) % partitions


def placed(builder: StreamsBuilder) -> None:
    text = Serdes.string()
    named = builder.stream("a", Consumed(key_serde=text, value_serde=text, partitioner="consistent_random"))
    assert_type(named, KStream[str, str])
    assert_type(builder.table("b", Consumed(key_serde=text, value_serde=text, partitioner=by_length)), KTable[str, str])
    builder.stream("c", Consumed(key_serde=text, value_serde=text, partitioner=3))  # type: ignore[arg-type]


def wrong(orders: KStream[str, Order]) -> None:
    orders.map_values(lambda order: order.price)  # type: ignore[attr-defined]
    orders.filter(lambda order: True)  # type: ignore[arg-type,misc]
    orders.map_values(lambda key, order: key)  # type: ignore[arg-type,misc]
    orders.group_by_key(Grouped(name=3))  # type: ignore[arg-type]
    orders.to("out", Consumed())  # type: ignore[arg-type]
