"""Fixtures for tests against Kafka, besides those of ``tests/brokers``: topics, and brokers for one test."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.brokers import compose, local_broker
from tests.brokers.brokers import Brokers, create_topic
from tests.brokers.choice import Flavour, chosen
from tests.brokers.settings import ONE_BROKER


class MakeTopic(Protocol):
    """``make_topic("orders", partitions=2, cleanup_policy="compact")`` gives the name of a new topic."""

    def __call__(self, prefix: str = "topic", *, partitions: int = 1, **settings: object) -> str: ...


@pytest.fixture
def make_topic(bootstrap_servers: str, make_name: Callable[[str], str]) -> MakeTopic:
    """A factory of topics on the shared broker."""

    def make(prefix: str = "topic", *, partitions: int = 1, **settings: object) -> str:
        name = make_name(prefix)
        create_topic(bootstrap_servers, name, partitions=partitions, **settings)
        return name

    return make


@pytest.fixture
def start_broker(make_name: Callable[[str], str], tmp_path: Path) -> Iterator[Callable[..., Brokers]]:
    """A factory of brokers for this test alone, with extra settings, which it may also kill and pause.

    ``start_broker({"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"})``
    """
    with contextlib.ExitStack() as stack:

        def start(settings: dict[str, str] | None = None) -> Brokers:
            extra = settings or {}
            if chosen().flavour is Flavour.LOCAL:
                return stack.enter_context(local_broker.local_brokers({**ONE_BROKER, **extra}))
            project = make_name("pytest")
            directory = tmp_path / project
            directory.mkdir()
            return stack.enter_context(compose.broker_with(extra, project, directory))

        yield start


@pytest.fixture(scope="module")
def three_brokers() -> Iterator[Brokers]:
    """A cluster of three for fail-over tests; one for each test module. Tests leave all nodes running."""
    local = chosen().flavour is Flavour.LOCAL
    cluster = local_broker.three_brokers() if local else compose.three_brokers(f"pytest{os.getpid()}cluster")
    with cluster as brokers:
        yield brokers
