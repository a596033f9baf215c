"""The timestamp 0: kept by the driver, sent as 1 by a worker, whose client would take it for the current time."""

import logging

import pytest

from pykstreams import StreamsConfig
from pykstreams.core.record import ProducerRecord
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.testing.capture import CapturingProducer


@pytest.mark.parametrize(("takes_time_zero", "sent"), [(True, [0, 7]), (False, [1, 7])])
def test_timestamp_zero_is_sent_as_what_the_producer_takes(takes_time_zero: bool, sent: list[int]) -> None:
    producer = CapturingProducer()
    collector = RecordCollector(
        producer,
        config=StreamsConfig(),
        partition_count=lambda topic: 1,
        takes_time_zero=takes_time_zero,
    )
    for time in (0, 7):
        collector.send(ProducerRecord("out", None, b"x", 0, time))

    assert [record.timestamp for record in producer.take()] == sent


def test_a_worker_says_once_that_it_changes_timestamp_zero(caplog: pytest.LogCaptureFixture) -> None:
    collector = RecordCollector(
        CapturingProducer(),
        config=StreamsConfig(),
        partition_count=lambda topic: 1,
        takes_time_zero=False,
    )
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            collector.send(ProducerRecord("out", None, b"x", 0, 0))

    assert caplog.messages == [
        "a record with timestamp 0 is sent with timestamp 1: the client takes 0 for the time of day"
    ]
