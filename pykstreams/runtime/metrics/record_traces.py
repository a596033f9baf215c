"""Traces of records, by OpenTelemetry: each record that is processed, and each that is sent, is a span.

The context of a trace travels in the headers ``traceparent`` and ``tracestate`` of records (W3C Trace Context), so that
it goes through repartition topics, and from and to other programs. What leaves a record cache at a commit belongs to
the trace of the record that was put last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pykstreams._version import __version__
from pykstreams.core.errors import ConfigError
from pykstreams.core.processor import CurrentRecord
from pykstreams.core.types import Forward, Headers, Produce, Sent

if TYPE_CHECKING:
    from opentelemetry.context import Context

_FIELDS: Final = frozenset(("traceparent", "tracestate"))


class RecordTraces:
    """The tracing callables of one task.

    :param current: the record that the task works on.
    """

    def __init__(self, task: str, current: CurrentRecord) -> None:
        require_opentelemetry()
        from opentelemetry import trace
        from opentelemetry.context import Context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._no_context = Context()
        self._trace = trace
        self._tracer = trace.get_tracer("pykstreams", __version__)
        self._propagator = TraceContextTextMapPropagator()
        self._task = task
        self._current = current

    def at_source(self, node: str, forward: Forward) -> Forward:
        """Wraps the children of a source: all that happens below is inside of the span of the record."""
        tracer, kind, current = self._tracer, self._trace.SpanKind.CONSUMER, self._current
        context_of, attributes_of = self._context_of, self._attributes_of

        def traced(key: object, value: object, timestamp: int, headers: Headers) -> None:
            message = None if current.raw is None else current.raw[0]
            topic = None if message is None else message.topic()
            attributes = attributes_of(node, str(topic))
            if message is not None:
                attributes["messaging.destination.partition.id"] = str(message.partition())
                attributes["messaging.kafka.offset"] = str(message.offset())
            with tracer.start_as_current_span(
                f"{topic} process", context_of(headers), kind=kind, attributes=attributes
            ):
                forward(key, value, timestamp, headers)

        return traced

    def at_end(self, node: str, forward: Forward) -> Forward:
        """Returns the node: it is inside of the span of its source."""
        return forward

    def at_sink(self, node: str, send: Produce) -> Produce:
        """Wraps one of the ways out of a sink: what is sent carries the context of its own span."""
        trace, tracer, kind = self._trace, self._tracer, self._trace.SpanKind.PRODUCER
        context_of, attributes_of, inject = self._context_of, self._attributes_of, self._propagator.inject

        def traced(*sent: *Sent) -> None:
            topic, headers = sent[0], sent[-1]
            inside = trace.get_current_span().get_span_context().is_valid
            context = None if inside else context_of(headers or ())
            with tracer.start_as_current_span(
                f"{topic} publish", context, kind=kind, attributes=attributes_of(node, topic)
            ):
                fields: dict[str, str] = {}
                inject(fields)
                kept = [header for header in headers or () if header[0] not in _FIELDS]
                kept += [(name, text.encode()) for name, text in fields.items()]
                send(*sent[:-1], kept)

        return traced

    def _attributes_of(self, node: str, topic: str) -> dict[str, str]:
        return {
            "messaging.system": "kafka",
            "messaging.destination.name": topic,
            "kafka.streams.task.id": self._task,
            "kafka.streams.node": node,
        }

    def _context_of(self, headers: Iterable[tuple[str, bytes | None]]) -> Context:
        """The context that a record brings; an empty one where it begins a trace."""
        fields = {
            name: value.decode("latin-1") for name, value in headers if name in _FIELDS and isinstance(value, bytes)
        }
        return self._propagator.extract(fields, self._no_context)


def require_opentelemetry() -> None:
    """Raises ``ConfigError`` where the API of OpenTelemetry is not installed."""
    try:
        import opentelemetry.trace  # noqa: F401 - to say at once that it is missing
    except ImportError as error:
        raise ConfigError(
            "setting 'tracing.enable' needs the API of OpenTelemetry; install it by pip install "
            "pykstreams[opentelemetry]"
        ) from error
