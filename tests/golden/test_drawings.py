"""Drawings of a topology with every shape in it are what the files in ``drawings`` say.

``UPDATE_GOLDEN=1 pytest tests/golden/test_drawings.py`` writes them anew; look at them before they are committed.
"""

import os
import re
from pathlib import Path

import pytest

from pykstreams import GlobalKTable, Grouped, JoinWindows, KStream, KTable, StreamsBuilder

FOLDER = Path(__file__).parent / "drawings"


@pytest.fixture(scope="module")
def drawings() -> dict[str, str]:
    builder = StreamsBuilder({"application.id": "shop"})
    orders: KStream[str, str] = builder.stream("orders")
    payments: KStream[str, str] = builder.stream("payments")
    customers: KTable[str, str] = builder.table("customers", materialized="customers")
    countries: GlobalKTable[str, str] = builder.global_table("countries", materialized="countries")
    paid = orders.outer_join(payments, lambda order, payment: order, windows=JoinWindows(1000))
    paid.left_join(customers, lambda order, customer: order).to("paid-orders")
    spent = orders.group_by(lambda key, order: order, Grouped(name="by-customer")).count(materialized="spent")
    spent.to_stream().join(countries, lambda spent, country: spent, key_selector=lambda key, spent: key).to("spent")
    builder.stream(re.compile("log-.*")).filter(lambda key, line: True).to(lambda key, line, context: line)
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
