"""Traces of records follow W3C trace context through a topology."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pykstreams import Grouped, Produced, Serdes, StreamsBuilder
from pykstreams.core.errors import ConfigError
from tests.unit.runtime.metrics.measured import READ, TEXT, driver, pipeline, texts

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
PARENT = (("traceparent", f"00-{TRACE_ID}-b7ad6b7169203331-01".encode()), ("other", b"kept"))
ON: dict[str, object] = {"tracing.enable": True}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter
    provider.shutdown()


def repartitioned() -> StreamsBuilder:
    """Counts by value: through a repartition topic, into a second sub-topology."""
    builder = StreamsBuilder()
    stream = builder.stream("in", READ).select_key(lambda key, value: value)
    stream.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT)).count().to_stream().to(
        "out", Produced(key_serde=TEXT, value_serde=Serdes.long())
    )
    return builder


@pytest.mark.parametrize("cache_bytes", [0, 10_000_000])
def test_one_record_is_one_trace_through_two_sub_topologies(spans: InMemorySpanExporter, cache_bytes: int) -> None:
    with driver(repartitioned(), settings={**ON, "statestore.cache.max.bytes": cache_bytes}) as on:
        texts(on).pipe_input("k", "v", headers=PARENT)
        result = on.create_output_topic("out", TEXT, Serdes.long()).read_record()

    found = spans.get_finished_spans()
    assert {format(span.context.trace_id, "032x") for span in found} == {TRACE_ID}
    processed = [span for span in found if span.name.endswith(" process")]
    published = [span for span in found if span.name.endswith(" publish")]
    first, second = sorted(processed, key=lambda span: span.start_time or 0)
    through, out = sorted(published, key=lambda span: span.start_time or 0)
    assert (first.name, out.name) == ("in process", "out publish")
    assert first.parent is not None and format(first.parent.span_id, "016x") == "b7ad6b7169203331"
    assert through.parent is not None and through.parent.span_id == first.context.span_id
    assert second.parent is not None and second.parent.span_id == through.context.span_id
    behind = second if cache_bytes == 0 else through  # what leaves a cache is sent after the record was processed
    assert out.parent is not None and out.parent.span_id == behind.context.span_id
    headers = dict(result.headers)
    assert headers["traceparent"] == f"00-{TRACE_ID}-{out.context.span_id:016x}-01".encode()
    assert headers["other"] == b"kept"


def test_a_record_without_context_begins_a_trace_of_its_own(spans: InMemorySpanExporter) -> None:
    with driver(pipeline(), settings=ON) as on:
        for value in "ab":
            texts(on).pipe_input("k", value)

    roots = [span for span in spans.get_finished_spans() if span.parent is None]
    assert len(roots) == len({span.context.trace_id for span in roots}) == 2
    assert {(span.attributes or {})["messaging.kafka.offset"] for span in roots} == {"0", "1"}


def test_nothing_is_traced_unless_it_is_switched_on(spans: InMemorySpanExporter) -> None:
    with driver(pipeline()) as on:
        texts(on).pipe_input("k", "a", headers=PARENT)
        result = on.create_output_topic("out", TEXT, TEXT).read_record()

    assert spans.get_finished_spans() == ()
    assert tuple(result.headers) == PARENT


def test_traces_and_metrics_of_records_go_together(spans: InMemorySpanExporter) -> None:
    with driver(pipeline(), "DEBUG", ON) as on:
        texts(on).pipe_input("k", "a")
        totals = [metric.value for name, metric in on.metrics().items() if name.name == "records-produced-total"]

    assert totals == [1]
    assert len(spans.get_finished_spans()) == 2


def test_without_the_api_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)

    with pytest.raises(ConfigError, match=r"pip install pykstreams\[opentelemetry\]"):
        driver(pipeline(), settings=ON)
