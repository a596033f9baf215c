"""Metrics with the names, groups, tags and recording levels of Kafka Streams."""

from pykstreams.core.metrics.levels import RecordingLevel
from pykstreams.core.metrics.names import MetricName
from pykstreams.core.metrics.registry import Counter, StreamsMetrics
from pykstreams.core.metrics.reporters import MetricsReporter
from pykstreams.core.metrics.sensor import Metric, Sensor
from pykstreams.core.metrics.stats import (
    Avg,
    CumulativeCount,
    CumulativeSum,
    Max,
    Min,
    Rate,
    Recorded,
    Stat,
    Value,
    WindowedCount,
    WindowedSum,
)

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
    "Rate",
    "Recorded",
    "RecordingLevel",
    "Sensor",
    "Stat",
    "StreamsMetrics",
    "Value",
    "WindowedCount",
    "WindowedSum",
]
