"""Fixtures for tests against Kafka; which Kafka that is, ``tests/brokers/choice.py`` decides once for the run.

The broker starts when the first test asks for it, serves the whole session, and is torn down at its end.
Every test uses topics and groups of its own, named by ``make_name``.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
from collections.abc import Callable, Iterator

import pytest

from tests.brokers import compose, local_broker
from tests.brokers.brokers import Brokers, GivenBrokers, wait_until_ready
from tests.brokers.choice import Flavour, chosen


@pytest.fixture(scope="session")
def bootstrap_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the broker that all tests share."""
    choice = chosen()
    with contextlib.ExitStack() as stack:
        brokers: Brokers | GivenBrokers
        match choice.flavour:
            case Flavour.GIVEN:
                brokers = GivenBrokers(choice.given)
                wait_until_ready(brokers)
            case Flavour.DOCKER:
                directory = tmp_path_factory.mktemp("kafka")
                brokers = stack.enter_context(compose.broker_with({}, f"pytest{os.getpid()}", directory))
            case Flavour.LOCAL:
                brokers = stack.enter_context(local_broker.local_brokers())
            case Flavour.NONE:
                raise AssertionError("a test that needs Kafka was not deselected although there is none")
        yield brokers.bootstrap_servers


@pytest.fixture(scope="session")
def make_name() -> Callable[[str], str]:
    """A factory of names for topics, groups and applications that no other test, and no other run, uses."""
    run = secrets.token_hex(3)
    numbers = itertools.count(1)

    def make(prefix: str = "test") -> str:
        # of one length, since names are compared where they are within records
        return f"{prefix}-{run}-{next(numbers):03}"

    return make
