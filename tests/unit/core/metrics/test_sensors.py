"""Sensors and their statistics."""

from __future__ import annotations

import math

import pytest

from pykstreams.core.metrics import (
    Avg,
    CumulativeCount,
    CumulativeSum,
    Max,
    MetricName,
    Min,
    Rate,
    RecordingLevel,
    Sensor,
    Stat,
    StreamsMetrics,
    Value,
    WindowedCount,
    WindowedSum,
)
from pykstreams.testing import MockClock
from tests.unit.runtime.membership.adjusted_clock import AdjustedClock

WINDOW_MS = 1000


def registry(level: RecordingLevel = RecordingLevel.INFO, samples: int = 2) -> tuple[StreamsMetrics, MockClock]:
    clock = MockClock(0)
    return StreamsMetrics(level=level, window_ms=WINDOW_MS, samples=samples, clock=clock), clock


def read(metrics: StreamsMetrics, name: str) -> float:
    (found,) = (metric.value for key, metric in metrics.metrics().items() if key.name == name)
    return found


def measured(stat: Stat) -> tuple[StreamsMetrics, MockClock, Sensor]:
    metrics, clock = registry()
    sensor = metrics.add_sensor("test", RecordingLevel.INFO)
    sensor.add(MetricName("it", "group"), stat)
    return metrics, clock, sensor


def test_metrics_and_sensors_say_what_they_are() -> None:
    metrics, _ = registry(RecordingLevel.DEBUG)
    sensor = metrics.add_rate_total_sensor("payment", "gateway", "refusals", RecordingLevel.INFO)

    assert repr(metrics) == "<StreamsMetrics at DEBUG with 2 metrics>"
    assert repr(sensor) == f"<Sensor {sensor.name!r} at INFO>"


@pytest.mark.parametrize(
    ("stat", "expected"),
    [
        (Avg(), 4.0),
        (Max(), 7.0),
        (Min(), 2.0),
        (WindowedSum(), 12.0),
        (WindowedCount(), 3.0),
        (CumulativeSum(), 12.0),
        (CumulativeCount(), 3.0),
        (Value(), 3.0),
        (Rate(), 12.0),
        (Rate(WindowedCount()), 3.0),
    ],
)
def test_a_statistic_reads_what_was_recorded(stat: Stat, expected: float) -> None:
    metrics, _, sensor = measured(stat)

    for value in (2, 7, 3):
        sensor.record(value)

    assert read(metrics, "it") == expected


@pytest.mark.parametrize("stat", [Avg(), Max(), Min(), Value()])
def test_a_statistic_without_values_is_no_number(stat: Stat) -> None:
    metrics, _, _ = measured(stat)

    assert math.isnan(read(metrics, "it"))


@pytest.mark.parametrize("stat", [Avg(), Max(), Min()])
def test_windowed_statistics_forget_what_is_older_than_all_samples(stat: Stat) -> None:
    metrics, clock, sensor = measured(stat)
    sensor.record(9)

    clock.advance(2 * WINDOW_MS - 1)
    assert read(metrics, "it") == 9
    clock.advance(1)

    assert math.isnan(read(metrics, "it"))


def test_totals_are_kept_for_ever() -> None:
    metrics, clock, sensor = measured(CumulativeSum())
    sensor.record(9)

    clock.advance(100 * WINDOW_MS)

    assert read(metrics, "it") == 9


def test_a_rate_takes_all_windows_but_the_current_one_for_full() -> None:
    """``Rate.windowSize``, 4.3.1: or the first value would make it seem high."""
    metrics, clock, sensor = measured(Rate())
    sensor.record(30)

    clock.advance(500)

    assert read(metrics, "it") == 30 / 1.5


def test_a_rate_is_taken_over_the_time_that_its_samples_go_back() -> None:
    metrics, clock, sensor = measured(Rate())
    for _ in range(3):
        sensor.record(10)
        clock.advance(WINDOW_MS)

    # the first sample began 3 s ago, and was recorded to 3 s ago: gone; two are left
    assert read(metrics, "it") == 20 / 2


def set_back_after(value: float, stat: Stat) -> tuple[StreamsMetrics, AdjustedClock, Sensor]:
    """What is measured by a clock that is set back by an hour when it has recorded this value."""
    clock = AdjustedClock(3_600_000)
    metrics = StreamsMetrics(clock=clock)
    sensor = metrics.add_sensor("test", RecordingLevel.INFO)
    sensor.add(MetricName("it", "group"), stat)
    sensor.record(value)
    clock.set_back(3_600_000)
    return metrics, clock, sensor


def test_a_rate_is_right_again_soon_when_the_clock_was_set_back() -> None:
    metrics, clock, sensor = set_back_after(1, Rate())
    for _ in range(600):
        sensor.record()
        clock.advance(1_000)

    assert read(metrics, "it") == 1


@pytest.mark.parametrize("stat", [Avg(), Max(), Min()])
def test_values_from_before_the_clock_was_set_back_are_forgotten(stat: Stat) -> None:
    """Until the clock had caught up they would seem to be of this moment."""
    metrics, _, sensor = set_back_after(9, stat)
    assert math.isnan(read(metrics, "it"))
    sensor.record(2)

    assert read(metrics, "it") == 2


