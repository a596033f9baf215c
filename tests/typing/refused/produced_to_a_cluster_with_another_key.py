"""A test on a cluster writes a number as key, and keys are text."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams.testing import EmbeddedCluster


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


with EmbeddedCluster() as cluster:
    # error: arg-type of mypy, reportArgumentType of pyright
    cluster.topic("orders", str, Order).produce(1, Order("ann", 5))
