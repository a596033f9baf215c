"""A record may wait in the producer for as long as others need to take its task over, and no longer."""

from __future__ import annotations

import math

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.worker.commits.delivery_times import DeliveryTimes


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({}, DeliveryTimes(4, 120), id="defaults"),
        pytest.param(
            {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 3000}, DeliveryTimes(42, 120), id="Java's"
        ),
        pytest.param({"producer.delivery.timeout.ms": 2000}, DeliveryTimes(2, 2), id="less than a takeover"),
        pytest.param({"producer.delivery.timeout.ms": 0}, DeliveryTimes(4, math.inf), id="no end"),
        pytest.param({"producer.linger.ms": 5000}, DeliveryTimes(6, 120), id="the client waits longer"),
    ],
)
def test_times_are_those_of_the_session_within_those_of_the_producer(
    settings: dict[str, object], expected: DeliveryTimes
) -> None:
    config = StreamsConfig({"bootstrap.servers": "localhost:9092", "application.id": "app", **settings})

    assert DeliveryTimes.of(config) == expected
