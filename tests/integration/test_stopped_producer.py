"""A process that is stopped for as long as others need to take its tasks over sends nothing of what it had queued."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.integration.conftest import MakeTopic

RECORD_S = 6
QUEUES = """
import sys
from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.clients.producer import WorkerProducer
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier

servers, topic, record_s = sys.argv[1:]
config = StreamsConfig({"application.id": topic, "bootstrap.servers": servers, "producer.linger.ms": 1500})
producer = WorkerProducer.open(
    DefaultKafkaClientSupplier(), config, "queues", transactional_id=None, record_s=float(record_s)
)
failed = []
producer.failures.handler = lambda error, message: failed.append(error.name())
producer.produce(topic, b"first", b"key")
assert producer.flush(30) == 0
for number in range(100):
    producer.produce(topic, str(number).encode(), b"key")
print("queued", flush=True)
sys.stdin.readline()
assert producer.flush(30) == 0
print(sorted(set(failed)), len(failed), flush=True)
"""


@contextmanager
def queued(servers: str, topic: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has queued a hundred records, and waits."""
    command = [sys.executable, "-c", QUEUES, servers, topic, str(RECORD_S)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "queued\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(("stopped_s", "sent"), [(RECORD_S + 1, 1), (0, 101)])
def test_records_in_the_queue_of_a_process_that_was_stopped_for_longer_than_their_time_are_never_sent(
    bootstrap_servers: str, make_topic: MakeTopic, stopped_s: int, sent: int
) -> None:
    topic = make_topic()
    with queued(bootstrap_servers, topic) as process:
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(stopped_s)
        process.send_signal(signal.SIGCONT)
        output, _ = process.communicate("go on\n", timeout=60)

    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": topic})
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30) == (0, sent)
    consumer.close()
    assert output == ("['_MSG_TIMED_OUT'] 100\n" if sent == 1 else "[] 0\n")
