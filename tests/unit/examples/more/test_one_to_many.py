"""The example ``one_to_many.py``: orders follow their customers, and revenue follows both."""

from __future__ import annotations

from typing import Any

from examples.more.one_to_many import Customer, Order, Sale, build
from pykstreams import Serdes
from pykstreams.serdes import JsonSerde
from pykstreams.testing import TopologyTestDriver

INPUT: list[tuple[str, int, Any]] = [
    ("customers", 7, Customer("Ann", "Oslo")),
    ("orders", 31, Order(7, 10)),
    ("orders", 32, Order(7, 5)),
    ("orders", 33, Order(8, 100)),  # nobody knows customer 8 yet
    ("customers", 8, Customer("Bob", "Bergen")),
    ("customers", 7, Customer("Ann", "Bergen")),
    ("orders", 33, Order(7, 90)),
    ("orders", 31, None),
    ("orders", 32, Order(None, 5)),
]


def after(records: list[tuple[str, int, Any]]) -> tuple[dict[bytes, Any], dict[str, int]]:
    """What the sales and the revenue are in the end."""
    serdes: dict[str, Any] = {"customers": JsonSerde(Customer), "orders": JsonSerde(Order)}
    with TopologyTestDriver(build(), {"application.id": "test"}, partitions=4) as driver:
        for topic, number, value in records:
            driver.create_input_topic(topic, Serdes.long(), serdes[topic]).pipe_input(number, value)
        sales = driver.create_output_topic("sales", Serdes.bytes(), JsonSerde(Sale)).read_key_values()
        revenue = driver.create_output_topic("revenue", Serdes.string(), Serdes.long()).read_key_values()
        return {key: sale for key, sale in dict(sales).items() if sale is not None}, dict(revenue)


def test_order_is_joined_with_its_customer_under_both_numbers() -> None:
    sales, revenue = after(INPUT[:3])

    assert sales == {
        b'{"customer":7,"order":31}': Sale("Ann", "Oslo", 10),
        b'{"customer":7,"order":32}': Sale("Ann", "Oslo", 5),
    }
    assert revenue == {"Oslo": 15}


def test_orders_wait_for_a_customer_who_comes_later() -> None:
    assert after(INPUT[:5])[1] == {"Oslo": 15, "Bergen": 100}


def test_orders_move_with_their_customer() -> None:
    assert after(INPUT[:6])[1] == {"Oslo": 0, "Bergen": 115}


def test_order_that_goes_to_another_customer_leaves_the_first_one() -> None:
    sales, revenue = after(INPUT[:7])

    assert sales.keys() == {b'{"customer":7,"order":%d}' % number for number in (31, 32, 33)}
    assert revenue == {"Oslo": 0, "Bergen": 105}


def test_orders_that_are_deleted_or_have_no_customer_are_taken_away() -> None:
    sales, revenue = after(INPUT)

    assert sales == {b'{"customer":7,"order":33}': Sale("Ann", "Bergen", 90)}
    assert revenue == {"Oslo": 0, "Bergen": 90}
