"""Metrics as Prometheus scrapes them, read by the parser of its own client."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from pykstreams.core.errors import StreamsError
from pykstreams.metrics import PrometheusCollector, RecordingLevel, StreamsMetrics, prometheus_text, sources
from pykstreams.metrics.sources import HasMetrics
from tests.unit.runtime.metrics.measured import SOURCE, START, counting, driver, texts

THREAD = {"thread_id": "MainThread", "task_id": "0_0"}


def families(*sources: HasMetrics) -> dict[str, Family]:
    body, content_type = prometheus_text(*sources)

    assert content_type.startswith("text/plain")
    return {family.name: family for family in text_string_to_metric_families(body.decode())}


def test_totals_are_counters_and_the_rest_are_gauges_with_tags_as_labels() -> None:
    with driver(counting()) as on:
        texts(on).pipe_input("k", "a", timestamp=START - 5)
        found = families(on)

    processed = found["kafka_streams_task_process"]
    assert processed.type == "counter"
    assert [(one.name, one.labels, one.value) for one in processed.samples] == [
        ("kafka_streams_task_process_total", THREAD, 1)
    ]
    age = found["kafka_streams_processor_node_record_e2e_latency_max"]
    assert age.type == "gauge"
    assert [(one.labels, one.value) for one in age.samples] == [({**THREAD, "processor_node_id": SOURCE}, 5)]
    assert age.documentation


def test_stores_of_all_kinds_share_one_label_and_tell_their_kind() -> None:
    with driver(counting()) as on:
        (sample,) = families(on)["kafka_streams_state_estimate_num_keys"].samples

    assert sample.labels == {**THREAD, "state_id": "counts", "store_scope": "rocksdb"}


def test_what_has_no_value_yet_is_left_out() -> None:
    with driver(counting()) as on:
        assert "kafka_streams_processor_node_record_e2e_latency_max" not in families(on)


def test_a_text_becomes_a_label_whatever_is_in_it() -> None:
    metrics = StreamsMetrics()
    metrics.gauge("topology-description", "stream-metrics", lambda: 'Sub-topology: "0"\n\\ end', client_id="c")
    (sample,) = families(metrics)["kafka_streams_topology_description"].samples

    assert sample.value == 1
    assert sample.labels == {"client_id": "c", "topology_description": 'Sub-topology: "0"\n\\ end'}


def test_several_applications_of_a_process_are_one_page() -> None:
    first, second = StreamsMetrics(), StreamsMetrics()
    for number, metrics in enumerate((first, second)):
        metrics.gauge("state", "stream-metrics", lambda: 1, client_id=str(number))

    assert [one.labels["client_id"] for one in families(first, second)["kafka_streams_state"].samples] == ["0", "1"]


def test_the_collector_goes_into_a_registry_of_the_users() -> None:
    registry = CollectorRegistry()
    with driver(counting()) as on:
        registry.register(PrometheusCollector(on))
        texts(on).pipe_input("k", "a")

        assert registry.get_sample_value("kafka_streams_task_process_total", THREAD) == 1


def test_without_the_client_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with pytest.raises(StreamsError, match=r"pip install pykstreams\[prometheus\]"):
        prometheus_text(StreamsMetrics())


def test_a_number_that_may_fall_is_no_counter() -> None:
    with driver(counting(), "DEBUG") as on:
        texts(on).pipe_input("k", "a")

        assert families(on)["kafka_streams_task_cache_size_bytes_total"].type == "gauge"


@pytest.mark.parametrize(
    ("tag", "value", "labels"),
    [
        ("2xx", "no", {"_2xx": "no"}),
        ("a.b", "c", {"a_b": "c"}),
        ("partition", 3, {"partition": "3"}),
    ],
)
def test_a_tag_of_a_user_never_spoils_the_page(tag: str, value: Any, labels: dict[str, str]) -> None:
    metrics = StreamsMetrics()
    metrics.add_rate_total_sensor("shop", "till", "sale", RecordingLevel.INFO, **{tag: value}).record()
    metrics.gauge("sound", "group", lambda: 5.0)
    found = families(metrics)

    assert found["kafka_streams_group_sound"].samples
    (sample,) = found["kafka_streams_shop_sale"].samples
    assert sample.labels == {"shop_id": "till", **labels}


def no_disk() -> float:
    raise OSError("no disk")


def no_number() -> Any:
    return None


@pytest.mark.parametrize("broken", [no_disk, no_number])
def test_a_gauge_that_raises_or_gives_no_number_is_left_out_and_logged_once(
    broken: Callable[[], float], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_broken", set())
    metrics = StreamsMetrics()

    metrics.gauge("broken", "group", broken)
    metrics.gauge("sound", "group", lambda: 5.0)
    pages = [prometheus_text(metrics)[0].decode() for _ in range(2)]

    assert all("sound 5.0" in page and "broken" not in page for page in pages)
    assert [record.message for record in caplog.records if "broken" in record.message] == [
        "metric broken of group cannot be read, and is left out; it is said once"
    ]
