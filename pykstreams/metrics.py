"""Metrics: names, values and the registry of a worker."""

from pykstreams.core.metrics import Counter, Metric, MetricName, StreamsMetrics

__all__ = ["Counter", "Metric", "MetricName", "StreamsMetrics"]
