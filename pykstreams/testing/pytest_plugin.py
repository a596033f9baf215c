"""Fixtures for users' own tests, installed as a pytest plugin together with the package.

Every pytest run beside an installed pykstreams loads this module: fixtures import what they need themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import pytest

if TYPE_CHECKING:
    from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
    from pykstreams.testing.driver import TopologyTestDriver

P = ParamSpec("P")
C = TypeVar("C", bound="AbstractContextManager[object]")


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
        yield _closed_by(stack, TopologyTestDriver)


def _closed_by(stack: ExitStack, make: Callable[P, C]) -> Callable[P, C]:
    """Makes a maker of the same whose results are closed with the stack."""

    def made(*args: P.args, **options: P.kwargs) -> C:
        found = make(*args, **options)
        stack.push(found)
        return found

    return made
