"""How long rebalances take."""

from __future__ import annotations

import pytest

from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.metrics.rebalance_metrics import RebalanceMetrics
from pykstreams.runtime.metrics.thread_metrics import ThreadMetrics
from pykstreams.testing import MockClock

NAMES = ("tasks-assigned-latency-max", "tasks-revoked-latency-max", "tasks-lost-latency-max")


def longest(metrics: StreamsMetrics) -> list[float]:
    """The longest assignment, revocation and loss, in ms."""
    found = {key.name: metric.value for key, metric in metrics.metrics().items()}
    return [found[name] for name in NAMES]


def test_taking_up_tasks_a_last_commit_and_giving_up_all_are_measured_apart() -> None:
    clock = MockClock(0)
    metrics = StreamsMetrics(clock=clock)
    measured = RebalanceMetrics(metrics, clock)
    for context, took_ms in (
        (measured.assigning(), 100),
        (measured.revoking(), 30),
        (measured.assigning(lost=True), 7),
    ):
        with context:
            clock.advance(took_ms)

    assert longest(metrics) == pytest.approx([100, 30, 7])


def test_a_last_commit_that_fails_is_measured_all_the_same() -> None:
    clock = MockClock(0)
    metrics = StreamsMetrics(clock=clock)
    measured = RebalanceMetrics(metrics, clock)
    with pytest.raises(ValueError, match="broken"), measured.revoking():
        clock.advance(30)
        raise ValueError("broken")

    assert longest(metrics)[1] == pytest.approx(30)


def test_they_go_with_the_other_metrics_of_the_worker() -> None:
    clock = MockClock(0)
    everything = StreamsMetrics(clock=clock)
    of_worker = everything.with_tags(thread_id="worker")
    RebalanceMetrics(of_worker, clock)
    assert everything.metrics()

    ThreadMetrics(of_worker, clock).close()

    assert not everything.metrics()
