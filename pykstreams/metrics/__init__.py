"""Metrics: what is measured, sensors of your own, reporters."""

from pykstreams.core.metrics import (
    Avg,
    Counter,
    CumulativeCount,
    CumulativeSum,
    Max,
    Metric,
    MetricName,
    MetricsReporter,
    Min,
    Rate,
    Recorded,
    RecordingLevel,
    Sensor,
    Stat,
    StreamsMetrics,
    Value,
    WindowedCount,
    WindowedSum,
)
from pykstreams.metrics.opentelemetry import OpenTelemetryReporter
from pykstreams.metrics.prometheus import PrometheusCollector, prometheus_text

__all__ = [
    "Avg",
    "Counter",
    "CumulativeCount",
    "CumulativeSum",
    "Max",
    "Metric",
    "MetricName",
    "MetricsReporter",
    "Min",
    "OpenTelemetryReporter",
    "PrometheusCollector",
    "Rate",
    "Recorded",
    "RecordingLevel",
    "Sensor",
    "Stat",
    "StreamsMetrics",
    "Value",
    "WindowedCount",
    "WindowedSum",
    "prometheus_text",
]
