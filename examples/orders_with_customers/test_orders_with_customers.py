"""The example ``orders_with_customers.py`` in the test driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.orders_with_customers.orders_with_customers import Customer, Delivery, Order, build
from pykstreams.testing import TestInputTopic, TestOutputTopic, TopologyTestDriver

Topics = tuple[TestInputTopic[str, Customer], TestInputTopic[str, Order], TestOutputTopic[str, Delivery]]


@pytest.fixture
def topics() -> Iterator[Topics]:
    """Those of customers and orders, and of orders with their customers; each has four partitions."""
    with TopologyTestDriver(build(), partitions=4) as driver:
        yield (
            driver.create_input_topic("customers", str, Customer),
            driver.create_input_topic("orders", str, Order),
            driver.create_output_topic("orders-with-customers", str, Delivery),
        )


def test_order_waits_for_its_customer(topics: Topics) -> None:
    customers, orders, result = topics
    orders.pipe_input("o1", Order("ann", "tea"))
    before = result.is_empty
    customers.pipe_input("ann", Customer("Ann", "Oslo"))

    assert before
    assert result.read_key_values() == [("o1", Delivery("tea", "Ann", "Oslo"))]


def test_all_orders_follow_a_customer_who_moves(topics: Topics) -> None:
    customers, orders, result = topics
    customers.pipe_input("ann", Customer("Ann", "Oslo"))
    orders.pipe_input("o1", Order("ann", "tea"))
    orders.pipe_input("o2", Order("ann", "milk"))
    customers.pipe_input("ann", Customer("Ann", "Rome"))

    assert result.read_key_values_to_dict() == {
        "o1": Delivery("tea", "Ann", "Rome"),
        "o2": Delivery("milk", "Ann", "Rome"),
    }


def test_order_that_goes_to_another_customer_is_joined_with_that_one(topics: Topics) -> None:
    customers, orders, result = topics
    customers.pipe_input("ann", Customer("Ann", "Oslo"))
    customers.pipe_input("bob", Customer("Bob", "Rome"))
    orders.pipe_input("o1", Order("ann", "tea"))
    orders.pipe_input("o1", Order("bob", "tea"))

    assert result.read_key_values_to_dict() == {"o1": Delivery("tea", "Bob", "Rome")}


@pytest.mark.parametrize("deleted", ["order", "customer"])
def test_row_goes_with_its_order_and_with_its_customer(topics: Topics, deleted: str) -> None:
    customers, orders, result = topics
    customers.pipe_input("ann", Customer("Ann", "Oslo"))
    orders.pipe_input("o1", Order("ann", "tea"))
    if deleted == "order":
        orders.pipe_input("o1", None)
    else:
        customers.pipe_input("ann", None)

    assert result.read_key_values_to_dict() == {"o1": None}
