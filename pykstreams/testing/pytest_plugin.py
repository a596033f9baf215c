"""Fixtures for users' own tests, installed as a pytest plugin together with the package.

Every pytest run beside an installed pykstreams loads this module: fixtures import what they need themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pykstreams.runtime.mock_cluster import EmbeddedCluster


@pytest.fixture
def embedded_cluster() -> Iterator[EmbeddedCluster]:
    """A fresh in-process cluster for one test; topics appear on first use, with four partitions."""
    from pykstreams.runtime.mock_cluster import EmbeddedCluster

    with EmbeddedCluster() as cluster:
        yield cluster
