"""Drawings of a topology with every shape in it are what the files in ``drawings`` say.

``UPDATE_GOLDEN=1 pytest tests/golden/test_drawings.py`` writes them anew; look at them before they are committed.
"""

import os
import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from pykstreams import Grouped, JoinWindows, KStream, StreamsBuilder, TimeWindows, Windowed
from pykstreams.core.record import RecordContext

FOLDER = Path(__file__).parent / "drawings"


WINDOWS = TimeWindows(timedelta(minutes=5), advance_by=timedelta(minutes=1), grace=timedelta(seconds=30))


@dataclass
class Order:
    customer: str


@dataclass
class Customer:
    country: str


def with_payment(order: Order | None, payment: str | None) -> Order | None:
    return order


def with_customer(order: Order | None, customer: Customer | None) -> Order | None:
    return order


def by_customer(key: str, order: Order) -> str:
    return order.customer


def with_country(spent: int, country: str) -> str:
    return f"{spent} in {country}"


def country_of(customer: Windowed[str], spent: int) -> str:
    return customer.key


def is_wanted(key: object, line: object) -> bool:
    return True


def topic_of(key: object, line: object, context: RecordContext) -> str:
    return str(line)


@pytest.fixture(scope="module")
def drawings() -> dict[str, str]:
    builder = StreamsBuilder({"application.id": "shop"})
    orders = builder.stream("orders", str, Order)
    payments: KStream[str, str] = builder.stream("payments")
    customers = builder.table("customers", str, Customer, materialized="customers")
    countries = builder.global_table("countries", str, str, materialized="countries")
    paid = orders.outer_join(payments, with_payment, windows=JoinWindows(1000))
    paid.left_join(customers, with_customer).to("paid-orders")
    spent = orders.group_by(by_customer, Grouped(name="by-customer")).windowed_by(WINDOWS).count(materialized="spent")
    spent.to_stream().join(countries, with_country, key_selector=country_of).to("spent")
    builder.stream(re.compile("log-.*")).filter(is_wanted).to(topic_of)
    topology = builder.build()
    description = topology.describe()
    return {
        "shop.mmd": topology.to_mermaid(),
        "shop.dot": description.to_dot(),
        "shop.svg": description.to_svg(),
        "shop.html": description.to_html(),
    }


@pytest.mark.parametrize("name", ["shop.mmd", "shop.dot", "shop.svg", "shop.html"])
def test_drawing_is_that_of_the_file(drawings: dict[str, str], name: str) -> None:
    if os.environ.get("UPDATE_GOLDEN") == "1":
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / name).write_text(drawings[name])

    assert drawings[name] == (FOLDER / name).read_text()
