"""The metrics of an application, and the part of them that belongs to one thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pykstreams.core.clock import Clock, SystemClock
from pykstreams.core.metrics.levels import RecordingLevel
from pykstreams.core.metrics.names import MetricName, sorted_tags
from pykstreams.core.metrics.reporters import MetricsReporter
from pykstreams.core.metrics.sensor import Metric, Sensor
from pykstreams.core.metrics.specs import GaugeSpec, MetricSpec, SensorSpec, calls, latencies
from pykstreams.core.metrics.stats import SampleWindow
from pykstreams.core.shown_values import with_noun

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Counter:
    """A total that only grows."""

    total: int = 0

    def add(self, amount: int = 1) -> None:
        """Adds to the total."""
        self.total += amount


class MetricList:
    """All metrics of an application, and those who are told of them; any thread may use it."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._metrics: dict[MetricName, Metric] = {}
        self._by_tag: dict[tuple[str, str], dict[MetricName, None]] = {}
        """The names that have a tag, so that a task that closes need not look at those of all others."""
        self._reporters: list[MetricsReporter] = []
        self._lock = threading.RLock()
        self.counters: dict[MetricName, Counter] = {}
        self.sensors: dict[tuple[tuple[tuple[str, str], ...], str], Sensor] = {}
        """The sensors of users, by the tags of their threads and by name."""

    def now_ms(self) -> int:
        return self.clock.now_ms()

    def copy(self) -> dict[MetricName, Metric]:
        """A copy of everything there is."""
        with self._lock:
            return dict(self._metrics)

    def list_metric(self, metric: Metric) -> None:
        """Adds a metric, in place of one of the same name."""
        with self._lock:
            self._metrics.pop(metric.name, None)  # or the old name would stay, with its description
            self._metrics[metric.name] = metric
            for tag in metric.name.tags:
                self._by_tag.setdefault(tag, {})[metric.name] = None
            reporters = tuple(self._reporters)
        for reporter in reporters:
            _tell(reporter.metric_change, metric)

    def has(self, names: Iterable[MetricName]) -> bool:
        """Whether all of these are listed."""
        with self._lock:
            return all(name in self._metrics for name in names)

    def tagged(self, tags: Collection[tuple[str, str]]) -> list[MetricName]:
        """The names that have all these tags."""
        with self._lock:
            fewest = min((self._by_tag.get(tag, {}) for tag in tags), key=len, default=self._metrics)
            return [name for name in fewest if all(tag in name.tags for tag in tags)]

    def remove(self, names: Iterable[MetricName]) -> None:
        """Removes metrics; those that are not there are passed over."""
        with self._lock:
            gone = [metric for name in names if (metric := self._metrics.pop(name, None)) is not None]
            for metric in gone:
                self.counters.pop(metric.name, None)
                for tag in metric.name.tags:
                    known = self._by_tag[tag]
                    known.pop(metric.name, None)
                    if not known:
                        del self._by_tag[tag]
            reporters = tuple(self._reporters)
        for metric in gone:
            for reporter in reporters:
                _tell(reporter.metric_removal, metric)

    def add_reporter(self, reporter: MetricsReporter) -> None:
        """Reports all metrics to a reporter from now on, those that there are at once."""
        with self._lock:
            found = tuple(self._metrics.values())
            self._reporters.append(reporter)
        _tell(reporter.init, found)

    def close_reporters(self) -> None:
        """Ends the reporters; a second call does nothing."""
        with self._lock:
            reporters, self._reporters = self._reporters, []
        for reporter in reporters:
            _tell(reporter.close)


