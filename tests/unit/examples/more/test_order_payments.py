"""The example ``order_payments.py`` in the test driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from examples.more.order_payments import Customer, Order, OrderState, Payment, build
from pykstreams import KeyValue, Serdes
from pykstreams.serdes import JsonSerde
from pykstreams.testing import TopologyTestDriver

HOUR = 3_600_000


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    with TopologyTestDriver(build()) as driver:
        yield driver


def _pipe(driver: TopologyTestDriver, topic: str, key: str, value: Any, timestamp: int) -> None:
    driver.create_input_topic(topic, Serdes.string(), JsonSerde(type(value))).pipe_input(key, value, timestamp)


def _states(driver: TopologyTestDriver) -> list[KeyValue[str, OrderState]]:
    return driver.create_output_topic("order-states", Serdes.string(), JsonSerde(OrderState)).read_key_values()


def test_payment_within_the_hour_settles_its_order(driver: TopologyTestDriver) -> None:
    _pipe(driver, "customers", "c1", Customer("Ann"), 1)
    _pipe(driver, "orders", "o1", Order("c1", 30), 2)
    _pipe(driver, "payments", "o1", Payment(30), HOUR)

    assert _states(driver) == [("o1", OrderState("Ann", 0))]


def test_order_that_nobody_paid_is_told_after_the_hour(driver: TopologyTestDriver) -> None:
    _pipe(driver, "orders", "o1", Order("nobody", 30), 2)
    before = _states(driver)
    _pipe(driver, "payments", "o2", Payment(5), HOUR + 3)

    assert before == []
    assert _states(driver) == [("o1", OrderState("unknown", 30))]
