"""The metrics that see each record of a task, compiled into its path at ``DEBUG``.

A record only appends a number or two to lists; they are summed up, in C, at the end of each batch. Of several inputs
each is held against stream time as it was before the batch, and against its own records.
"""

from __future__ import annotations

from itertools import accumulate

from pykstreams.core.metrics import Sensor, StreamsMetrics
from pykstreams.core.metrics.built_in import tasks as built_in
from pykstreams.core.metrics.stats import Amounts
from pykstreams.core.types import Forward, Headers, Produce


class RecordMetrics:
    """The measuring callables of one task, and what they have noted."""

    def __init__(self, metrics: StreamsMetrics, task: str) -> None:
        self._metrics = metrics
        self._task = task
        self._sources: list[tuple[Sensor, Sensor, list[int]]] = []
        self._last: dict[str, tuple[Sensor, list[int]]] = {}
        self._sent: dict[tuple[str, str], tuple[Sensor, list[int]]] = {}
        self._lateness = metrics.sensor(built_in.LATENESS, task_id=task)
        self._stream_time = -1

    def at_source(self, node: str, forward: Forward) -> Forward:
        """Wraps the children of a source."""
        noted: list[int] = []
        counted = self._metrics.sensor(built_in.NODE_PROCESS, task_id=self._task, processor_node_id=node)
        e2e = self._metrics.sensor(built_in.SOURCE_E2E, task_id=self._task, processor_node_id=node)
        self._sources.append((counted, e2e, noted))
        return _noting(forward, noted)

    def at_end(self, node: str, forward: Forward) -> Forward:
        """Wraps a node without children that is no sink."""
        return _noting(forward, self._ages_of(node))

    def at_sink(self, node: str, send: Produce) -> Produce:
        """Wraps one of the ways out of a sink."""
        note_time = self._ages_of(node).append
        last_topic = ""
        unused: list[int] = []
        note_size = unused.append

        def measured(
            topic: str,
            value: bytes | None,
            key: bytes | None,
            partition: int,
            callback: None,
            on_delivery: None,
            timestamp: int,
            headers: Headers | None,
        ) -> None:
            nonlocal last_topic, note_size
            send(topic, value, key, partition, callback, on_delivery, timestamp, headers)
            note_time(timestamp)
            if topic != last_topic:
                last_topic, note_size = topic, self._sizes_of(node, topic).append
            note_size((len(value) if value else 0) + (len(key) if key else 0))

        return measured

    def _ages_of(self, node: str) -> list[int]:
        if node not in self._last:
            sensor = self._metrics.sensor(built_in.LAST_E2E, task_id=self._task, processor_node_id=node)
            self._last[node] = sensor, []
        return self._last[node][1]

    def _sizes_of(self, node: str, topic: str) -> list[int]:
        if (node, topic) not in self._sent:
            tags = {"task_id": self._task, "processor_node_id": node, "topic": topic}
            self._sent[node, topic] = self._metrics.sensor(built_in.PRODUCED, **tags), []
        return self._sent[node, topic][1]

    def flush(self, now_ms: int) -> None:
        """Hands everything to the sensors."""
        amounts = Amounts()
        for counted, e2e, noted in self._sources:
            times = _taken(noted)
            if not times:
                continue
            amounts.add(len(times))
            counted.take(amounts, now_ms)
            before = self._stream_time
            if times[0] >= before and times == sorted(times):
                amounts.add_zeros(len(times))
            else:
                highest = accumulate(times, max, initial=before)
                amounts.add_all([max(0, known - time) for known, time in zip(highest, times, strict=False)])
            self._stream_time = max(before, max(times))
            self._lateness.take(amounts, now_ms)
            amounts.add_differences(now_ms, times)
            e2e.take(amounts, now_ms)
        for sensor, noted in self._last.values():
            amounts.add_differences(now_ms, _taken(noted))
            sensor.take(amounts, now_ms)
        for sensor, noted in self._sent.values():
            amounts.add_all(_taken(noted))
            sensor.take(amounts, now_ms)


def _noting(forward: Forward, noted: list[int]) -> Forward:
    note = noted.append

    def measured(key: object, value: object, timestamp: int, headers: Headers) -> None:
        note(timestamp)
        forward(key, value, timestamp, headers)

    return measured


def _taken(noted: list[int]) -> list[int]:
    """Returns what was noted, and forgets it; others may go on noting meanwhile."""
    count = len(noted)
    taken = noted[:count]
    del noted[:count]
    return taken
