"""A handler of errors, and an application that runs."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams import (
    ErrorHandlerContext,
    ErrorHandlerResponse,
    KafkaStreams,
    ProcessingExceptionHandler,
    Record,
    StreamsBuilder,
)


@dataclass(frozen=True)
class Order:
    customer: str
    cents: int


@dataclass
class Total:
    cents: int = 0

    def plus(self, cents: int) -> Total:
        return Total(self.cents + cents)


class SkipEmpty(ProcessingExceptionHandler):
    def handle_error(
        self, context: ErrorHandlerContext, record: Record[object, object] | None, exception: Exception
    ) -> ErrorHandlerResponse:
        return ErrorHandlerResponse.resume() if isinstance(exception, KeyError) else ErrorHandlerResponse.fail()


builder = StreamsBuilder()
builder.stream("orders", str, Order).map_values(lambda order: order.cents).to("cents")
config = {
    "application.id": "shop",
    "bootstrap.servers": "localhost:9092",
    "processing.exception.handler": SkipEmpty,
}
with KafkaStreams(builder.build(), config) as streams:
    streams.wait()
