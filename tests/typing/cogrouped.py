"""Cogrouped streams must type-check, with the types that must come out; checked by ``mypy --strict``, never run."""

from typing import assert_type

from pykstreams import (
    CogroupedKStream,
    KGroupedStream,
    KTable,
    Materialized,
    Serdes,
    SessionWindowedCogroupedKStream,
    SessionWindows,
    SlidingWindows,
    TimeWindowedCogroupedKStream,
    TimeWindows,
    Windowed,
)


class Customer:
    visits: int
    pages: list[str]


def visited(key: str, seconds: int, customer: Customer) -> Customer:
    return customer


def read(key: str, page: str, customer: Customer) -> Customer:
    return customer


def merged(key: str, customer: Customer, other: Customer) -> Customer:
    return customer


def tables(visits: KGroupedStream[str, int], pages: KGroupedStream[str, str]) -> None:
    customers = visits.cogroup(visited).cogroup(pages, read)
    assert_type(customers, CogroupedKStream[str, Customer])
    assert_type(customers.aggregate(Customer), KTable[str, Customer])
    customers.aggregate(Customer, materialized=Materialized("customers", key_serde=Serdes.string()), name="customers")


def windowed(visits: KGroupedStream[str, int], pages: KGroupedStream[str, str]) -> None:
    customers = visits.cogroup(visited).cogroup(pages, read)
    assert_type(customers.windowed_by(TimeWindows(10)), TimeWindowedCogroupedKStream[str, Customer])
    assert_type(customers.windowed_by(SlidingWindows(10)), TimeWindowedCogroupedKStream[str, Customer])
    assert_type(customers.windowed_by(SessionWindows(10)), SessionWindowedCogroupedKStream[str, Customer])
    assert_type(customers.windowed_by(TimeWindows(10)).aggregate(Customer), KTable[Windowed[str], Customer])
    assert_type(customers.windowed_by(SessionWindows(10)).aggregate(Customer, merged), KTable[Windowed[str], Customer])


def wrong(visits: KGroupedStream[str, int], pages: KGroupedStream[str, str], by_id: KGroupedStream[int, str]) -> None:
    customers = visits.cogroup(visited)
    visits.cogroup(read)  # type: ignore[arg-type]
    customers.cogroup(pages, visited)  # type: ignore[arg-type]
    customers.cogroup(by_id, read)  # type: ignore[arg-type]
    customers.cogroup(pages)  # type: ignore[call-arg]
    customers.aggregate(lambda: 0)  # type: ignore[arg-type]
    customers.aggregate(Customer, visited)  # type: ignore[call-arg, arg-type]
    customers.windowed_by(10)  # type: ignore[call-overload]
    customers.windowed_by(SessionWindows(10)).aggregate(Customer)  # type: ignore[call-arg]
