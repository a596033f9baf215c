"""Metrics of a worker: ``stream-thread-metrics``. Its turns are summed up, and recorded a few times a second."""

from __future__ import annotations

from typing import Final

from pykstreams.core.metrics.levels import RecordingLevel
from pykstreams.core.metrics.specs import (
    GaugeSpec,
    MetricSpec,
    SensorSpec,
    Spec,
    amounts,
    average_and_maximum,
    calls,
    latencies,
)
from pykstreams.core.metrics.stats import Rate

GROUP: Final = "stream-thread-metrics"
_TAGS: Final = ("thread-id",)


def _sensor(*metrics: MetricSpec) -> SensorSpec:
    return SensorSpec(GROUP, _TAGS, RecordingLevel.INFO, metrics)


def _ratio(operation: str, doing: str) -> SensorSpec:
    """A sensor of seconds, whose rate is the share of time."""
    return _sensor(MetricSpec(f"{operation}-ratio", Rate(), f"The share of time that the worker spent {doing}"))


POLL: Final = _sensor(*calls("poll", "polls"), *latencies("poll", "a poll"))
POLL_RECORDS: Final = _sensor(*average_and_maximum("poll-records", "number of records of a poll"))
POLL_RATIO: Final = _ratio("poll", "waiting for records")
PROCESS: Final = _sensor(*amounts("process", "records processed"))
PROCESS_LATENCY: Final = _sensor(*latencies("process", "a record, averaged over a turn of the worker,"))
PROCESS_RECORDS: Final = _sensor(*average_and_maximum("process-records", "number of records processed in a turn"))
PROCESS_RATIO: Final = _ratio("process", "processing records")
PUNCTUATE: Final = _sensor(*amounts("punctuate", "tasks whose punctuators ran"))
PUNCTUATE_LATENCY: Final = _sensor(*latencies("punctuate", "the punctuators of a turn"))
PUNCTUATE_RATIO: Final = _ratio("punctuate", "running punctuators")
COMMIT: Final = _sensor(*amounts("commit", "tasks committed"))
COMMIT_LATENCY: Final = _sensor(*latencies("commit", "a commit of all tasks"))
COMMIT_RATIO: Final = _ratio("commit", "committing")
TASK_CREATED: Final = _sensor(*calls("task-created", "tasks created"))
TASK_CLOSED: Final = _sensor(*calls("task-closed", "tasks closed"))
TASKS_ASSIGNED: Final = _sensor(*latencies("tasks-assigned", "taking up an assignment"))
TASKS_REVOKED: Final = _sensor(*latencies("tasks-revoked", "the last commit of tasks that leave"))
TASKS_LOST: Final = _sensor(*latencies("tasks-lost", "giving up tasks after the group went on without this worker"))
BLOCKED_TIME: Final = GaugeSpec(
    GROUP, _TAGS, "blocked-time-ns-total", "How long the worker has waited for Kafka: in polls and commits, in ns"
)
THREAD_STATE: Final = GaugeSpec(
    GROUP, ("process-id", "thread-id"), "thread-state", "The state of the worker as a number (ordinal of Kafka Streams)"
)
STATE: Final = GaugeSpec(GROUP, _TAGS, "state", "The state of the worker by its name")
START_TIME: Final = GaugeSpec(GROUP, _TAGS, "thread-start-time", "When the worker began, in ms since the epoch")

SPECS: Final[tuple[Spec, ...]] = (
    POLL,
    POLL_RECORDS,
    POLL_RATIO,
    PROCESS,
    PROCESS_LATENCY,
    PROCESS_RECORDS,
    PROCESS_RATIO,
    PUNCTUATE,
    PUNCTUATE_LATENCY,
    PUNCTUATE_RATIO,
    COMMIT,
    COMMIT_LATENCY,
    COMMIT_RATIO,
    TASK_CREATED,
    TASK_CLOSED,
    TASKS_ASSIGNED,
    TASKS_REVOKED,
    TASKS_LOST,
    BLOCKED_TIME,
    THREAD_STATE,
    STATE,
    START_TIME,
)
