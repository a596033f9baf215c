"""Records that a worker has given up do not come behind those that it sends in their place."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from confluent_kafka.admin import AdminClient

from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterUnavailableError
from pykstreams.core.record import ProducerRecord
from pykstreams.runtime.clients.producer import WorkerProducer
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier
from pykstreams.runtime.topics.partition_counts import PartitionCounts
from pykstreams.runtime.worker.commits.output import WorkerOutput
from tests.brokers.brokers import Brokers, create_topic
from tests.brokers.records import records_of, value_of
from tests.unit.runtime.worker.commits.steps import steps_over

IN_A_REQUEST_OF_ITS_OWN = 20_000
"""More bytes than a batch has, and so no two such records are in one request."""
FLUSHES = 15
"""Of 2 s each at most."""


def flush_patiently(output: WorkerOutput) -> None:
    """Flushes again while brokers take nothing: one that has just started has no ids for producers, for instance."""
    for _ in range(FLUSHES - 1):
        with contextlib.suppress(ClusterUnavailableError):
            return output.collector.flush()
    output.collector.flush()


def test_records_that_were_given_up_do_not_come_behind_those_that_are_sent_in_their_place(
    three_brokers: Brokers, make_name: Callable[[str], str]
) -> None:
    """A leader that stands still has received several requests, and works off two of them also where their connection
    was closed meanwhile: the second one after what came on a new connection."""
    topic, address = make_name("counts"), three_brokers.bootstrap_servers
    create_topic(address, topic, partitions=1)
    config = StreamsConfig({"application.id": topic, "bootstrap.servers": address, "producer.linger.ms": 0})
    made: list[WorkerProducer] = []

    def make_producer() -> WorkerProducer:
        supplier = DefaultKafkaClientSupplier()
        made.append(WorkerProducer.open(supplier, config, topic, transactional_id=None, record_s=30))
        return made[-1]

    clock = SystemClock()
    output = WorkerOutput(
        config=config,
        clock=clock,
        partition_counts=PartitionCounts(lambda: {topic: 1}, clock, 60_000),
        make_producer=make_producer,
        make_steps=steps_over,
    )

    def send(attempt: str) -> None:
        for number in range(5):
            value = f"{attempt} {number}".encode().ljust(IN_A_REQUEST_OF_ITS_OWN)
            output.collector.send(ProducerRecord(topic, b"key", value, 0))

    send("before")
    flush_patiently(output)
    leader = AdminClient({"bootstrap.servers": address}).list_topics(topic).topics[topic].partitions[0].leader
    with three_brokers.paused(f"kafka-{leader}"):
        send("given up")
        assert made[-1].flush(0.5) == 5
        output.renew()
        send("in their place")
        made[-1].flush(1)
    flush_patiently(output)
    send("afterwards")
    output.close()

    came = [value_of(record).decode().rstrip()[:-2] for record in records_of(address, [topic])]
    assert came == sorted(came, key=["before", "given up", "in their place", "afterwards"].index)
    assert came.count("in their place") == came.count("afterwards") == 5
