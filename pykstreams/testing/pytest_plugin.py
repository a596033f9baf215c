"""Fixtures for users' own tests, installed as a pytest plugin together with the package.

Every pytest run beside an installed pykstreams loads this module: fixtures import what they need themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
    from pykstreams.testing.driver import TopologyTestDriver


@pytest.fixture
def embedded_cluster() -> Iterator[EmbeddedCluster]:
    """A fresh in-process cluster for one test; topics appear on first use, with four partitions."""
    from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster

    with EmbeddedCluster() as cluster:
        yield cluster


@pytest.fixture
def topology_test_driver() -> Iterator[Callable[..., TopologyTestDriver]]:
    """Makes test drivers: ``topology_test_driver(topology, config, partitions=...)``; closes them after the test."""
    from pykstreams.testing.driver import TopologyTestDriver

    with ExitStack() as stack:

        def make(*args: Any, **options: Any) -> TopologyTestDriver:
            return stack.enter_context(TopologyTestDriver(*args, **options))

        yield make
