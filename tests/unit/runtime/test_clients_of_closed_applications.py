"""What is left of an application that was closed: no client, without a look for cycles of garbage."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from pykstreams import Consumed, Grouped, Serdes, StreamsBuilder
from pykstreams.core.errors import ConfigError
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.streams import GroupMembershipOperation, KafkaStreams
from tests.brokers.quick_cluster import SHORT_SESSION

C = TypeVar("C")

TEXT = Serdes.string()


class WatchedProducer(Producer):
    """Can have weak references, unlike the one that it is."""


class WatchedConsumer(Consumer):
    """The same of a consumer."""


class Watched(DefaultKafkaClientSupplier):
    """Knows which of the clients that it has made work: they have not been closed, nor freed."""

    def __init__(self) -> None:
        self.clients: list[tuple[str, weakref.ref[Any]]] = []

    @property
    def working(self) -> list[str]:
        return [name for name, client in self.clients if _works(client())]

    def get_admin(self, config: Mapping[str, object]) -> AdminClient:
        return self._noted(super().get_admin(config), config)

    def get_producer(self, config: Mapping[str, object]) -> Producer:
        return self._noted(WatchedProducer(dict(config)), config)

    def get_consumer(self, config: Mapping[str, object]) -> Consumer:
        return self._noted(WatchedConsumer(dict(config)), config)

    get_restore_consumer = get_global_consumer = get_consumer

    def _noted(self, client: C, config: Mapping[str, object]) -> C:
        self.clients.append((str(config["client.id"]), weakref.ref(client)))
        return client


def _works(client: Any) -> bool:
    try:
        return client is not None and client.poll(0) in (0, None)
    except RuntimeError:  # it was closed
        return False


@pytest.fixture
def no_looks_for_cycles() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.slow
@pytest.mark.usefixtures("no_looks_for_cycles")
def test_no_client_of_a_closed_application_waits_for_a_look_for_cycles(
    embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """Until then it would have its threads and its connections."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=TEXT))
    orders.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT)).count(materialized="counts").to_stream().to("out")
    supplier = Watched()
    config = {
        "application.id": "shop",
        "bootstrap.servers": embedded_cluster.bootstrap_servers,
        "state.dir": str(tmp_path),
        "num.stream.threads": 2,
        "default.key.serde": TEXT,
        "default.value.serde": Serdes.long(),
        **SHORT_SESSION,
    }
    streams = KafkaStreams(builder.build(), config, client_supplier=supplier)
    streams.start()
    assert streams.wait_for_state(State.RUNNING, 20_000)
    working = supplier.working
    assert streams.close(20_000, group_membership=GroupMembershipOperation.LEAVE_GROUP)

    assert {name.rpartition("-")[2] for name in working} == {"admin", "consumer", "producer"}
    assert supplier.working == []


@pytest.mark.usefixtures("no_looks_for_cycles")
def test_no_client_is_left_of_an_application_that_could_not_start(
    embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    builder = StreamsBuilder()
    builder.stream("orders", Consumed(key_serde=TEXT, value_serde=TEXT)).to("out")
    supplier = Watched()
    config = {
        "application.id": "shop",
        "bootstrap.servers": embedded_cluster.bootstrap_servers,
        "state.dir": str(tmp_path),
        "processing.guarantee": "exactly_once_v2",
    }
    streams = KafkaStreams(builder.build(), config, client_supplier=supplier)

    with pytest.raises(ConfigError, match="an embedded cluster has no transactions"):
        streams.start()

    assert streams.error is not None
    assert len(supplier.clients) == 1
    assert supplier.working == []
