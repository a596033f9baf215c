"""The example ``balances.py`` in the test driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from examples.more.balances import Account, build
from pykstreams import Serdes
from pykstreams.serdes import JsonSerde
from pykstreams.testing import TopologyTestDriver


@pytest.fixture
def topics() -> Iterator[tuple[Any, Any]]:
    """The input topic of accounts and the output topic of balances."""
    with TopologyTestDriver(build()) as driver:
        yield (
            driver.create_input_topic("accounts", Serdes.string(), JsonSerde(Account)),
            driver.create_output_topic("balances", Serdes.string(), Serdes.long()),
        )


def test_accounts_of_one_owner_add_up(topics: tuple[Any, Any]) -> None:
    accounts, balances = topics
    accounts.pipe_input("1", Account("ann", 100))
    accounts.pipe_input("2", Account("ann", 20))
    accounts.pipe_input("3", Account("bob", 3))

    assert balances.read_key_values_to_dict() == {"ann": 120, "bob": 3}


def test_changed_account_counts_with_its_last_amount(topics: tuple[Any, Any]) -> None:
    accounts, balances = topics
    accounts.pipe_input("1", Account("ann", 100))
    accounts.pipe_input("1", Account("ann", 70))

    assert balances.read_key_values() == [("ann", 100), ("ann", 70)]


def test_account_that_moves_is_taken_from_one_owner_and_given_to_the_other(topics: tuple[Any, Any]) -> None:
    accounts, balances = topics
    accounts.pipe_input("1", Account("ann", 100))
    accounts.pipe_input("1", Account("bob", 100))

    assert balances.read_key_values() == [("ann", 100), ("ann", 0), ("bob", 100)]


def test_closed_account_is_taken_away(topics: tuple[Any, Any]) -> None:
    accounts, balances = topics
    accounts.pipe_input("1", Account("ann", 100))
    accounts.pipe_input("2", Account("ann", 20))
    accounts.pipe_input("1", None)

    assert balances.read_key_values_to_dict() == {"ann": 20}
