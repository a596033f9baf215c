"""Metrics as observable instruments of OpenTelemetry."""

from __future__ import annotations

import sys

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import Gauge, InMemoryMetricReader, Sum

from pykstreams.core.errors import ConfigError
from pykstreams.core.metrics import RecordingLevel, StreamsMetrics
from pykstreams.metrics import OpenTelemetryReporter
from tests.unit.runtime.metrics.measured import counting, driver, texts


def observed(reader: InMemoryMetricReader) -> dict[str, Sum | Gauge]:
    data = reader.get_metrics_data()
    if data is None:
        return {}
    found = [metric for one in data.resource_metrics for scope in one.scope_metrics for metric in scope.metrics]
    return {metric.name: metric.data for metric in found if isinstance(metric.data, Sum | Gauge)}


def test_metrics_of_an_application_are_observed_when_the_sdk_collects() -> None:
    reader = InMemoryMetricReader()
    reporter = OpenTelemetryReporter(MeterProvider([reader]))
    with driver(counting(), settings={"metric.reporters": [reporter]}) as on:
        texts(on).pipe_input("k", "a")
        found = observed(reader)

        processed = found["kafka.streams.task.process-total"]
        assert isinstance(processed, Sum) and processed.is_monotonic
        (point,) = processed.data_points
        assert (point.value, dict(point.attributes or {})) == (1, {"task-id": "0_0", "thread-id": "MainThread"})
        rows = found["kafka.streams.state.estimate-num-keys"]
        assert isinstance(rows, Gauge) and [one.value for one in rows.data_points] == [1]

    assert observed(reader) == {}


def test_metrics_that_go_are_observed_no_more_and_those_of_their_name_that_stay_are() -> None:
    reader, metrics = InMemoryMetricReader(), StreamsMetrics()
    metrics.add_reporter(OpenTelemetryReporter(MeterProvider([reader])))
    sensors = [metrics.add_rate_total_sensor("s", entity, "call", RecordingLevel.INFO) for entity in "ab"]
    metrics.remove_sensor(sensors[0])

    assert [dict(one.attributes or {}) for one in observed(reader)["kafka.streams.s.call-total"].data_points] == [
        {"s-id": "b"}
    ]


def test_a_text_is_an_attribute() -> None:
    reader, metrics = InMemoryMetricReader(), StreamsMetrics()
    metrics.add_reporter(OpenTelemetryReporter(MeterProvider([reader])))
    metrics.gauge("state", "stream-metrics", lambda: "RUNNING")

    (point,) = observed(reader)["kafka.streams.state"].data_points
    assert (point.value, dict(point.attributes or {})) == (1, {"state": "RUNNING"})


def test_a_metric_that_raises_is_left_out_and_others_of_its_name_are_observed(caplog: pytest.LogCaptureFixture) -> None:
    reader, metrics = InMemoryMetricReader(), StreamsMetrics()
    metrics.add_reporter(OpenTelemetryReporter(MeterProvider([reader])))

    def broken() -> float:
        raise OSError("no disk")

    metrics.gauge("free-bytes", "disk-metrics", broken, disk="a")
    metrics.gauge("free-bytes", "disk-metrics", lambda: 5.0, disk="b")

    (point,) = observed(reader)["kafka.streams.disk.free-bytes"].data_points
    assert (point.value, dict(point.attributes or {})) == (5, {"disk": "b"})
    assert "metric free-bytes of disk-metrics cannot be read, and is left out" in caplog.text


def test_without_the_api_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", None)

    with pytest.raises(ConfigError, match=r"pip install pykstreams\[opentelemetry\]"):
        OpenTelemetryReporter()
