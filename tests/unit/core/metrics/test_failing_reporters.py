"""Reporters that fail as they begin."""

from __future__ import annotations

from collections.abc import Sequence

from pykstreams.core.metrics import Metric, StreamsMetrics


class _Failing:
    def init(self, metrics: Sequence[Metric]) -> None:
        raise OSError("no route")

    def metric_change(self, metric: Metric) -> None: ...

    def metric_removal(self, metric: Metric) -> None: ...

    def close(self) -> None: ...


def test_a_reporter_that_fails_as_it_begins_does_not_stop_the_start() -> None:
    metrics = StreamsMetrics()
    metrics.add_reporter(_Failing())
    metrics.counter("total", "group").add()

    assert [metric.metric_value() for metric in metrics] == [1]
