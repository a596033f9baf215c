"""The workloads as topology scripts, written as a user would write them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from benchmarks.programs.event_serdes import Event, json, number, text
from benchmarks.programs.job import Job
from benchmarks.programs.topologies_by_size import chain, relay, stores
from benchmarks.programs.topologies_by_time import (
    count_in_sessions,
    count_in_sliding_windows,
    count_until_closed,
    join_streams,
    join_versions,
)
from benchmarks.programs.topology_of_cycles import cycles
from benchmarks.topics.avro_events import SCHEMA
from pykstreams import (
    Consumed,
    Grouped,
    Joined,
    KGroupedStream,
    Materialized,
    Produced,
    StreamsBuilder,
    TimeWindows,
    Topology,
)
from pykstreams.serdes import SchemaRegistryAvroSerde, WindowedSerdes


def filter_map_json(source: str, sink: str) -> Topology:
    """w1-json."""

    def double_price(event: Event) -> Event:
        event["price"] = event["price"] * 2
        return event

    builder = StreamsBuilder()
    (
        builder.stream(source, Consumed(key_serde=text, value_serde=json))
        .filter(lambda _, event: event["amount"] % 10 != 0)
        .map_values(double_price)
        .to(sink, Produced(key_serde=text, value_serde=json))
    )
    return builder.build()


def filter_map_avro(source: str, sink: str, registry: str) -> Topology:
    """w1-avro."""

    def double_price(event: Event) -> Event:
        event["price"] = event["price"] * 2
        return event

    avro: SchemaRegistryAvroSerde[Event] = SchemaRegistryAvroSerde(registry, SCHEMA)
    builder = StreamsBuilder()
    (
        builder.stream(source, Consumed(key_serde=text, value_serde=avro))
        .filter(lambda _, event: event["amount"] % 10 != 0)
        .map_values(double_price)
        .to(sink, Produced(key_serde=text, value_serde=avro))
    )
    return builder.build()


def filter_map_string(source: str, sink: str) -> Topology:
    """w1-string."""
    builder = StreamsBuilder()
    (
        builder.stream(source, Consumed(key_serde=text, value_serde=text))
        .filter(lambda _, line: line[9] != "0")
        .map_values(str.upper)
        .to(sink, Produced(key_serde=text, value_serde=text))
    )
    return builder.build()


def aggregate(source: str, sink: str) -> Topology:
    """w2 with its variants, and restore."""

    def add(_: str, event: Event, total: Event) -> Event:
        total["count"] += 1
        total["sum"] += event["amount"]
        return total

    builder = StreamsBuilder()
    (
        builder.stream(source, Consumed(key_serde=text, value_serde=json))
        .group_by_key(Grouped(key_serde=text, value_serde=json))
        .aggregate(
            lambda: {"count": 0, "sum": 0},
            add,
            materialized=Materialized("totals", key_serde=text, value_serde=json),
        )
        .to_stream()
        .to(sink, Produced(key_serde=text, value_serde=json))
    )
    return builder.build()


def count_by_user(source: str, sink: str) -> Topology:
    """w3."""
    builder = StreamsBuilder()
    (
        builder.stream(source, Consumed(key_serde=text, value_serde=json))
        .group_by(lambda _, event: event["user"], Grouped(key_serde=text, value_serde=json, name="by-user"))
        .count(materialized=Materialized("counts", key_serde=text, value_serde=number))
        .to_stream()
        .to(sink, Produced(key_serde=text, value_serde=number))
    )
    return builder.build()


def count_by_minute(source: str, sink: str) -> Topology:
    """w4."""
    builder = StreamsBuilder()
    (
        builder.stream(source, Consumed(key_serde=text, value_serde=json))
        .group_by_key(Grouped(key_serde=text, value_serde=json))
        .windowed_by(TimeWindows(timedelta(minutes=1)))
        .count(materialized=Materialized("counts", key_serde=text, value_serde=number))
        .to_stream()
        .to(sink, Produced(key_serde=WindowedSerdes.time_windowed(text, timedelta(minutes=1)), value_serde=number))
    )
    return builder.build()


def join_table(source: str, sink: str) -> Topology:
    """w5."""

    def name(event: Event, customer: Event) -> Event:
        event["note"] = customer["name"]
        return event

    builder = StreamsBuilder()
    customers = builder.table(
        f"{source}-table", Consumed(key_serde=text, value_serde=json), materialized=Materialized("customers")
    )
    (
        builder.stream(source, Consumed(key_serde=text, value_serde=json))
        .join(customers, name, joined=Joined(key_serde=text, value_serde=json))
        .to(sink, Produced(key_serde=text, value_serde=json))
    )
    return builder.build()


NO_TOTAL: Event = {"count": 0, "sum": 0}


def join_foreign_key(source: str, sink: str) -> Topology:
    """w6."""

    def price(order: Event, product: Event) -> Event:
        return {
            "id": order["id"],
            "name": product["name"],
            "quantity": order["quantity"],
            "version": product["version"],
        }

    builder = StreamsBuilder()
    read = Consumed(key_serde=text, value_serde=json)
    orders = builder.table(source, read, materialized=Materialized("orders"))
    products = builder.table(f"{source}-table", read, materialized=Materialized("products"))
    (
        orders.join(
            products,
            price,
            foreign_key_extractor=lambda order: order["product"],
            name="priced",
            materialized=Materialized("priced-orders", key_serde=text, value_serde=json),
        )
        .to_stream()
        .to(sink, Produced(key_serde=text, value_serde=json))
    )
    return builder.build()


def customers_by_cogroup(source: str, sink: str) -> Topology:
    """cogroup."""

    def adding_to(name: str) -> Callable[[str, Event, Event], Event]:
        def add(_: str, event: Event, customer: Event) -> Event:
            total = customer[name]
            total["count"] += 1
            total["sum"] += event["amount"]
            return customer

        return add

    builder = StreamsBuilder()
    first, second, third = _three_streams(builder, source)
    (
        first.cogroup(adding_to("first"))
        .cogroup(second, adding_to("second"))
        .cogroup(third, adding_to("third"))
        .aggregate(
            lambda: {name: dict(NO_TOTAL) for name in ("first", "second", "third")},
            materialized=Materialized("customers", key_serde=text, value_serde=json),
        )
        .to_stream()
        .to(sink, Produced(key_serde=text, value_serde=json))
    )
    return builder.build()


def customers_by_joins(source: str, sink: str) -> Topology:
    """cogroup-joins."""

    def add(_: str, event: Event, total: Event) -> Event:
        return {"count": total["count"] + 1, "sum": total["sum"] + event["amount"]}

    def two(first: Event | None, second: Event | None) -> Event:
        return {"first": first or NO_TOTAL, "second": second or NO_TOTAL}

    def three(both: Event | None, third: Event | None) -> Event:
        return {**(both or two(None, None)), "third": third or NO_TOTAL}

    builder = StreamsBuilder()
    first, second, third = (
        stream.aggregate(lambda: dict(NO_TOTAL), add, materialized=Materialized(name, key_serde=text, value_serde=json))
        for name, stream in zip(("first", "second", "third"), _three_streams(builder, source), strict=True)
    )
    (
        first.outer_join(second, two)
        .outer_join(third, three)
        .to_stream()
        .to(sink, Produced(key_serde=text, value_serde=json))
    )
    return builder.build()


def _three_streams(builder: StreamsBuilder, source: str) -> list[KGroupedStream[str, Event]]:
    read, group = Consumed(key_serde=text, value_serde=json), Grouped(key_serde=text, value_serde=json)
    return [builder.stream(f"{source}-{number}", read).group_by_key(group) for number in (1, 2, 3)]


TOPOLOGIES: dict[str, Callable[[str, str], Topology]] = {
    "w1-json": filter_map_json,
    "w1-string": filter_map_string,
    "w2": aggregate,
    "w2-evicting": aggregate,
    "w2-uncached": aggregate,
    "w2-many-keys": aggregate,
    "w2-exactly-once": aggregate,
    "w3-exactly-once": count_by_user,
    "w3": count_by_user,
    "w4": count_by_minute,
    "w5": join_table,
    "w6": join_foreign_key,
    "cogroup": customers_by_cogroup,
    "cogroup-joins": customers_by_joins,
    "sessions": count_in_sessions,
    "sliding": count_in_sliding_windows,
    "suppressed": count_until_closed,
    "stream-join": join_streams,
    "versioned-join": join_versions,
    "restore": aggregate,
}

SIZED: dict[str, Callable[[str, str, int], Topology]] = {
    "chain": chain,
    "relay": relay,
    "stores": stores,
    "cycles": cycles,
}


def build(job: Job) -> Topology:
    """The topology of a job."""
    if job.workload == "w1-avro":
        return filter_map_avro(job.source, job.sink, job.registry)
    if job.workload in SIZED:
        return SIZED[job.workload](job.source, job.sink, int(job.size))
    return TOPOLOGIES[job.workload](job.source, job.sink)
