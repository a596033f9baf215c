"""The metrics of one task: plain numbers that its worker hands to the sensors a few times a second.

At ``INFO`` a batch costs a few additions, and a record nothing. What has to see each record is made by ``of_records``
when the task is compiled, and only at ``DEBUG``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import Counter, RecordingLevel, Sensor, StreamsMetrics
from pykstreams.core.metrics.built_in import tasks as built_in
from pykstreams.core.metrics.stats import Amounts
from pykstreams.runtime.metrics.record_metrics import RecordMetrics


class _Message(Protocol):
    def key(self) -> bytes | None: ...

    def value(self) -> bytes | None: ...


@dataclass(slots=True)
class _Consumed:
    """One input topic of a task."""

    records: Counter = field(default_factory=Counter)
    bytes: Counter | None = None
    e2e: Amounts = field(default_factory=Amounts)
    sensor: Sensor | None = None


@dataclass(frozen=True, slots=True)
class _Sensors:
    """The sensors of a task, which are listed while it is open."""

    processed: Sensor
    dropped: Sensor
    latency: Sensor
    punctuations: Sensor
    enforced: Sensor
    share: Sensor

    @classmethod
    def listed(cls, metrics: StreamsMetrics, tags: Mapping[str, str]) -> Self:
        return cls(
            processed=metrics.sensor(built_in.PROCESS_RATE, **tags),
            dropped=metrics.sensor(built_in.DROPPED_RATE, **tags),
            latency=metrics.sensor(built_in.PROCESS_LATENCY, **tags),
            punctuations=metrics.sensor(built_in.PUNCTUATE, **tags),
            enforced=metrics.sensor(built_in.ENFORCED, **tags),
            share=metrics.sensor(built_in.PROCESS_SHARE, **tags),
        )


class TaskMetrics:
    """The metrics of a task, listed from ``open`` until ``close``; used on the thread of its worker.

    :param buffered: gives the number of records that wait.
    :param cache_bytes: gives the size of its record caches.
    """

    def __init__(
        self,
        metrics: StreamsMetrics,
        task_id: TaskId,
        *,
        buffered: Callable[[], int],
        cache_bytes: Callable[[], int],
    ) -> None:
        self._metrics = metrics
        self._task = str(task_id)
        self._buffered = buffered
        self._cache_bytes = cache_bytes
        self._debug = metrics.records(RecordingLevel.DEBUG)
        self._consumed: dict[str, _Consumed] = {}
        self._processed_before = self._dropped_before = 0
        self._latency, self._punctuations, self._enforced = Amounts(), Amounts(), Amounts()
        self._sensors: _Sensors | None = None
        self.of_records: RecordMetrics | None = None
        """The metrics that have to see each record; ``None`` at ``INFO``."""
        self.processed, self.dropped = Counter(), Counter()
        self.busy_s = 0.0
        """How long it has processed since the last flush."""

    def open(self, sources: Mapping[str, str]) -> None:
        """Lists the metrics.

        :param sources: the node that reads each input topic.
        """
        metrics, task = self._metrics, {"task_id": self._task}
        counted = (built_in.PROCESS_COUNTED, self.processed), (built_in.DROPPED_COUNTED, self.dropped)
        for spec, counter in counted:
            metrics.add_counter(counter, spec.name, spec.group, spec.description, **task)
        self._sensors = _Sensors.listed(metrics, task)
        metrics.add_gauge(built_in.BUFFERED, self._buffered, **task)
        metrics.add_gauge(built_in.CACHE_SIZE, self._cache_bytes, **task)
        if self._debug:
            self.of_records = RecordMetrics(metrics, self._task)
        for topic, node in sources.items():
            self._consumed[topic] = self._list_topic(topic, node)

    def _list_topic(self, topic: str, node: str) -> _Consumed:
        metrics, tags = self._metrics, {"task_id": self._task, "processor_node_id": node}
        found = _Consumed()
        records, size = built_in.RECORDS_CONSUMED, built_in.BYTES_CONSUMED
        metrics.add_counter(found.records, records.name, records.group, records.description, **tags, topic=topic)
        if self._debug:
            found.bytes = Counter()
            metrics.add_counter(found.bytes, size.name, size.group, size.description, **tags, topic=topic)
        else:
            found.sensor = metrics.sensor(built_in.SOURCE_E2E, **tags)
        return found

    def added(self, topic: str, messages: Sequence[_Message]) -> None:
        """Counts messages of an input that the task was given; their bytes at ``DEBUG`` only."""
        found = self._consumed.get(topic)
        if found is not None and messages:
            found.records.total += len(messages)
            if found.bytes is not None:
                kind = type(messages[0])  # all of one class, whose methods are asked without an object for each
                for part in (kind.key, kind.value):
                    found.bytes.total += sum(map(len, filter(None, map(part, messages))))

    def batch(self, count: int, seconds: float, last: tuple[str, int] | None, now_ms: int) -> None:
        """Counts a batch of processed records.

        :param last: topic and timestamp of the last one, if that is known.
        """
        self.processed.total += count
        self.busy_s += seconds
        if self.of_records is not None:
            self._latency.add(seconds * 1e9 / count)
            self.of_records.note_batch(now_ms)
        elif last is not None and (found := self._consumed.get(last[0])) is not None:
            found.e2e.add(now_ms - last[1])

    def punctuated(self, seconds: float) -> None:
        """Notes one call of a punctuator."""
        if self._debug:
            self._punctuations.add(seconds * 1e9)

    def enforced(self) -> None:
        """Notes a batch that was processed although an input had nothing to compare with."""
        if self._debug:
            self._enforced.add(1)

    def flush(self, now_ms: int, share: float | None) -> None:
        """Hands everything to the sensors; ``share`` is the part of this task in what its worker has processed."""
        sensors = self._sensors
        if sensors is None:
            return
        if share is not None:
            sensors.share.record(share, now_ms)
        self.busy_s = 0.0
        processed, dropped = self.processed.total, self.dropped.total
        if processed != self._processed_before:
            sensors.processed.record(processed - self._processed_before, now_ms)
            self._processed_before = processed
        if dropped != self._dropped_before:
            sensors.dropped.record(dropped - self._dropped_before, now_ms)
            self._dropped_before = dropped
        for consumed in self._consumed.values():
            if consumed.sensor is not None:
                consumed.sensor.take(consumed.e2e, now_ms)
        if self._debug:
            sensors.latency.take(self._latency, now_ms)
            sensors.punctuations.take(self._punctuations, now_ms)
            sensors.enforced.take(self._enforced, now_ms)
        if self.of_records is not None:
            self.of_records.flush(now_ms)

    def close(self) -> None:
        """Removes every metric with the tag of this task, those of its stores included."""
        if self._sensors is not None:
            self._sensors = None
            self._metrics.remove(task_id=self._task)
