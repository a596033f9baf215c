"""Tests of single parts have no second to lose: their clusters are quick ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pykstreams.testing import EmbeddedCluster
from tests.brokers.quick_cluster import quick_cluster


@pytest.fixture
def embedded_cluster() -> Iterator[EmbeddedCluster]:
    """A fresh cluster for one test, as the package's own fixture gives, whose groups start at once."""
    with quick_cluster() as cluster:
        yield cluster
