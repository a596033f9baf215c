"""The example ``fraud_detection.py`` in the test driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from examples.fraud_detection.fraud_detection import CheckedPayment, Payment, build
from pykstreams import KeyValue
from pykstreams.testing import TopologyTestDriver

MINUTE = 60_000


@pytest.fixture
def driver() -> Iterator[TopologyTestDriver]:
    with TopologyTestDriver(build()) as driver:
        yield driver


def _limit(driver: TopologyTestDriver, cents: int | None, minute: int) -> None:
    driver.create_input_topic("limits", str, int).pipe_input("card", cents, minute * MINUTE)


def _pay(driver: TopologyTestDriver, cents: int, minute: int) -> None:
    driver.create_input_topic("payments", str, Payment).pipe_input("card", Payment("shop", cents), minute * MINUTE)


def _alerts(driver: TopologyTestDriver) -> list[KeyValue[str, CheckedPayment]]:
    _pay(driver, 0, 1000)  # stream time goes on, and nothing waits any more
    return driver.create_output_topic("alerts", str, CheckedPayment).read_key_values()


def test_payment_above_the_limit_is_told(driver: TopologyTestDriver) -> None:
    _limit(driver, 100, 0)
    _pay(driver, 100, 1)
    _pay(driver, 101, 2)

    assert _alerts(driver) == [("card", CheckedPayment("shop", 101, 100))]


def test_payment_that_comes_late_is_held_to_the_limit_of_its_time(driver: TopologyTestDriver) -> None:
    _limit(driver, 100, 0)
    _limit(driver, 50, 10)
    _pay(driver, 70, 9)
    _pay(driver, 80, 11)

    assert _alerts(driver) == [("card", CheckedPayment("shop", 80, 50))]


def test_payment_waits_for_a_limit_that_comes_after_it(driver: TopologyTestDriver) -> None:
    _pay(driver, 70, 10)
    _limit(driver, 100, 9)

    assert _alerts(driver) == []


def test_payment_of_a_card_without_a_limit_is_told(driver: TopologyTestDriver) -> None:
    _limit(driver, 100, 0)
    _limit(driver, None, 5)
    _pay(driver, 1, 6)

    assert _alerts(driver) == [("card", CheckedPayment("shop", 1, None))]
