"""Reporters are told of metrics as they come and go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from pykstreams import Consumed, StreamsBuilder, StreamsConfig
from pykstreams.core.errors import ConfigError
from pykstreams.core.metrics import Metric, MetricName, RecordingLevel, StreamsMetrics
from pykstreams.serdes import Serdes
from pykstreams.testing import TopologyTestDriver


class Noting:
    """Takes note of everything."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.configs: Mapping[str, object] = {}

    def configure(self, configs: Mapping[str, object]) -> None:
        self.configs = configs

    def init(self, metrics: Sequence[Metric]) -> None:
        self.told += [("init", metric.name.name) for metric in metrics]

    def metric_change(self, metric: Metric) -> None:
        self.told.append(("change", metric.name.name))

    def metric_removal(self, metric: Metric) -> None:
        self.told.append(("removal", metric.name.name))

    def close(self) -> None:
        self.told.append(("close", ""))


class Failing(Noting):
    def metric_change(self, metric: Metric) -> None:
        raise RuntimeError("no room")


def test_a_reporter_is_told_of_what_there_is_and_of_what_comes_and_goes() -> None:
    metrics, reporter = StreamsMetrics(), Noting()
    metrics.gauge("first", "group", lambda: 1)
    metrics.add_reporter(reporter)

    sensor = metrics.add_rate_total_sensor("scope", "entity", "call", RecordingLevel.INFO)
    metrics.remove_sensor(sensor)
    metrics.close_reporters()
    metrics.gauge("last", "group", lambda: 1)

    assert reporter.told == [
        ("init", "first"),
        ("change", "call-rate"),
        ("change", "call-total"),
        ("removal", "call-rate"),
        ("removal", "call-total"),
        ("close", ""),
    ]


def test_a_reporter_that_fails_is_logged_and_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    metrics, reporter = StreamsMetrics(), Noting()
    metrics.add_reporter(Failing())
    metrics.add_reporter(reporter)

    metrics.gauge("first", "group", lambda: 1)

    assert reporter.told == [("change", "first")]
    assert MetricName("first", "group") in metrics.metrics()
    assert "metrics go on without it" in caplog.text


def test_reporters_of_the_settings_are_configured_and_follow_an_application() -> None:
    reporter = Noting()
    builder = StreamsBuilder()
    builder.stream("in", Consumed(key_serde=Serdes.string(), value_serde=Serdes.string())).foreach(print)
    with TopologyTestDriver(builder.build(), {"metric.reporters": [reporter], "app.room": "north"}):
        pass

    assert reporter.configs["app.room"] == "north"
    assert ("change", "dropped-records-total") in reporter.told
    assert reporter.told[-1] == ("close", "")


def test_a_reporter_may_be_named_by_its_class() -> None:
    config = StreamsConfig({"metric.reporters": [Noting]})

    assert config.metric_reporters == config.metric_reporters
    assert [type(one) for one in config.metric_reporters] == [Noting]


def test_what_is_no_reporter_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"metric\.reporters.*MetricsReporter"):
        StreamsConfig({"metric.reporters": [object()]})
