"""The metrics of one worker: its turns are summed up as plain numbers, and recorded a few times a second."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.metrics import Sensor, StreamsMetrics
from pykstreams.core.metrics.built_in import threads as built_in
from pykstreams.core.metrics.built_in.clients import LAST_POLL
from pykstreams.core.metrics.specs import SensorSpec
from pykstreams.core.metrics.stats import Amounts

FLUSH_S: Final = 0.1
"""How often sensors are given what was summed up."""

_STATES: Final = (
    "CREATED",
    "STARTING",
    "PARTITIONS_REVOKED",
    "PARTITIONS_ASSIGNED",
    "RUNNING",
    "PENDING_SHUTDOWN",
    "DEAD",
)
"""In the order of ``StreamThread.State``, 4.3.1."""


class MeasuredTask(Protocol):
    """The methods of a task that its worker's metrics call."""

    @property
    def busy_s(self) -> float: ...

    def flush_metrics(self, now_ms: int, share: float | None) -> None: ...


class _Noted:
    """A sensor, and what it is given next."""

    __slots__ = ("_amounts", "_sensor", "add")

    def __init__(self, metrics: StreamsMetrics, spec: SensorSpec) -> None:
        self._sensor: Sensor = metrics.sensor(spec)
        self._amounts = Amounts()
        self.add = self._amounts.add

    def flush(self, now_ms: int) -> None:
        self._sensor.take(self._amounts, now_ms)


class ThreadMetrics:
    """The metrics of one worker, from when it is made until ``close``; used on its thread.

    :param metrics: those with the tag of the worker.
    """

    def __init__(self, metrics: StreamsMetrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._all: list[_Noted] = []
        self._poll, self._poll_records = self._noted(built_in.POLL), self._noted(built_in.POLL_RECORDS)
        self._poll_ratio = self._noted(built_in.POLL_RATIO)
        self._process, self._process_latency = self._noted(built_in.PROCESS), self._noted(built_in.PROCESS_LATENCY)
        self._process_records = self._noted(built_in.PROCESS_RECORDS)
        self._process_ratio = self._noted(built_in.PROCESS_RATIO)
        self._punctuate = self._noted(built_in.PUNCTUATE)
        self._punctuate_latency = self._noted(built_in.PUNCTUATE_LATENCY)
        self._punctuate_ratio = self._noted(built_in.PUNCTUATE_RATIO)
        self._commit, self._commit_latency = self._noted(built_in.COMMIT), self._noted(built_in.COMMIT_LATENCY)
        self._commit_ratio = self._noted(built_in.COMMIT_RATIO)
        self._blocked_s = 0.0
        self._flush_at = clock.monotonic()
        metrics.add_gauge(built_in.BLOCKED_TIME, lambda: self._blocked_s * 1e9)

    def describe(self, state: Callable[[], str], process_id: str, last_poll: Callable[[], float], reader: str) -> None:
        """Adds what is told of the worker itself.

        :param state: gives the name of its state.
        :param last_poll: gives the seconds since it polled, -1 before that.
        :param reader: the ``client.id`` of its consumer.
        """
        started_ms = self._clock.now_ms()
        self._metrics.add_gauge(built_in.STATE, state)
        self._metrics.add_gauge(built_in.THREAD_STATE, lambda: _STATES.index(state()), process_id=process_id)
        self._metrics.add_gauge(built_in.START_TIME, lambda: started_ms)
        self._metrics.add_gauge(LAST_POLL, last_poll, client_id=reader)

    def polled(self, seconds: float, records: int) -> None:
        """Notes a poll."""
        self._poll.add(seconds * 1000)
        self._poll_ratio.add(seconds)
        self._blocked_s += seconds
        if records:
            self._poll_records.add(records)

    def processed(self, seconds: float, records: int) -> None:
        """Notes that tasks had their turn."""
        self._process_ratio.add(seconds)
        if records:
            self._process.add(records)
            self._process_latency.add(seconds * 1000 / records)
            self._process_records.add(records)

    def punctuated(self, seconds: float, tasks: int) -> None:
        """Notes that punctuators were looked at, and of how many tasks they ran."""
        self._punctuate_ratio.add(seconds)
        if tasks:
            self._punctuate.add(tasks)
            self._punctuate_latency.add(seconds * 1000)

    def committed(self, seconds: float, tasks: int) -> None:
        """Notes a commit."""
        self._commit.add(tasks)
        self._commit_latency.add(seconds * 1000)
        self._commit_ratio.add(seconds)
        self._blocked_s += seconds

    def turn_ended(self, tasks: Callable[[], Collection[MeasuredTask]]) -> None:
        """Hands everything to the sensors, those of the running tasks, too, if it is time."""
        now = self._clock.monotonic()
        if now < self._flush_at:
            return
        self._flush_at = now + FLUSH_S
        now_ms = self._clock.now_ms()
        for noted in self._all:
            noted.flush(now_ms)
        running = tasks()
        busy_s = sum(task.busy_s for task in running)
        for task in running:
            task.flush_metrics(now_ms, task.busy_s / busy_s if busy_s > 0 else None)

    def close(self) -> None:
        """Removes every metric with the tag of this worker."""
        self._metrics.remove()

    def _noted(self, spec: SensorSpec) -> _Noted:
        made = _Noted(self._metrics, spec)
        self._all.append(made)
        return made


class TaskCounts:
    """Counts the tasks of a worker that come (1) and go (-1)."""

    def __init__(self, metrics: StreamsMetrics) -> None:
        self._created, self._closed = metrics.sensor(built_in.TASK_CREATED), metrics.sensor(built_in.TASK_CLOSED)

    def __call__(self, change: int) -> None:
        (self._created if change > 0 else self._closed).record()
