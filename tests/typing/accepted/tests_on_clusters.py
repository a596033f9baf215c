"""Tests an application from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_type

from pykstreams.testing import ClusterTopic, EmbeddedCluster, KafkaCluster


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


def test_records_come_back(embedded_cluster: EmbeddedCluster, kafka: KafkaCluster) -> None:
    orders = embedded_cluster.topic("orders", str, Order)
    assert_type(orders, ClusterTopic[str, Order])
    orders.produce_all([("1", Order("ann", 5))])
    assert orders.read_records(1)[0].value == Order("ann", 5)
    kafka.topic("orders", str, Order, partitions=4).produce("1", Order("ann", 5))
