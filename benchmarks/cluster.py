"""The cluster of a benchmark: a broker, its topics and a schema registry."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.broker import benchmark_broker
from benchmarks.registry import Schemas, schema_registry
from benchmarks.topics.avro_events import SCHEMA_TEXT
from benchmarks.topics.fill import Topics


@dataclass(frozen=True, slots=True)
class Cluster:
    """The addresses that programs get, and the topics behind them."""

    brokers: str
    registry: str
    topics: Topics


@contextlib.contextmanager
def benchmark_cluster() -> Iterator[Cluster]:
    """A cluster for the length of a block."""
    with benchmark_broker() as brokers, schema_registry(Schemas(SCHEMA_TEXT)) as registry:
        yield Cluster(brokers, registry, Topics(brokers))
