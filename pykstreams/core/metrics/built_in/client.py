"""Metrics of an application as a whole: ``stream-metrics``."""

from __future__ import annotations

from typing import Final

from pykstreams.core.metrics.levels import RecordingLevel
from pykstreams.core.metrics.specs import GaugeSpec, MetricSpec, SensorSpec, Spec
from pykstreams.core.metrics.stats import CumulativeSum

GROUP: Final = "stream-metrics"
_TAGS: Final = ("client-id",)


def _gauge(name: str, description: str, *more_tags: str) -> GaugeSpec:
    return GaugeSpec(GROUP, (*_TAGS, *more_tags), name, description)


VERSION: Final = _gauge("version", "The version of pykstreams")
APPLICATION_ID: Final = _gauge("application-id", "The id of the application")
TOPOLOGY: Final = _gauge("topology-description", "The topology as Topology.describe() prints it")
STATE: Final = _gauge("state", "The state of the application by its name")
CLIENT_STATE: Final = _gauge(
    "client-state",
    "The state of the application as a number (ordinal of Kafka Streams)",
    "application-id",
    "process-id",
)
ALIVE_THREADS: Final = _gauge("alive-stream-threads", "The number of workers that have not ended")
RECORDING_LEVEL: Final = _gauge(
    "recording-level", "metrics.recording.level as a number: 0 INFO, 1 DEBUG, 2 TRACE", "process-id"
)
FAILED_THREADS: Final = SensorSpec(
    GROUP,
    _TAGS,
    RecordingLevel.INFO,
    (MetricSpec("failed-stream-threads", CumulativeSum(), "The number of workers that have failed"),),
)

SPECS: Final[tuple[Spec, ...]] = (
    VERSION,
    APPLICATION_ID,
    TOPOLOGY,
    STATE,
    CLIENT_STATE,
    ALIVE_THREADS,
    RECORDING_LEVEL,
    FAILED_THREADS,
)
