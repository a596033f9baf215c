"""Fixtures for users' own tests, installed as a pytest plugin together with the package.

Every pytest run beside an installed pykstreams loads this module: fixtures import what they need themselves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import pytest

if TYPE_CHECKING:
    from pykstreams.testing.clusters import EmbeddedCluster, KafkaCluster
    from pykstreams.testing.driver import TopologyTestDriver

P = ParamSpec("P")
C = TypeVar("C", bound="AbstractContextManager[object]")


@pytest.fixture
def embedded_cluster() -> Iterator[EmbeddedCluster]:
    """A fresh in-process cluster for one test; topics appear on first use, with four partitions.

    ``embedded_cluster.topic("orders", str, Order)`` produces and reads typed records.
    """
    from pykstreams.testing.clusters import EmbeddedCluster

    with EmbeddedCluster() as cluster:
        yield cluster


@pytest.fixture
def topology_test_driver() -> Iterator[Callable[..., TopologyTestDriver]]:
    """Makes test drivers: ``topology_test_driver(topology, config, partitions=...)``; closes them after the test."""
    from pykstreams.testing.driver import TopologyTestDriver

    with ExitStack() as stack:
        yield _closed_by(stack, TopologyTestDriver)


@pytest.fixture(scope="session")
def kafka_address() -> Iterator[str]:
    """The address of a broker: ``KAFKA_BOOTSTRAP_SERVERS``, else one in Docker, else the one on ``localhost:9092``.

    Tests that need it are skipped where there is none; with ``REQUIRE_KAFKA=1`` they fail.
    """
    from pykstreams.testing.brokers import NoKafkaError, ThisMachine, broker

    with ExitStack() as stack:
        try:
            address = stack.enter_context(broker(os.environ, ThisMachine()))
        except NoKafkaError as error:
            if os.environ.get("REQUIRE_KAFKA") == "1":
                pytest.fail(str(error))
            pytest.skip(str(error))
        yield address


@pytest.fixture
def kafka(kafka_address: str) -> Iterator[KafkaCluster]:
    """A real cluster for one test, on a broker that all tests share: ``kafka.topic("orders", str, Order)`` creates a
    topic, which is deleted after the test.
    """
    from pykstreams.testing.clusters import KafkaCluster

    cluster = KafkaCluster(kafka_address)
    yield cluster
    cluster.clean_up()


def _closed_by(stack: ExitStack, make: Callable[P, C]) -> Callable[P, C]:
    """Makes a maker of the same whose results are closed with the stack."""

    def made(*args: P.args, **options: P.kwargs) -> C:
        found = make(*args, **options)
        stack.push(found)
        return found

    return made
