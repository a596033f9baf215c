"""The keys of the last records of topics: of every partition, no more than were asked for, and without waiting long."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
from confluent_kafka import Producer

from pykstreams import StreamsConfig
from pykstreams.core.clock import SystemClock
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch, RestoreConsumer
from pykstreams.runtime.clients.inspection.latest_keys import RECORDS, LatestKeys
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.topology.placement.key_placement import by_crc32
from tests.unit.runtime.cluster_fakes import FakeClock

P0, P1 = TopicPartition("in", 0), TopicPartition("in", 1)


class Log:
    """Two partitions, of offsets 0 to 999 and 5 to 9, with the offset of each record as its key."""

    def __init__(self, clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.assigned: dict[TopicPartition, int] = {}
        self.silent: set[TopicPartition] = set()
        self.fetches = 0

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {place: {P0: 0, P1: 5}.get(place, 0) for place in partitions}

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {place: {P0: 1000, P1: 10}.get(place, 0) for place in partitions}

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        self.assigned.update(positions)

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        for place in partitions:
            del self.assigned[place]

    def fetch(self, timeout: float) -> RestoreBatch:
        self.fetches += 1
        self.clock.advance(timeout)
        batch = RestoreBatch()
        for place, start in self.assigned.items():
            if place not in self.silent:
                end = {P0: 1000, P1: 10}[place]
                batch.runs[place] = [RawMessage("in", 0, at, 0, str(at).encode(), None, ()) for at in range(start, end)]
                batch.positions[place] = end
        return batch

    def close(self) -> None:
        """Nothing is open."""


def test_last_records_of_each_partition_are_read() -> None:
    log = Log()

    found = LatestKeys(log, log, log.clock).read({"in": 2})

    assert found[P0] == [str(at).encode() for at in range(1000 - RECORDS // 2, 1000)]
    assert found[P1] == [str(at).encode() for at in range(5, 10)]
    assert log.assigned == {}


def test_brokers_that_are_slow_are_not_waited_for_long() -> None:
    log = Log()
    log.silent.add(P0)

    found = LatestKeys(log, log, log.clock).read({"in": 2})

    assert [*found] == [P1]
    assert log.clock.seconds - FakeClock().seconds == pytest.approx(5, abs=0.2)
    assert log.assigned == {}


def test_empty_topics_are_not_read_at_all() -> None:
    log = Log()

    assert LatestKeys(log, log, log.clock).read({"empty": 3}) == {}
    assert LatestKeys(log, log, log.clock).read({}) == {}
    assert log.fetches == 0


class _Ends:
    """An embedded cluster does not tell where its partitions end."""

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 0)

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 50)


def test_client_reads_up_to_the_end_of_a_partition_that_has_fewer_records(embedded_cluster: EmbeddedCluster) -> None:
    embedded_cluster.create_topics("in")
    keys = [str(number).encode() for number in range(100)]
    producer = Producer({"bootstrap.servers": embedded_cluster.bootstrap_servers})
    for key in keys:
        producer.produce("in", key=key)
    assert producer.flush(10) == 0
    config = StreamsConfig({"application.id": "shop", "bootstrap.servers": embedded_cluster.bootstrap_servers})
    reader = RestoreConsumer.open_sample(config.client_supplier, config, "sample")
    try:
        found = LatestKeys(reader, _Ends(), SystemClock()).read({"in": 4})
    finally:
        reader.close()

    assert {place.partition: set(of) for place, of in found.items()} == {
        partition: {key for key in keys if by_crc32(key, 4) == partition} for partition in range(4)
    }
