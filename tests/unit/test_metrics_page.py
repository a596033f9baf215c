"""``docs/reference/metrics.md`` is what its script makes, and names every metric of Kafka Streams."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from pykstreams import Produced, Serdes, StreamsBuilder
from pykstreams.core.metrics.built_in.all_specs import ALL
from pykstreams.core.metrics.specs import each_metric
from tests.unit.runtime.metrics.measured import READ, TEXT, driver, texts

ROOT = Path(__file__).parents[2]
OF_KAFKA = (ROOT / "tests" / "golden" / "kafka_streams_metrics.txt").read_text().splitlines()
"""The metrics that Kafka Streams 4.3.1 has, by group and name."""

OURS = {f"{group}: {name}" for group, name, *_ in each_metric(ALL)}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = spec_from_file_location("metrics_page", ROOT / "scripts" / "metrics_page.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_script_makes(script: ModuleType) -> None:
    assert script.PAGE.read_text() == script.page()


def test_every_metric_of_kafka_streams_is_there_or_has_a_reason_not_to_be(script: ModuleType) -> None:
    assert set(OF_KAFKA) - OURS == set(script.MISSING)


def test_what_kafka_streams_does_not_have_belongs_to_the_clients() -> None:
    others = {name.split(":")[0] for name in OURS - set(OF_KAFKA)}

    assert others == {"consumer-metrics", "consumer-fetch-manager-metrics", "producer-metrics"}


def test_every_metric_of_a_run_is_on_the_page_with_its_level_and_tags() -> None:
    known = {(group, name): set(tags) for group, name, tags, *_ in each_metric(ALL)}
    builder = StreamsBuilder()
    counts = builder.stream("in", READ).group_by_key().count()
    counts.to_stream().to("out", Produced(key_serde=TEXT, value_serde=Serdes.long()))
    with driver(builder, "TRACE") as on:
        texts(on).pipe_input("k", "a")
        found = {
            (name.group, name.name): {
                "<store-scope>-state-id" if tag.endswith("-state-id") else tag for tag, _ in name.tags
            }
            for name in on.metrics()
        }

    assert {metric: tags for metric, tags in found.items() if known.get(metric) != tags} == {}
