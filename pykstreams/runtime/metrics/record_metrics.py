"""The metrics that see each record of a task, compiled into its path at ``DEBUG``.

A record is only put at the end of a list; each batch is summed up in C when it is done, and sensors are handed the sums
a few times a second. Of several inputs each is held against stream time as it was before the batch, and against its
own records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import sub
from typing import TypeVar

from pykstreams.core.metrics import Counter, Sensor, StreamsMetrics
from pykstreams.core.metrics.built_in import tasks as built_in
from pykstreams.core.metrics.specs import SensorSpec
from pykstreams.core.metrics.stats import Amounts
from pykstreams.core.types import Forward, Headers, Produce, Sent

T = TypeVar("T")


class _Noted(list[T]):
    """Notes since the last time that they were taken."""

    def taken(self) -> Sequence[T]:
        """Returns what was noted, and forgets it; others may go on noting meanwhile."""
        count = len(self)
        taken = self[:count]
        del self[:count]
        return taken


@dataclass(frozen=True, slots=True)
class _Summed:
    """A sensor, and what it has not been handed yet."""

    sensor: Sensor
    amounts: Amounts = field(default_factory=Amounts)

    def flush(self, now_ms: int) -> None:
        self.sensor.take(self.amounts, now_ms)


@dataclass(frozen=True, slots=True)
class _Source:
    """A source, and the timestamps of the records that it has forwarded."""

    forwarded: _Summed
    e2e: _Summed
    times: _Noted[int] = field(default_factory=_Noted)


@dataclass(frozen=True, slots=True)
class _Produced:
    """One topic of a sink."""

    records: Counter = field(default_factory=Counter)
    bytes: Counter = field(default_factory=Counter)


class RecordMetrics:
    """The measuring callables of one task, and what they have noted."""

    def __init__(self, metrics: StreamsMetrics, task: str) -> None:
        self._metrics = metrics
        self._task = task
        self._sources: list[_Source] = []
        self._ends: list[tuple[_Summed, _Noted[int]]] = []
        self._sinks: dict[str, tuple[_Summed, _Noted[Sent]]] = {}
        self._produced: dict[tuple[str, str], _Produced] = {}
        self._lateness = _Summed(metrics.sensor(built_in.LATENESS, task_id=task))
        self._stream_time = -1

    def at_source(self, node: str, forward: Forward) -> Forward:
        """Wraps the children of a source."""
        source = _Source(self._summed(built_in.NODE_PROCESS, node), self._summed(built_in.SOURCE_E2E, node))
        self._sources.append(source)
        return _noting(forward, source.times)

    def at_end(self, node: str, forward: Forward) -> Forward:
        """Wraps a node without children that is no sink."""
        times: _Noted[int] = _Noted()
        self._ends.append((self._summed(built_in.LAST_E2E, node), times))
        return _noting(forward, times)

    def at_sink(self, node: str, send: Produce) -> Produce:
        """Wraps one of the ways out of a sink."""
        if node not in self._sinks:
            self._sinks[node] = self._summed(built_in.LAST_E2E, node), _Noted()
        note = self._sinks[node][1].append

        def measured(*sent: *Sent) -> None:  # in one piece, as the client takes them
            send(*sent)
            note(sent)

        return measured

    def note_batch(self, now_ms: int) -> None:
        """Sums up what was noted."""
        for source in self._sources:
            times = source.times.taken()
            if times:
                self._note_times(source, times, now_ms)
        for e2e, ended in self._ends:
            e2e.amounts.add_differences(now_ms, ended.taken())
        for node, (e2e, noted) in self._sinks.items():
            sent = noted.taken()
            if sent:
                topics, values, keys, _, _, _, sent_at, _ = zip(*sent, strict=True)
                e2e.amounts.add_differences(now_ms, sent_at)
                self._count_sent(node, topics, values, keys)

    def flush(self, now_ms: int) -> None:
        """Hands everything to the sensors."""
        self.note_batch(now_ms)
        for source in self._sources:
            source.forwarded.flush(now_ms)
            source.e2e.flush(now_ms)
        self._lateness.flush(now_ms)
        for e2e, _ in (*self._ends, *self._sinks.values()):
            e2e.flush(now_ms)

    def _summed(self, spec: SensorSpec, node: str) -> _Summed:
        return _Summed(self._metrics.sensor(spec, task_id=self._task, processor_node_id=node))

    def _note_times(self, source: _Source, times: Sequence[int], now_ms: int) -> None:
        e2e, lateness, before = source.e2e.amounts, self._lateness.amounts, self._stream_time
        source.forwarded.amounts.add(len(times))
        if times[0] >= before and times == sorted(times):
            e2e.add_ascending_differences(now_ms, times)
            lateness.add_zeros(len(times))
            self._stream_time = times[-1]
            return
        e2e.add_differences(now_ms, times)
        highest = list(accumulate(times, max, initial=before))[1:]
        lateness.add_all(list(map(sub, highest, times)))
        self._stream_time = highest[-1]

    def _count_sent(
        self, node: str, topics: Sequence[str], values: Sequence[bytes | None], keys: Sequence[bytes | None]
    ) -> None:
        topic = topics[0]
        if topics.count(topic) == len(topics):
            self._count(node, topic, len(topics), _size(values) + _size(keys))
            return
        for topic, value, key in zip(topics, values, keys, strict=True):
            self._count(node, topic, 1, _size((value, key)))

    def _count(self, node: str, topic: str, records: int, size: int) -> None:
        produced = self._produced.get((node, topic))
        if produced is None:
            produced = self._produced[node, topic] = self._list_topic(node, topic)
        produced.records.total += records
        produced.bytes.total += size

    def _list_topic(self, node: str, topic: str) -> _Produced:
        tags = {"task_id": self._task, "processor_node_id": node, "topic": topic}
        found = _Produced()
        for counter, spec in ((found.records, built_in.RECORDS_PRODUCED), (found.bytes, built_in.BYTES_PRODUCED)):
            self._metrics.add_counter(counter, spec.name, spec.group, spec.description, **tags)
        return found


def _noting(forward: Forward, times: list[int]) -> Forward:
    note = times.append

    def measured(key: object, value: object, timestamp: int, headers: Headers) -> None:
        note(timestamp)
        forward(key, value, timestamp, headers)

    return measured


def _size(parts: Iterable[bytes | None]) -> int:
    return sum(map(len, filter(None, parts)))