class StreamsMetrics:
    """The metrics of an application, or those of one of its threads, which have its tags besides.

    User code gets it as ``context.metrics``.

    >>> metrics = StreamsMetrics()
    >>> sensor = metrics.add_rate_total_sensor("payment", "gateway", "refusals", RecordingLevel.INFO)
    >>> sensor.record()
    >>> {name.name: metric.value for name, metric in metrics.metrics().items()}["refusals-total"]
    1.0

    :param level: what is recorded (``metrics.recording.level``).
    :param window_ms: the length of a sample (``metrics.sample.window.ms``).
    :param samples: how many samples windowed statistics look at (``metrics.num.samples``).
    """

    __slots__ = ("_list", "_samples", "_tags", "_window_ms", "level")

    def __init__(
        self,
        *,
        level: RecordingLevel = RecordingLevel.INFO,
        window_ms: int = 30_000,
        samples: int = 2,
        clock: Clock | None = None,
    ) -> None:
        self.level = level
        self._window_ms = window_ms
        self._samples = samples
        self._list = MetricList(SystemClock() if clock is None else clock)
        self._tags: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<StreamsMetrics at {self.level.name} with {with_noun(len(self.metrics()), 'metric')}>"

    def with_tags(self, **tags: str) -> StreamsMetrics:
        """The same metrics, for one who adds some with these tags besides."""
        made = StreamsMetrics.__new__(StreamsMetrics)
        made.level, made._window_ms, made._samples, made._list = self.level, self._window_ms, self._samples, self._list
        made._tags = {**self._tags, **tags}
        return made

    def metrics(self) -> dict[MetricName, Metric]:
        """A copy of everything there is, of all threads."""
        return self._list.copy()

    def __iter__(self) -> Iterator[Metric]:
        return iter(self.metrics().values())

    def records(self, level: RecordingLevel) -> bool:
        """Whether sensors of a level are recorded."""
        return self.level.records(level)

    # For user code

    def add_sensor(self, name: str, recording_level: RecordingLevel, *parents: Sensor) -> Sensor:
        """Returns the sensor of that name, made at first use; its metrics are added by ``Sensor.add``.

        What it records, its parents record, too.
        """
        key = (sorted_tags(self._tags), name)
        found = self._list.sensors.get(key)
        if found is None:
            found = self._list.sensors.setdefault(key, self._sensor(name, recording_level, parents))
        return found

    def add_rate_total_sensor(
        self, scope_name: str, entity_name: str, operation_name: str, recording_level: RecordingLevel, **tags: str
    ) -> Sensor:
        """Returns a sensor with ``<operation>-rate`` and ``<operation>-total``: how often it records, and how many.

        The group is ``stream-<scope>-metrics``, and the entity becomes the tag ``<scope>-id``.
        """
        return self._operation(
            scope_name, entity_name, operation_name, recording_level, tags, calls(operation_name, operation_name)
        )

    def add_latency_rate_total_sensor(
        self, scope_name: str, entity_name: str, operation_name: str, recording_level: RecordingLevel, **tags: str
    ) -> Sensor:
        """The same with ``<operation>-latency-avg`` and ``<operation>-latency-max`` of the values recorded."""
        metrics = (
            *calls(operation_name, operation_name),
            *latencies(operation_name, operation_name, "the unit recorded"),
        )
        return self._operation(scope_name, entity_name, operation_name, recording_level, tags, metrics)

    def remove_sensor(self, sensor: Sensor) -> None:
        """Removes a sensor and its metrics; one that is not there may be removed again."""
        for key in [key for key, found in list(self._list.sensors.items()) if found is sensor]:
            self._list.sensors.pop(key, None)
        self._list.remove(sensor.metric_names)

    # For what is built in

    def sensor(self, spec: SensorSpec, **tags: str) -> Sensor:
        """Makes a built-in sensor; its metrics are listed only at a level that records it."""
        made = self._sensor(spec.metrics[0].name, spec.level, ())
        if made.records:
            self._add(made, spec.group, sorted_tags({**self._tags, **tags}), spec.metrics)
        return made

    def lists(self, sensor: Sensor) -> bool:
        """Whether the metrics of a sensor are still listed: they may have been removed by their tags."""
        return self._list.has(sensor.metric_names)

    def add_gauge(self, spec: GaugeSpec, read: Callable[[], float | str], **tags: str) -> None:
        """Adds a built-in metric that is read when asked for, if the level is recorded."""
        if self.records(spec.level):
            name = MetricName(spec.name, spec.group, sorted_tags({**self._tags, **tags}), spec.description)
            self._list.list_metric(Metric(name, read))

    def counter(self, name: str, group: str, **tags: str) -> Counter:
        """Returns the counter of that name and tags, made on first use."""
        key = MetricName(name, group, sorted_tags({**self._tags, **tags}))
        counter = self._list.counters.get(key)
        if counter is None:
            counter = self._list.counters[key] = Counter()
            self.add_counter(counter, name, group, **tags)
        return counter

    def add_counter(self, counter: Counter, name: str, group: str, description: str = "", **tags: str) -> None:
        """Lists a counter, in place of one of the same name and tags."""
        key = MetricName(name, group, sorted_tags({**self._tags, **tags}), description)
        self._list.counters[key] = counter
        self._list.list_metric(Metric(key, lambda: counter.total))

    def gauge(self, name: str, group: str, read: Callable[[], float | str], **tags: str) -> None:
        """Adds a metric that is read when asked for."""
        self._list.list_metric(Metric(MetricName(name, group, sorted_tags({**self._tags, **tags})), read))

    def remove(self, **tags: str) -> None:
        """Removes every metric that carries all these tags, beside those of this thread, and the sensors of users that
        have none left.
        """
        wanted = frozenset(sorted_tags({**self._tags, **tags}))
        gone = self._list.tagged(wanted)
        self._list.remove(gone)
        for key, sensor in list(self._list.sensors.items()):
            if wanted <= set(key[0]) or sensor.forget(gone):
                self._list.sensors.pop(key, None)

    def add_reporter(self, reporter: MetricsReporter) -> None:
        """Reports all metrics to a reporter from now on, those that there are at once."""
        self._list.add_reporter(reporter)

    def close_reporters(self) -> None:
        """Ends the reporters; a second call does nothing."""
        self._list.close_reporters()

    def _sensor(self, name: str, level: RecordingLevel, parents: Sequence[Sensor]) -> Sensor:
        return Sensor(
            name,
            level,
            records=self.records(level),
            window=SampleWindow(self._window_ms, self._samples),
            clock=self._list.clock,
            home=self._list,
            parents=parents,
        )

    def _operation(
        self,
        scope: str,
        entity: str,
        operation: str,
        level: RecordingLevel,
        tags: dict[str, str],
        metrics: Sequence[MetricSpec],
    ) -> Sensor:
        all_tags = sorted_tags({**self._tags, f"{scope}-id": entity, **tags})
        sensor = self.add_sensor(f"{scope}.{entity}.{operation}{all_tags}", level)
        self._add(sensor, f"stream-{scope}-metrics", all_tags, metrics)
        return sensor

    def _add(
        self, sensor: Sensor, group: str, tags: tuple[tuple[str, str], ...], metrics: Sequence[MetricSpec]
    ) -> None:
        for metric in metrics:
            sensor.add(MetricName(metric.name, group, tags, metric.description), metric.stat)


def _tell(call: Callable[..., None], *arguments: object) -> None:
    """Calls a method of a reporter, whose errors are its own."""
    try:
        call(*arguments)
    except Exception:
        log.exception("a metrics reporter failed in %r; metrics go on without it having been told", call)
