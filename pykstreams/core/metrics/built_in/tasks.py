"""Metrics of tasks, of their nodes and of the topics that these read and write."""

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
    lowest,
)
from pykstreams.core.metrics.stats import Rate, Value

GROUP: Final = "stream-task-metrics"
NODE_GROUP: Final = "stream-processor-node-metrics"
TOPIC_GROUP: Final = "stream-topic-metrics"
_TAGS: Final = ("thread-id", "task-id")
_NODE_TAGS: Final = (*_TAGS, "processor-node-id")
_TOPIC_TAGS: Final = (*_NODE_TAGS, "topic")
_INFO, _DEBUG = RecordingLevel.INFO, RecordingLevel.DEBUG

PROCESS_TOTAL: Final = "process-total"
DROPPED_TOTAL: Final = "dropped-records-total"

PROCESS_COUNTED: Final = GaugeSpec(GROUP, _TAGS, PROCESS_TOTAL, "The number of records processed")
DROPPED_COUNTED: Final = GaugeSpec(GROUP, _TAGS, DROPPED_TOTAL, "The number of records dropped")
PROCESS_RATE: Final = SensorSpec(
    GROUP, _TAGS, _INFO, (MetricSpec("process-rate", Rate(), "The number of records processed per second"),)
)
DROPPED_RATE: Final = SensorSpec(
    GROUP, _TAGS, _INFO, (MetricSpec("dropped-records-rate", Rate(), "The number of records dropped per second"),)
)
PROCESS_LATENCY: Final = SensorSpec(
    GROUP, _TAGS, _DEBUG, latencies("process", "a record, averaged over a batch of the task,", "ns")
)
LATENESS: Final = SensorSpec(
    GROUP, _TAGS, _DEBUG, average_and_maximum("record-lateness", "time that a record is behind stream time, in ms")
)
ENFORCED: Final = SensorSpec(
    GROUP, _TAGS, _DEBUG, amounts("enforced-processing", "batches processed while an input had nothing to compare with")
)
PROCESS_SHARE: Final = SensorSpec(
    GROUP,
    _TAGS,
    _INFO,
    (MetricSpec("active-process-ratio", Value(), "The share of this task in what its worker has processed, by time"),),
)
BUFFERED: Final = GaugeSpec(GROUP, _TAGS, "active-buffer-count", "The number of records that wait", _DEBUG)
CACHE_SIZE: Final = GaugeSpec(
    GROUP, _TAGS, "cache-size-bytes-total", "The size of the record caches of the task, in bytes", _DEBUG
)
PUNCTUATE: Final = SensorSpec(
    GROUP, _TAGS, _DEBUG, (*calls("punctuate", "calls of punctuators"), *latencies("punctuate", "a punctuator", "ns"))
)
RESTORE: Final = SensorSpec(GROUP, _TAGS, _DEBUG, amounts("restore", "changelog records restored"))
UPDATE: Final = SensorSpec(GROUP, _TAGS, _DEBUG, amounts("update", "changelog records of a standby task"))
REMAINING: Final = SensorSpec(
    GROUP,
    _TAGS,
    _INFO,
    (MetricSpec("restore-remaining-records-total", Value(), "The number of changelog offsets still to be restored"),),
)

NODE_PROCESS: Final = SensorSpec(NODE_GROUP, _NODE_TAGS, _DEBUG, amounts("process", "records that a source was given"))
_E2E: Final = (
    *average_and_maximum("record-e2e-latency", "time from the timestamp of a record until the node was done, in ms"),
    *lowest("record-e2e-latency", "time from the timestamp of a record until the node was done, in ms"),
)
SOURCE_E2E: Final = SensorSpec(NODE_GROUP, _NODE_TAGS, _INFO, _E2E)
"""Of sources: at INFO of the last record of each batch, above of all."""
LAST_E2E: Final = SensorSpec(NODE_GROUP, _NODE_TAGS, _DEBUG, _E2E)
"""Of nodes without children."""
SUPPRESSION_EMIT: Final = SensorSpec(NODE_GROUP, _NODE_TAGS, _DEBUG, calls("suppression-emit", "changes emitted"))
FINAL_EMIT: Final = SensorSpec(
    NODE_GROUP, _NODE_TAGS, _DEBUG, amounts("window-aggregate-final-emit", "results of closed windows emitted")
)
FINAL_EMIT_LATENCY: Final = SensorSpec(
    NODE_GROUP, _NODE_TAGS, _DEBUG, latencies("window-aggregate-final-emit", "emitting the results of closed windows")
)

RECORDS_CONSUMED: Final = GaugeSpec(
    TOPIC_GROUP, _TOPIC_TAGS, "records-consumed-total", "The number of records of a topic that the task was given"
)
BYTES_CONSUMED: Final = GaugeSpec(
    TOPIC_GROUP, _TOPIC_TAGS, "bytes-consumed-total", "The bytes of keys and values of these records", _DEBUG
)
RECORDS_PRODUCED: Final = GaugeSpec(
    TOPIC_GROUP, _TOPIC_TAGS, "records-produced-total", "The number of records sent to a topic", _DEBUG
)
BYTES_PRODUCED: Final = GaugeSpec(
    TOPIC_GROUP, _TOPIC_TAGS, "bytes-produced-total", "The bytes of keys and values sent to a topic", _DEBUG
)

SPECS: Final[tuple[Spec, ...]] = (
    PROCESS_COUNTED,
    PROCESS_RATE,
    PROCESS_LATENCY,
    PROCESS_SHARE,
    DROPPED_COUNTED,
    DROPPED_RATE,
    LATENESS,
    ENFORCED,
    BUFFERED,
    CACHE_SIZE,
    PUNCTUATE,
    RESTORE,
    UPDATE,
    REMAINING,
    NODE_PROCESS,
    SOURCE_E2E,
    SUPPRESSION_EMIT,
    FINAL_EMIT,
    FINAL_EMIT_LATENCY,
    RECORDS_CONSUMED,
    BYTES_CONSUMED,
    RECORDS_PRODUCED,
    BYTES_PRODUCED,
)
