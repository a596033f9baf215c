"""The metrics of an application as its settings want them."""

from __future__ import annotations

from typing import cast

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.metrics import MetricsReporter, RecordingLevel, StreamsMetrics


def configured_metrics(config: StreamsConfig, clock: Clock) -> StreamsMetrics:
    """Makes the metrics, which the reporters of ``metric.reporters`` follow from the first one on."""
    metrics = StreamsMetrics(
        level=RecordingLevel(config.metrics_recording_level),
        window_ms=config.metrics_sample_window_ms,
        samples=config.metrics_num_samples,
        clock=clock,
    )
    for reporter in config.metric_reporters:
        metrics.add_reporter(cast("MetricsReporter", reporter))
    return metrics
