"""Metrics for Prometheus, by ``prometheus-client`` (``pip install pykstreams[prometheus]``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pykstreams.core.errors import StreamsError
from pykstreams.metrics.sources import HasMetrics, Sample, samples

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

_MISSING = "metrics for Prometheus need prometheus-client; install it by pip install pykstreams[prometheus]"


class PrometheusCollector:
    """A collector over the metrics of one or several applications, for a registry of ``prometheus_client``.

    ``REGISTRY.register(PrometheusCollector(streams))`` adds them to whatever else a process exports. Metrics are read
    when Prometheus asks. Names are ``kafka_streams_<group>_<name>`` with tags as labels; totals are counters and the
    rest gauges. Those without a value yet are left out.

    :param sources: what has ``metrics()``: ``KafkaStreams``, ``TopologyTestDriver`` or ``StreamsMetrics``.
    """

    def __init__(self, *sources: HasMetrics) -> None:
        try:
            import prometheus_client  # noqa: F401 - to say at once that it is missing
        except ImportError as error:
            raise StreamsError(_MISSING) from error
        self._sources = sources

    def collect(self) -> Iterator[Family]:
        """Yields a family for each name."""
        by_name: dict[str, list[Sample]] = {}
        for source in self._sources:
            for sample in samples(source):
                by_name.setdefault(sample.name, []).append(sample)
        for name, found in by_name.items():
            yield _family(name, found)

    def describe(self) -> Sequence[Family]:
        """Returns nothing: which metrics there will be is known only when they are there."""
        return ()


def prometheus_text(*sources: HasMetrics) -> tuple[bytes, str]:
    """Returns metrics in Prometheus' text format, and the content type to serve them with.

    :param sources: as for ``PrometheusCollector``.
    """
    collector = PrometheusCollector(*sources)
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.exposition import CONTENT_TYPE_LATEST

    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return generate_latest(registry), CONTENT_TYPE_LATEST


def _family(name: str, found: Sequence[Sample]) -> Family:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    labels = sorted({label for sample in found for label in sample.labels})
    text = next((sample.description for sample in found if sample.description), "") or name
    if found[0].is_total:
        counter = CounterMetricFamily(name, text, labels=labels)  # it appends _total itself
        for sample in found:
            counter.add_metric([sample.labels.get(label, "") for label in labels], sample.value)
        return counter
    gauge = GaugeMetricFamily(name, text, labels=labels)
    for sample in found:
        gauge.add_metric([sample.labels.get(label, "") for label in labels], sample.value)
    return gauge
