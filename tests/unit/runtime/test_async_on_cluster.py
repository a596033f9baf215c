"""Coroutines in a worker on an embedded cluster, with a restart while records are in flight."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from pykstreams import Consumed, KafkaStreams, Produced, Serdes, StreamsBuilder
from pykstreams.core.clock import SystemClock
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
from pykstreams.runtime.streams import GroupMembershipOperation
from tests.brokers.quick_cluster import SHORT_SESSION
from tests.brokers.records import key_of, value_of

TEXT = Serdes.string()
LEAVE = GroupMembershipOperation.LEAVE_GROUP
KEYS = 10
FIRST, SECOND = [str(i) for i in range(200)], [str(i) for i in range(200, 300)]


def send(cluster: EmbeddedCluster, values: list[str]) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for value in values:
        producer.produce("in", value.encode(), key=str(int(value) % KEYS).encode())
    assert producer.flush(10) == 0


def read(consumer: Consumer, count: int) -> list[tuple[str, str]]:
    """Reads until so many results are there, and then whatever else comes at once."""
    found: list[tuple[str, str]] = []
    clock = SystemClock()
    deadline = clock.monotonic() + 60
    while clock.monotonic() < deadline:
        batch = consumer.consume(1000, 0.5)
        found += [(key_of(m).decode(), value_of(m).decode()) for m in batch if m.error() is None]
        if len(found) >= count and not batch:
            break
    return found


@pytest.mark.slow
def test_worker_that_is_stopped_finishes_what_is_in_flight_and_goes_on_behind_it(
    embedded_cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    gate = asyncio.Event()
    waiting = threading.Semaphore(0)
    loops: list[asyncio.AbstractEventLoop] = []

    async def enrich(value: str) -> str:
        if int(value) >= 150:
            loops.append(asyncio.get_running_loop())
            waiting.release()
            await gate.wait()
        return f"<{value}>"

    builder = StreamsBuilder()
    (
        builder.stream("in", Consumed(key_serde=TEXT, value_serde=TEXT))
        .map_values_async(enrich, max_in_flight=20)
        .to("out", Produced(key_serde=TEXT, value_serde=TEXT))
    )
    config = {
        "application.id": "enrich",
        "bootstrap.servers": embedded_cluster.bootstrap_servers,
        "state.dir": str(tmp_path),
        "commit.interval.ms": 100,
        **SHORT_SESSION,
    }
    embedded_cluster.create_topics("in", "out")
    send(embedded_cluster, FIRST)
    reader = Consumer(
        {"bootstrap.servers": embedded_cluster.bootstrap_servers, "group.id": "r", "auto.offset.reset": "earliest"}
    )
    reader.subscribe(["out"])
    first = KafkaStreams(builder.build(), config)
    first.start()
    for _ in range(4):  # one record waits in some task at least, and more are about to
        assert waiting.acquire(timeout=30)
    stopping = threading.Thread(target=lambda: first.close(30_000, group_membership=LEAVE))
    stopping.start()
    loops[0].call_soon_threadsafe(gate.set)
    stopping.join()
    second = KafkaStreams(builder.build(), config)
    second.start()
    send(embedded_cluster, SECOND)
    found = read(reader, len(FIRST) + len(SECOND))
    second.close(30_000, group_membership=LEAVE)
    reader.close()

    by_key = defaultdict(list)
    for key, value in found:
        by_key[key].append(value)
    assert by_key == {
        str(key): [f"<{value}>" for value in (*FIRST, *SECOND) if int(value) % KEYS == key] for key in range(KEYS)
    }
