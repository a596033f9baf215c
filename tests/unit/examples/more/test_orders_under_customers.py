"""The example ``orders_under_customers.py`` in the test driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.more.orders_under_customers import Order, build
from pykstreams import Serdes
from pykstreams.serdes import JsonSerde
from pykstreams.testing import TestInputTopic, TestOutputTopic, TopologyTestDriver


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    with TopologyTestDriver(build(), partitions=4) as driver:
        yield driver


def _topics(
    driver: TopologyTestDriver,
) -> tuple[TestInputTopic[str, str], TestInputTopic[str, Order], TestOutputTopic[str, str]]:
    text = Serdes.string()
    return (
        driver.create_input_topic("customers", text, text),
        driver.create_input_topic("orders", text, JsonSerde(Order)),
        driver.create_output_topic("orders-under-customers", text, text),
    )


def test_order_appears_under_both_keys_once_its_customer_is_known(driver: TopologyTestDriver) -> None:
    customers, orders, result = _topics(driver)
    orders.pipe_input("o1", Order("ann", "tea"))
    before = result.is_empty
    customers.pipe_input("ann", "Ann")

    assert before
    assert result.read_key_values() == [("ann/o1", "tea for Ann")]


def test_order_that_moves_to_another_customer_leaves_its_old_key(driver: TopologyTestDriver) -> None:
    customers, orders, result = _topics(driver)
    customers.pipe_input("ann", "Ann")
    customers.pipe_input("bob", "Bob")
    orders.pipe_input("o1", Order("ann", "tea"))
    orders.pipe_input("o1", Order("bob", "tea"))

    assert result.read_key_values_to_dict() == {"ann/o1": None, "bob/o1": "tea for Bob"}


def test_all_orders_follow_the_new_name_of_their_customer(driver: TopologyTestDriver) -> None:
    customers, orders, result = _topics(driver)
    customers.pipe_input("ann", "Ann")
    orders.pipe_input("o1", Order("ann", "tea"))
    orders.pipe_input("o2", Order("ann", "milk"))
    customers.pipe_input("ann", "Anna")

    assert result.read_key_values_to_dict() == {"ann/o1": "tea for Anna", "ann/o2": "milk for Anna"}