def test_a_sensor_above_the_level_of_the_application_records_nothing() -> None:
    metrics, _ = registry(RecordingLevel.DEBUG)
    for level in RecordingLevel:
        metrics.add_rate_total_sensor("scope", "entity", level.name, level).record()

    assert [read(metrics, f"{level.name}-total") for level in RecordingLevel] == [1, 1, 0]


def test_a_parent_records_what_its_children_do() -> None:
    metrics, _, parent = measured(CumulativeSum())
    child = metrics.add_sensor("child", RecordingLevel.INFO, parent)

    child.record(4)
    parent.record(2)

    assert read(metrics, "it") == 6


def test_a_sensor_of_an_operation_has_the_names_group_and_tags_of_kafka_streams() -> None:
    metrics = registry()[0].with_tags(thread_id="worker-1")
    metrics.add_latency_rate_total_sensor("payment", "gateway", "call", RecordingLevel.INFO, region="north")

    tags = (("payment-id", "gateway"), ("region", "north"), ("thread-id", "worker-1"))
    assert set(metrics.metrics()) == {
        MetricName(f"call-{what}", "stream-payment-metrics", tags)
        for what in ("rate", "total", "latency-avg", "latency-max")
    }


def test_the_same_operation_has_one_sensor_whoever_asks_for_it() -> None:
    """Each task of a worker runs ``init`` of its processors."""
    metrics, _ = registry()
    for _ in range(2):
        metrics.add_rate_total_sensor("scope", "entity", "call", RecordingLevel.INFO).record()

    assert read(metrics, "call-total") == 2


def test_the_same_operation_of_two_threads_has_two_sensors() -> None:
    metrics, _ = registry()
    for thread in ("a", "b"):
        metrics.with_tags(thread_id=thread).add_rate_total_sensor("s", "e", "call", RecordingLevel.INFO).record()

    assert [metric.value for name, metric in metrics.metrics().items() if name.name == "call-total"] == [1, 1]


def test_a_removed_sensor_takes_its_metrics_with_it_and_a_new_one_begins_at_zero() -> None:
    metrics, _ = registry()
    sensor = metrics.add_rate_total_sensor("scope", "entity", "call", RecordingLevel.INFO)
    sensor.record()

    metrics.remove_sensor(sensor)
    metrics.remove_sensor(sensor)

    assert metrics.metrics() == {}
    metrics.add_rate_total_sensor("scope", "entity", "call", RecordingLevel.INFO)
    assert read(metrics, "call-total") == 0


def test_metrics_of_a_thread_are_removed_together() -> None:
    metrics, _ = registry()
    for thread in ("a", "b"):
        metrics.with_tags(thread_id=thread).add_rate_total_sensor("s", "e", "call", RecordingLevel.INFO)

    metrics.with_tags(thread_id="a").remove()

    assert {dict(name.tags)["thread-id"] for name in metrics.metrics()} == {"b"}


def test_a_description_makes_no_other_name() -> None:
    metrics, _, sensor = measured(Value())
    sensor.record(5)

    assert metrics.metrics()[MetricName("it", "group", (), "some text")].value == 5
    assert MetricName("it", "group") != MetricName("other", "group")


def test_a_metric_may_be_a_text() -> None:
    metrics, _ = registry()
    metrics.gauge("version", "group", lambda: "1.2")
    (metric,) = metrics

    assert (metric.text, metric.metric_value()) == ("1.2", "1.2")
    assert math.isnan(metric.value)


def test_metrics_are_removed_by_all_of_their_tags() -> None:
    metrics, _ = registry()
    for task in ("0_0", "0_1"):
        for store in ("a", "b"):
            metrics.gauge("rows", "group", lambda: 1, task_id=task, store=store)

    metrics.remove(task_id="0_0", store="a")
    metrics.remove(task_id="0_1")
    metrics.remove(task_id="0_1")

    assert [name.tags for name in metrics.metrics()] == [(("store", "b"), ("task-id", "0_0"))]


def test_a_sensor_with_the_tag_of_a_task_is_listed_again_when_the_task_comes_back() -> None:
    metrics = registry()[0].with_tags(thread_id="worker-1")
    for _ in range(2):
        metrics.add_rate_total_sensor("shop", "till", "sale", RecordingLevel.INFO, task_id="0_0").record()
        assert read(metrics, "sale-total") == 1

        metrics.remove(task_id="0_0")
        assert metrics.metrics() == {}


def test_a_sensor_of_several_tasks_keeps_the_metrics_of_those_that_stay() -> None:
    metrics = registry()[0].with_tags(thread_id="worker-1")
    names = [MetricName("sales", "shop", (("task-id", task), ("thread-id", "worker-1"))) for task in ("0_0", "0_1")]
    sensor = metrics.add_sensor("sales", RecordingLevel.INFO)
    for name in names:
        sensor.add(name, CumulativeCount())
    sensor.record()

    metrics.remove(task_id="0_0")

    assert set(metrics.metrics()) == {names[1]}
    assert metrics.add_sensor("sales", RecordingLevel.INFO) is sensor
    assert sensor.add(names[0], CumulativeCount())
    assert {name: metric.value for name, metric in metrics.metrics().items()} == dict.fromkeys(names, 1)
